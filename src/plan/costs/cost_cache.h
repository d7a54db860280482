// Caches the costs of ops on devices: equal ops, as in the layers of a model, are predicted once.
//
// Serves one set of devices and costs, which must outlive it. One thread at a time.
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
  Support support;     // none if the device is known to compute the op wrongly
  Prediction compute;  // zero without support
};

class CostCache {
 public:
  CostCache(std::span<Device* const> devices, std::span<const DeviceCost> costs) : devices_(devices), costs_(costs) {}

  // The reference is valid as long as the cache.
  [[nodiscard]] const OpCost& of(const OpCall& call, std::uint32_t device);

 private:
  using Key = std::vector<std::uint64_t>;  // the op, the device, and everything about its operands
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
  Key key_;  // of the call being looked up
};

}  // namespace shunt
