// Finds which work must wait for other work because of shared memory: reads or overwrites of what was written (RAW,
// WAW), and overwrites of what was read (WAR). Work without such a hazard may run at the same time.
//
// Plain values; buffers are only compared. One thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "devices/device.h"

namespace shunt {

struct Access {
  const Buffer* buffer = nullptr;  // null: none
  std::uint64_t begin = 0;         // bytes
  std::uint64_t end = 0;
  bool writes = false;

  // Ranges in whole words, as kernels address them.
  [[nodiscard]] static Access read(const Binding& binding) { return of(binding, false); }
  [[nodiscard]] static Access write(const Binding& binding) { return of(binding, true); }

 private:
  [[nodiscard]] static Access of(const Binding& binding, bool writes) {
    return {binding.buffer, binding.offset / 4 * 4, (binding.offset + binding.bytes + 3) / 4 * 4, writes};
  }
};

class Hazards {
 public:
  // Returns whether it must wait for an access that was noted.
  [[nodiscard]] bool has(const Access& access) const;
  [[nodiscard]] bool has(const Hazards& others) const;
  void note(const Access& access);
  void note(const Hazards& others);
  // Call after a barrier: all noted accesses have ended.
  void clear() { noted_.clear(); }

 private:
  std::vector<Access> noted_;
};

}  // namespace shunt
