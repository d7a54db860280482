#include "ops/quantize/encode.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "ops/quantize/blocks.h"
#include "ops/quantize/encode_search.h"

namespace shunt {
namespace {

using namespace encoding;

void encode(const float* x, F32Block& block) { block.value = *x; }
void encode(const float* x, F16Block& block) { block.bits = f32_to_f16(*x); }
void encode(const float* x, BF16Block& block) { block.bits = f32_to_bf16(*x); }

void encode(const float* x, Q8_0Block& block) {
  Lanes extremes = all(0);
  for (std::size_t j = 0; j < 32; j += kLanes) {
    const Lanes value = load(x + j);
    const Lanes magnitude = value < all(0) ? -value : value;
    extremes = extremes > magnitude ? extremes : magnitude;
  }
  const float largest = std::max(std::max(extremes[0], extremes[1]), std::max(extremes[2], extremes[3]));
  block.scale = f16_scale(largest / 127.0F);
  const float factor = inverse(f16_to_f32(block.scale));
  for (std::size_t j = 0; j < 32; j += kLanes) {
    const Lanes quants = nearest(load(x + j) * factor, -127.0F, 127.0F);
    for (std::size_t lane = 0; lane < kLanes; ++lane) block.quants[j + lane] = static_cast<std::int8_t>(quants[lane]);
  }
}

void encode(const float* x, Q4_0Block& block) {
  std::array<float, 32> weights;
  weights.fill(1.0F);
  block.scale = f16_scale(fit_scale<32, 8>(x, weights.data()));
  const float factor = inverse(f16_to_f32(block.scale));
  const auto quant = [&](std::size_t j) {
    return static_cast<std::uint8_t>(nearest(x[j] * factor, -8.0F, 7.0F) + 8.0F);
  };
  for (std::size_t j = 0; j < 16; ++j) block.quants[j] = static_cast<std::uint8_t>(quant(j) | quant(j + 16) << 4);
}

constexpr std::size_t kSuper = 256;  // elements of a K block

// A block of Q4_K or Q5_K before it is packed: 8 groups, x ~ scale * scales[g] * q - min * mins[g].
template <int kMax>
struct AffineBlock {
  static constexpr std::size_t kGroups = kSuper / kGroup;
  static constexpr float kScaleMax = 63.0F;

  std::uint16_t scale = 0;  // F16
  std::uint16_t min = 0;    // F16
  std::array<float, kGroups> scales{};
  std::array<float, kGroups> mins{};
  std::array<float, kSuper> q{};

  [[nodiscard]] Affine grid(float group_scale, float group_min) const {
    return {.scale = f16_to_f32(scale) * group_scale, .min = f16_to_f32(min) * group_min};
  }

  // Among the neighbours of each group's scale and minimum, takes the pair with the least error; answers the
  // error of the whole block.
  float refine_groups(const float* x, const float* weights) {
    float total = 0;
    for (std::size_t g = 0; g < kGroups; ++g) {
      const float* const group_x = x + g * kGroup;
      const float* const group_weights = weights + g * kGroup;
      const float centre_scale = scales[g];
      const float centre_min = mins[g];
      float best_error = -1;
      for (int i = 0; i < 9; ++i) {
        // The centre comes first, so that it wins where nothing is better.
        const float new_scale = centre_scale + static_cast<float>((i + 1) % 3 - 1);
        const float new_min = centre_min + static_cast<float>((i / 3 + 1) % 3 - 1);
        if (new_scale < 0 || new_scale > kScaleMax || new_min < 0 || new_min > kScaleMax) continue;
        std::array<float, kGroup> candidate;
        const Affine candidate_grid = grid(new_scale, new_min);
        quantize_affine<kMax>(group_x, candidate_grid, candidate.data());
        const float error = affine_error(group_x, group_weights, candidate_grid, candidate.data());
        if (best_error >= 0 && !(error < best_error)) continue;
        best_error = error;
        scales[g] = new_scale;
        mins[g] = new_min;
        std::copy(candidate.begin(), candidate.end(), q.begin() + static_cast<std::ptrdiff_t>(g * kGroup));
      }
      total += best_error;
    }
    return total;
  }

