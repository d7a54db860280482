#include "models/random/random_blocks.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "ops/quantize/blocks.h"

namespace shunt::models {
namespace {

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
std::uint64_t next(std::uint64_t& state) {
  std::uint64_t mixed = state += 0x9E3779B97F4A7C15U;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9U;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBU;
  return mixed ^ (mixed >> 31);
}

// Each overload turns a block of random bits into values of about `scale`. Floats keep a random sign and fraction and
// get a fixed exponent; quantized blocks keep their quants.
void settle(F32Block& block, float scale) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(block.value);
  bits = (bits & 0x807FFFFFU) | 0x3F800000U;
  block.value = std::bit_cast<float>(bits) * scale;
}
void settle(F16Block& block, float scale) {
  block.bits = f32_to_f16(f16_to_f32(static_cast<std::uint16_t>((block.bits & 0x83FFU) | 0x3C00U)) * scale);
}
void settle(BF16Block& block, float scale) {
  block.bits = f32_to_bf16(bf16_to_f32(static_cast<std::uint16_t>((block.bits & 0x807FU) | 0x3F80U)) * scale);
}
void settle(Q4_0Block& block, float scale) { block.scale = f32_to_f16(scale); }
void settle(Q8_0Block& block, float scale) { block.scale = f32_to_f16(scale); }
void settle(IQ4_NLBlock& block, float scale) { block.scale = f32_to_f16(scale); }
void settle(IQ4_XSBlock& block, float scale) { block.scale = f32_to_f16(scale); }
void settle(Q3_KBlock& block, float scale) { block.scale = f32_to_f16(scale); }
void settle(Q5_0Block& block, float scale) { block.scale = f32_to_f16(scale); }
// The minimum cancels the mean of the quants, so the mean is zero.
void settle(Q4_1Block& block, float scale) {
  block.scale = f32_to_f16(scale);
  block.min = f32_to_f16(scale * -7.5F);
}
void settle(Q5_1Block& block, float scale) {
  block.scale = f32_to_f16(scale);
  block.min = f32_to_f16(scale * -15.5F);
}
void settle(Q2_KBlock& block, float scale) {
  block.scale = f32_to_f16(scale);
  block.min = f32_to_f16(scale * 1.5F);
}
// Picks one of the two powers of two around `scale`, with probabilities that give the mean square of `scale`.
void settle(MXFP4Block& block, float scale) {
  int power = 0;
  const float ratio = 2 * std::frexp(scale, &power);
  const bool larger = static_cast<float>(block.exponent) < 256 * (ratio * ratio - 1) / 3;
  block.exponent = static_cast<std::uint8_t>(std::clamp(power + 127 - (larger ? 0 : 1), 0, 254));
}
// Group scales and minima are random, and 7.5 (or 15.5) is the mean of the quants, so the mean is zero.
void settle(Q4_KBlock& block, float scale) {
  block.scale = f32_to_f16(scale);
  block.min = f32_to_f16(scale * 7.5F);
}
void settle(Q5_KBlock& block, float scale) {
  block.scale = f32_to_f16(scale);
  block.min = f32_to_f16(scale * 15.5F);
}
void settle(Q6_KBlock& block, float scale) { block.scale = f32_to_f16(scale); }

template <class Block>
void settle_all(std::span<std::byte> out, float scale) {
  for (std::size_t at = 0; at + sizeof(Block) <= out.size(); at += sizeof(Block)) {
    Block block;
    std::memcpy(&block, out.data() + at, sizeof(Block));
    settle(block, scale);
    std::memcpy(out.data() + at, &block, sizeof(Block));
  }
}

using Settler = void (*)(std::span<std::byte> out, float scale);
#define SHUNT_SETTLER_floating(name) settle_all<name##Block>
#define SHUNT_SETTLER_quantized(name) settle_all<name##Block>
#define SHUNT_SETTLER_integer(name) nullptr
constexpr Settler kSettlers[] = {
#define SHUNT_DTYPE(name, gguf_id, block_elements, block_bytes, kind) SHUNT_SETTLER_##kind(name),
#include "ops/dtypes.def"
};
#undef SHUNT_SETTLER_floating
#undef SHUNT_SETTLER_quantized
#undef SHUNT_SETTLER_integer

}  // namespace

RandomBlocks::RandomBlocks(DType dtype, float size, std::uint64_t seed) : dtype_(dtype), state_(seed) {
  // Measures with the decoder how large values are at scale 1.
  constexpr std::size_t kSample = 1U << 14;
  const DTypeInfo& info = info_of(dtype);
  std::vector<std::byte> blocks(kSample / info.block_elements * info.block_bytes);
  std::vector<float> values(kSample);
  std::uint64_t before = state_;
  fill(blocks);
  state_ = before;
  decode_row(dtype, blocks.data(), kSample, values.data());
  double squares = 0;
  for (const float value : values) squares += static_cast<double>(value) * static_cast<double>(value);
  scale_ = static_cast<float>(static_cast<double>(size) / std::sqrt(squares / kSample));
}

void RandomBlocks::fill(std::span<std::byte> out) {
  std::size_t at = 0;
  for (; at + sizeof(std::uint64_t) <= out.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t bits = next(state_);
    std::memcpy(out.data() + at, &bits, sizeof bits);
  }
  const std::uint64_t bits = next(state_);
  std::memcpy(out.data() + at, &bits, out.size() - at);
  kSettlers[static_cast<std::size_t>(dtype_)](out, scale_);
}

}  // namespace shunt::models
