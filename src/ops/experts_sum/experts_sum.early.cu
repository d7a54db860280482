// A thread computes four elements of a token's row. It goes over the experts in groups, and scales what it has whenever
// the largest score changes.
#include "ops/experts_sum/experts_sum_args.h"

#include "ops/early.cuh"

namespace shunt {
namespace {

constexpr std::uint32_t kTogether = 8;  // experts read before they are used
static_assert(kExpertsSumColumns == 4 * kGroup);

// Reads up to four elements; those past `count` are 0.
SHUNT_FUNCTION FourFloats read_columns(const float* from, std::uint64_t stride, std::uint32_t count) {
  if (stride == 1 && count >= 4) return fresh_four(from, is_in_sixteens(from));
  FourFloats four{};
  SHUNT_UNROLL
  for (std::uint32_t e = 0; e < 4; ++e)
    if (e < count) four.values[e] = fresh_float(from + e * stride);
  return four;
}

// The experts of a token.
struct Experts {
  const ExpertsSumArgs& args;
  const float* scores;
  const std::int32_t* ids;

  // Returns the score of use `j`, minus infinity beyond the last.
  SHUNT_FUNCTION float score(std::uint32_t j) const {
    if (j >= args.used) return kernel_math::float_of(0xFF800000U);
    const std::uint32_t id = fresh_word(ids + std::uint64_t{j} * args.id_strides[1]);
    return id < args.experts ? args.scale * fresh_float(scores + std::uint64_t{id} * args.score_strides[1]) : 0.0F;
  }
};

// Returns e^(score - largest), 0 for minus infinity.
SHUNT_FUNCTION float power(float score, float largest) {
  return kernel_math::bits_of(score) == 0xFF800000U ? 0.0F : kernel_math::exp(score - largest);
}

}  // namespace
}  // namespace shunt

SHUNT_KERNEL(experts_sum) {
  using namespace shunt;
  let_next_kernel_begin();
  const auto& args = arguments_of<ExpertsSumArgs>(call);
  const std::uint32_t blocks = experts_sum_blocks(args);
  const std::uint64_t token = group() / blocks;
  const auto first = static_cast<std::uint32_t>(group() % blocks) * kExpertsSumColumns + lane() * 4U;
  const bool exists =
      token < valid_rows(args.tokens, static_cast<Extent>(args.extent), parameters_of(call)) && first < args.columns;
  const std::uint32_t count = args.columns - first;
  const Experts experts{args, input_of<float>(call, 1) + token * args.score_strides[0],
                        input_of<std::int32_t>(call, 2) + token * args.id_strides[0]};
  const float* const x =
      input_of<float>(call, 0) + token * args.x_strides[0] + std::uint64_t{first} * args.x_strides[2];
  wait_for_earlier_kernels();
  if (!exists) return;
  const FourFloats residual = read_columns(
      input_of<float>(call, 3) + token * args.residual_strides[0] + std::uint64_t{first} * args.residual_strides[1],
      args.residual_strides[1], count);
  float largest = kernel_math::float_of(0xFF800000U);
  float powers = 0.0F;
  FourFloats sum{};
  for (std::uint32_t begin = 0; begin < args.used; begin += kTogether) {
    FourFloats held[kTogether];
    float factors[kTogether];
    const float before = largest;
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kTogether; ++i) {
      const std::uint32_t j = begin + i < args.used ? begin + i : begin;
      held[i] = read_columns(x + std::uint64_t{j} * args.x_strides[1], args.x_strides[2], count);
      factors[i] = experts.score(begin + i);
    }
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kTogether; ++i) largest = kernel_math::max(largest, factors[i]);
    const float kept = power(before, largest);
    powers *= kept;
    SHUNT_UNROLL
    for (std::uint32_t e = 0; e < 4; ++e) sum.values[e] *= kept;
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kTogether; ++i) {
      if (begin + i >= args.used) continue;
      const float factor = power(factors[i], largest);
      powers += factor;
      SHUNT_UNROLL
      for (std::uint32_t e = 0; e < 4; ++e) sum.values[e] += factor * held[i].values[e];
    }
  }
  float* const out = output_of<float>(call) + token * args.columns + first;
  SHUNT_UNROLL
  for (std::uint32_t e = 0; e < 4; ++e)
    if (e < count) out[e] = residual.values[e] + (powers == 0.0F ? 0.0F : sum.values[e] / powers);
}