  // The best scale and minimum of the block for all else as it is: weighted least squares.
  void solve_block(const float* x, const float* weights) {
    double aa = 0, ac = 0, cc = 0, ax = 0, cx = 0;
    for (std::size_t i = 0; i < kSuper; ++i) {
      const double w = static_cast<double>(weights[i]);
      const double a = static_cast<double>(scales[i / kGroup] * q[i]);
      const double c = static_cast<double>(mins[i / kGroup]);
      const double value = static_cast<double>(x[i]);
      aa += w * a * a;
      ac += w * a * c;
      cc += w * c * c;
      ax += w * a * value;
      cx += w * c * value;
    }
    const double determinant = aa * cc - ac * ac;
    double new_scale = aa > 0 ? ax / aa : 0;
    double new_min = 0;
    if (determinant > 1e-12 * aa * cc) {
      new_scale = (ax * cc - ac * cx) / determinant;
      new_min = (ac * ax - aa * cx) / determinant;
    }
    if (new_scale > 0 && new_min >= 0) {
      scale = f32_to_f16(static_cast<float>(new_scale));
      min = f32_to_f16(static_cast<float>(new_min));
    }
  }

  void fit(const float* x) {
    std::array<float, kSuper> weights;
    std::array<Affine, kGroups> grids;
    float largest_scale = 0;
    float largest_min = 0;
    for (std::size_t g = 0; g < kGroups; ++g) {
      weigh(x + g * kGroup, kGroup, weights.data() + g * kGroup);
      grids[g] = fit_affine<kMax>(x + g * kGroup, weights.data() + g * kGroup);
      largest_scale = std::max(largest_scale, grids[g].scale);
      largest_min = std::max(largest_min, grids[g].min);
    }
    scale = f16_scale(largest_scale / kScaleMax);
    min = f16_scale(largest_min / kScaleMax);
    for (std::size_t g = 0; g < kGroups; ++g) {
      scales[g] = nearest(grids[g].scale * inverse(f16_to_f32(scale)), 0, kScaleMax);
      mins[g] = nearest(grids[g].min * inverse(f16_to_f32(min)), 0, kScaleMax);
    }
    float error = refine_groups(x, weights.data());
    for (int round = 0; round < 2; ++round) {
      AffineBlock other = *this;
      other.solve_block(x, weights.data());
      const float other_error = other.refine_groups(x, weights.data());
      if (!(other_error < error)) break;
      *this = other;
      error = other_error;
    }
  }

  template <class Block>
  void pack(Block& block) const {
    block.scale = scale;
    block.min = min;
    std::memset(block.group_scales, 0, sizeof(block.group_scales));
    for (std::size_t g = 0; g < kGroups; ++g) pack_group(block.group_scales, g);
    for (std::size_t i = 0; i < 128; ++i) {
      const std::size_t first = 64 * (i / 32) + i % 32;
      block.quants[i] = static_cast<std::uint8_t>((quant(first) & 15U) | (quant(first + 32) & 15U) << 4);
    }
  }

  [[nodiscard]] std::uint32_t quant(std::size_t i) const { return static_cast<std::uint32_t>(q[i]); }

 private:
  // The inverse of k_group().
  void pack_group(std::uint8_t (&packed)[12], std::size_t g) const {
    const auto put = [&](std::size_t byte, std::uint32_t bits) {
      packed[byte] = static_cast<std::uint8_t>(packed[byte] | bits);
    };
    const auto s = static_cast<std::uint32_t>(scales[g]);
    const auto m = static_cast<std::uint32_t>(mins[g]);
    if (g < 4) {
      put(g, s);
      put(g + 4, m);
    } else {
      put(g + 4, (s & 15U) | (m & 15U) << 4);
      put(g - 4, s >> 4 << 6);
      put(g, m >> 4 << 6);
    }
  }
};

void encode(const float* x, Q4_KBlock& block) {
  AffineBlock<15> fitted;
  fitted.fit(x);
  fitted.pack(block);
}

void encode(const float* x, Q5_KBlock& block) {
  AffineBlock<31> fitted;
  fitted.fit(x);
  fitted.pack(block);
  for (std::size_t l = 0; l < 32; ++l) {
    std::uint32_t bits = 0;
    for (std::size_t g = 0; g < 8; ++g) bits |= (fitted.quant(32 * g + l) >> 4) << g;
    block.high_bits[l] = static_cast<std::uint8_t>(bits);
  }
}

// A block of Q6_K before it is packed: 16 groups, x ~ scale * scales[g] * q.
struct ScaledBlock {
  static constexpr std::size_t kElements = 16;
  static constexpr std::size_t kGroups = kSuper / kElements;

  std::uint16_t scale = 0;  // F16
  std::array<float, kGroups> scales{};
  std::array<float, kSuper> q{};

