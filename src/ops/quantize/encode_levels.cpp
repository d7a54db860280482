// Encoders of the blocks whose quants are looked up in a table of levels: IQ4_NL, IQ4_XS, MXFP4.
#include <algorithm>
#include <array>
#include <cmath>

#include "ops/quantize/encode_blocks.h"
#include "ops/quantize/encode_super.h"

namespace shunt::encoding {
namespace {

constexpr std::size_t kElements = 32;

// Returns the nearest of the ascending levels; NaN gives the first.
template <std::size_t kCount>
Lanes nearest_of(const std::array<float, kCount>& levels, Lanes value) {
  Lanes level = all(levels[0]);
  for (std::size_t i = 1; i < kCount; ++i)
    level += value > all((levels[i - 1] + levels[i]) / 2) ? all(levels[i] - levels[i - 1]) : all(0);
  return level;
}

// Returns the index of a level, the first if it occurs more than once.
std::uint32_t number_of(const std::int8_t (&levels)[16], float level) {
  std::uint32_t number = 0;
  while (number < 15 && static_cast<float>(levels[number]) != level) ++number;
  return number;
}

void pack_levels(const std::int8_t (&levels)[16], const float* q, std::uint8_t* packed) {
  for (std::size_t j = 0; j < 16; ++j)
    packed[j] = static_cast<std::uint8_t>(number_of(levels, q[j]) | number_of(levels, q[j + 16]) << 4);
}

constexpr std::array<float, 16> kUneven = [] {
  std::array<float, 16> levels{};
  for (std::size_t i = 0; i < 16; ++i) levels[i] = static_cast<float>(kCodebook[i]);
  return levels;
}();

// The levels of IQ4_NL and IQ4_XS, and the range of group scales of IQ4_XS.
struct UnevenLevels {
  static constexpr std::size_t kElements = 32;
  static constexpr float kScaleLow = -32;
  static constexpr float kScaleHigh = 31;
  static Lanes nearest_level(Lanes value) { return nearest_of(kUneven, value); }

  // Tries grids that put the extreme element at different positions near either end, and solves for the best scale on
  // each.
  static float fit(const float* x, const float* weights) {
    constexpr int kSteps = 9;
    const float extreme = extreme_of(x, kElements);
    if (extreme == 0.0F) return 0.0F;
    float best_scale = extreme / kUneven.front();
    float best_gain = 0;  // squares explained: the error is the sum of weighted squares minus this
    for (const float end : {kUneven.front(), kUneven.back()}) {
      for (int step = -kSteps; step <= kSteps; ++step) {
        const float factor = (end + 2.0F * static_cast<float>(step)) / extreme;
        const auto [product, square] = sums_over<kElements, 2>([&](std::size_t j) -> std::array<Lanes, 2> {
          const Lanes level = nearest_level(load(x + j) * factor);
          const Lanes weighted = load(weights + j) * level;
          return {weighted * load(x + j), weighted * level};
        });
        if (square > 0 && product * product > best_gain * square) {
          best_gain = product * product / square;
          best_scale = product / square;
        }
      }
    }
    return best_scale;
  }
};

// Twice the values of a 4-bit float, ascending.
constexpr std::array<float, 15> kMxLevels = {-12, -8, -6, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6, 8, 12};

// Returns the squared error of the block at that exponent; q receives its levels.
float quantize_mx(const float* x, std::uint8_t exponent, float* q) {
  const float scale = mx_scale(exponent);
  const float factor = inverse(scale);
  return sums_over<kElements, 1>([&](std::size_t j) -> std::array<Lanes, 1> {
    const Lanes level = nearest_of(kMxLevels, load(x + j) * factor);
    store(level, q + j);
    const Lanes difference = level * scale - load(x + j);
    return {difference * difference};
  })[0];
}

}  // namespace

void encode(const float* x, IQ4_NLBlock& block) {
  std::array<float, kElements> weights;
  weights.fill(1.0F);
  block.scale = f16_scale(UnevenLevels::fit(x, weights.data()));
  const float factor = inverse(f16_to_f32(block.scale));
  std::array<float, kElements> q;
  for (std::size_t j = 0; j < kElements; j += kLanes)
    store(UnevenLevels::nearest_level(load(x + j) * factor), q.data() + j);
  pack_levels(kCodebook, q.data(), block.quants);
}

void encode(const float* x, IQ4_XSBlock& block) {
  ScaledBlock<UnevenLevels> fitted;
  fitted.fit(x);
  block.scale = fitted.scale;
  std::uint32_t high = 0;
  for (std::size_t g = 0; g < 8; g += 2) {
    const auto first = static_cast<std::uint32_t>(fitted.scales[g] + 32.0F);
    const auto second = static_cast<std::uint32_t>(fitted.scales[g + 1] + 32.0F);
    block.scales_low[g / 2] = static_cast<std::uint8_t>((first & 15U) | (second & 15U) << 4);
    high |= (first >> 4 | second >> 4 << 2) << (2 * g);
  }
  block.scales_high = static_cast<std::uint16_t>(high);
  for (std::size_t g = 0; g < 8; ++g) pack_levels(kCodebook, fitted.q.data() + 32 * g, block.quants + 16 * g);
}

// Picks the exponent that keeps the largest element in range, or a neighbour with less error.
void encode(const float* x, MXFP4Block& block) {
  int power = 0;
  std::frexp(extreme_of(x, kElements), &power);
  float best_error = -1;
  for (const int offset : {0, 1, -1}) {
    // Keeps scales normal: smaller ones may have no finite inverse.
    const auto exponent = static_cast<std::uint8_t>(std::clamp(power + 124 + offset, 2, 254));
    std::array<float, kElements> q;
    const float error = quantize_mx(x, exponent, q.data());
    if (best_error >= 0 && !(error < best_error)) continue;
    best_error = error;
    block.exponent = exponent;
    pack_levels(kMxValues, q.data(), block.quants);
  }
}

}  // namespace shunt::encoding
