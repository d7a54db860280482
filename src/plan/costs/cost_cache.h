// What ops take on devices, asked once of all that are alike: a model has the same few in each of its layers.
//
// For the same devices and costs throughout, which must outlive it. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "devices/device.h"
#include "ops/op.h"
#include "plan/costs/cost.h"

namespace shunt {

struct OpCost {
  Support support;     // also without it where the device is known to compute the op wrongly
  Prediction compute;  // nothing where there is no support
};

class CostCache {
 public:
  CostCache(std::span<Device* const> devices, std::span<const DeviceCost> costs) : devices_(devices), costs_(costs) {}

  // Valid as long as the object.
  [[nodiscard]] const OpCost& of(const OpCall& call, std::uint32_t device);

 private:
  using Key = std::vector<std::uint64_t>;  // the op, the device, and all about its operands
  struct HashOfKey {
    [[nodiscard]] std::size_t operator()(const Key& key) const;
  };
  struct Entry {
    Attributes attributes;
    OpCost cost;
  };

  [[nodiscard]] OpCost ask(const OpCall& call, std::uint32_t device) const;

  std::span<Device* const> devices_;
  std::span<const DeviceCost> costs_;
  std::unordered_map<Key, std::vector<std::unique_ptr<Entry>>, HashOfKey> entries_;
  Key key_;  // of the call that is asked for
};

}  // namespace shunt