  float refine_groups(const float* x, const float* weights) {
    float total = 0;
    for (std::size_t g = 0; g < kGroups; ++g) {
      const float centre = scales[g];
      float best_error = -1;
      for (int i = 0; i < 3; ++i) {
        const float new_scale = centre + static_cast<float>((i + 1) % 3 - 1);
        if (new_scale < -128 || new_scale > 127) continue;
        const float step = f16_to_f32(scale) * new_scale;
        const float factor = inverse(step);
        std::array<float, kElements> candidate;
        const float error = sums_over<kElements, 1>([&](std::size_t j) -> std::array<Lanes, 1> {
          const Lanes value = load(x + g * kElements + j);
          const Lanes quant = nearest(value * factor, -32.0F, 31.0F);
          store(quant, candidate.data() + j);
          const Lanes difference = quant * step - value;
          return {load(weights + g * kElements + j) * difference * difference};
        })[0];
        if (best_error >= 0 && !(error < best_error)) continue;
        best_error = error;
        scales[g] = new_scale;
        std::copy(candidate.begin(), candidate.end(), q.begin() + static_cast<std::ptrdiff_t>(g * kElements));
      }
      total += best_error;
    }
    return total;
  }

  void solve_block(const float* x, const float* weights) {
    double product = 0;
    double square = 0;
    for (std::size_t i = 0; i < kSuper; ++i) {
      const double a = static_cast<double>(scales[i / kElements] * q[i]);
      product += static_cast<double>(weights[i]) * a * static_cast<double>(x[i]);
      square += static_cast<double>(weights[i]) * a * a;
    }
    if (square > 0) scale = f32_to_f16(static_cast<float>(product / square));
  }

  void fit(const float* x) {
    std::array<float, kSuper> weights;
    std::array<float, kGroups> steps;
    for (std::size_t g = 0; g < kGroups; ++g) {
      weigh(x + g * kElements, kElements, weights.data() + g * kElements);
      steps[g] = fit_scale<kElements, 32>(x + g * kElements, weights.data() + g * kElements);
    }
    scale = f16_scale(extreme_of(steps.data(), kGroups) / -128.0F);
    for (std::size_t g = 0; g < kGroups; ++g)
      scales[g] = nearest(steps[g] * inverse(f16_to_f32(scale)), -128.0F, 127.0F);
    float error = refine_groups(x, weights.data());
    for (int round = 0; round < 2; ++round) {
      ScaledBlock other = *this;
      other.solve_block(x, weights.data());
      const float other_error = other.refine_groups(x, weights.data());
      if (!(other_error < error)) break;
      *this = other;
      error = other_error;
    }
  }
};

void encode(const float* x, Q6_KBlock& block) {
  ScaledBlock fitted;
  fitted.fit(x);
  block.scale = fitted.scale;
  for (std::size_t g = 0; g < ScaledBlock::kGroups; ++g)
    block.group_scales[g] = static_cast<std::int8_t>(fitted.scales[g]);
  const auto quant = [&](std::size_t i) { return static_cast<std::uint32_t>(fitted.q[i] + 32.0F); };
  for (std::size_t i = 0; i < 128; ++i) {
    const std::size_t first = 128 * (i / 64) + i % 64;
    block.low_bits[i] = static_cast<std::uint8_t>((quant(first) & 15U) | (quant(first + 64) & 15U) << 4);
  }
  for (std::size_t i = 0; i < 64; ++i) {
    std::uint32_t bits = 0;
    for (std::size_t part = 0; part < 4; ++part)
      bits |= (quant(128 * (i / 32) + i % 32 + 32 * part) >> 4) << (2 * part);
    block.high_bits[i] = static_cast<std::uint8_t>(bits);
  }
}

template <class Block, std::uint32_t kElements>
void encode_blocks(const float* row, std::uint64_t elements, std::byte* out) {
  for (std::uint64_t i = 0; i < elements; i += kElements, out += sizeof(Block)) {
    Block block;
    encode(row + i, block);
    std::memcpy(out, &block, sizeof(Block));
  }
}

#define SHUNT_ENCODER_floating(name, block_elements) encode_blocks<name##Block, block_elements>
#define SHUNT_ENCODER_quantized(name, block_elements) encode_blocks<name##Block, block_elements>
#define SHUNT_ENCODER_integer(name, block_elements) nullptr
constexpr RowEncoder kEncoders[] = {
#define SHUNT_DTYPE(name, gguf_id, block_elements, block_bytes, kind) SHUNT_ENCODER_##kind(name, block_elements),
#include "ops/dtypes.def"
};
#undef SHUNT_ENCODER_floating
#undef SHUNT_ENCODER_quantized
#undef SHUNT_ENCODER_integer

}  // namespace

RowEncoder encoder_of(DType dtype) { return kEncoders[static_cast<std::size_t>(dtype)]; }

}  // namespace shunt
