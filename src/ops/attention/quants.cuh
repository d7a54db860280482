// Cached blocks of Q8_0 as operands of products on tensor cores. Quants are whole numbers, which halves and BF16 hold
// exactly.
#pragma once

#include "ops/halves.cuh"

namespace shunt::attention {

inline constexpr std::uint32_t kBlock = 32;  // elements
inline constexpr std::uint32_t kBlockBytes = 34;

// Blocks begin at even addresses. If a head has an even number of them, every other one has quants at multiples of 4.
constexpr bool has_quants_in_fours(std::uint32_t dim, std::uint32_t block) {
  return dim / kBlock % 2U == 0 && block % 2U == 1;
}
// Reads words of four quants each.
template <std::uint32_t words>
SHUNT_FUNCTION void read_quants(const std::uint8_t* from, bool in_fours, std::uint32_t* to) {
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < words; ++i) {
    const auto* const pairs = reinterpret_cast<const std::uint16_t*>(from) + std::uint64_t{i} * 2U;
    to[i] = in_fours ? *reinterpret_cast<const std::uint32_t*>(pairs)
                     : pairs[0] | static_cast<std::uint32_t>(pairs[1]) << 16U;
  }
}

// Returns quants 0 and 1 of four, or 2 and 3, as a pair of halves. 0x6400 is 1024, whose last bit counts ones.
SHUNT_FUNCTION std::uint32_t quants_as_halves(std::uint32_t four, std::uint32_t pair) {
  const std::uint32_t above = byte_permute(four ^ 0x80808080U, 0x64646464U, pair == 0 ? 0x4140U : 0x4342U);
  return add_halves(above, 0xE480E480U);  // less 1152
}

// Returns quant `number` of each of two fours as a pair of BF16 numbers.
SHUNT_FUNCTION std::uint32_t quants_as_bf16(std::uint32_t low, std::uint32_t high, std::uint32_t number) {
  const auto widened = [number](std::uint32_t four) {
    const std::uint32_t above = byte_permute(four ^ 0x80808080U, 0x4B000000U, 0x7440U + number);  // 2^23
    return kernel_math::bits_of(kernel_math::float_of(above) - 8388736.0F);
  };
  return byte_permute(widened(low), widened(high), 0x7632U);
}

// The scales of a few blocks.
template <std::uint32_t blocks>
struct BlockScales {
  std::uint32_t pairs[(blocks + 1) / 2]{};

  SHUNT_FUNCTION void read(const std::uint8_t* head) {
    SHUNT_UNROLL
    for (std::uint32_t j = 0; j < blocks; ++j)
      pairs[j / 2U] |= std::uint32_t{*reinterpret_cast<const std::uint16_t*>(head + std::uint64_t{j} * kBlockBytes)}
                       << j % 2U * 16U;
  }
  SHUNT_FUNCTION float operator[](std::uint32_t j) const { return widen_f16(pairs[j / 2U] >> j % 2U * 16U & 0xFFFFU); }
};

}  // namespace shunt::attention
