// Where sequences of calls get their arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>

#include "shunt/shunt.h"

namespace shunt {

// Arguments of the C interface out of the bytes of an input: mostly small, else at a border. Zeros when it has ended.
class WildArguments {
 public:
  explicit WildArguments(std::span<const std::uint8_t> bytes) : rest_(bytes) {}
  [[nodiscard]] bool at_end() const { return rest_.empty(); }
  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    const std::uint8_t first = rest_.front();
    rest_ = rest_.subspan(1);
    return first;
  }
  // REQUIRES: count is at least 1.
  std::uint32_t below(std::size_t count) { return static_cast<std::uint32_t>(byte() % count); }
  template <class T, std::size_t count>
  T one_of(const T (&values)[count]) {
    return values[below(count)];
  }
  std::uint64_t number() {
    constexpr std::uint64_t kBorders[] = {std::numeric_limits<std::uint64_t>::max(),
                                          std::uint64_t{1} << 63U,
                                          std::uint64_t{1} << 32U,
                                          std::numeric_limits<std::uint32_t>::max(),
                                          std::uint64_t{1} << 31U,
                                          std::numeric_limits<std::int32_t>::max(),
                                          65536,
                                          65535,
                                          4096,
                                          257};
    const std::uint8_t first = byte();
    return first < 216 ? first % 36U : kBorders[(first - 216U) % std::size(kBorders)];
  }
  std::uint32_t number32() { return static_cast<std::uint32_t>(number()); }
  // Never more than `memory` has.
  std::size_t count(std::size_t memory) { return number() % (memory + 1); }
  float real() {
    constexpr float kReals[] = {
        0, 1, -1, 0.5F, 1e-30F, 3e38F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()};
    return one_of(kReals);
  }
  shunt_shape shape() {
    shunt_shape shape{};
    shape.rank = below(6);
    for (std::uint32_t& extent : shape.extents) extent = number32();
    return shape;
  }
  // One past the last too, which is none.
  shunt_dtype dtype() { return static_cast<shunt_dtype>(below(SHUNT_DTYPE_COUNT + 1)); }
  shunt_extent extent() { return static_cast<shunt_extent>(below(4)); }

 private:
  std::span<const std::uint8_t> rest_;
};

}  // namespace shunt
