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
  // Returns what the device says of a program of these ops. REQUIRES: it supports each.
  [[nodiscard]] const Support& of_program(std::span<const OpCall> calls, std::uint32_t device);

 private:
  // The op, the device, and everything about its operands; or, of a program, the addresses of its ops' costs.
  using Key = std::vector<std::uint64_t>;
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
  std::unordered_map<Key, Support, HashOfKey> programs_;
  Key key_;  // of the call being looked up
};

}  // namespace shunt
