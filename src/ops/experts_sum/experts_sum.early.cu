// A thread computes four elements of a token's row. It goes over the experts in groups, and scales what it has whenever
// the largest score changes.
#include "ops/experts_sum/experts_sum_args.h"

#include "ops/early.cuh"

namespace shunt {
namespace {

constexpr std::uint32_t kTogether = 8;  // experts read before they are used
static_assert(kExpertsSumColumns == 4 * kGroup);

// Reads up to four elements; those past `count` are 0.
template <bool in_sixteens>
SHUNT_FUNCTION FourFloats read_columns(const float* from, std::uint64_t stride, std::uint32_t count) {
  if constexpr (in_sixteens) return fresh_four(from, true);
  FourFloats four{};
  SHUNT_UNROLL
  for (std::uint32_t e = 0; e < 4; ++e)
    if (e < count) four.values[e] = fresh_float(from + e * stride);
  return four;
}

// Returns whether all that is read in fours begins at multiples of 16 bytes.
SHUNT_FUNCTION bool are_in_sixteens(const CudaCall* call, const ExpertsSumArgs& args) {
  const std::uint32_t in_fours = args.columns | args.x_strides[0] | args.x_strides[1] | args.residual_strides[0];
  const std::uint32_t in_ones = (args.x_strides[2] ^ 1U) | (args.residual_strides[1] ^ 1U);
  const auto x = reinterpret_cast<std::uintptr_t>(input_of<float>(call, 0));
  const auto residual = reinterpret_cast<std::uintptr_t>(input_of<float>(call, 3));
  return (in_fours % 4U | in_ones | (x | residual) % 16U) == 0;
}

constexpr float kMinusInfinity = -__builtin_inff();

// Returns e^(score - largest), 0 for minus infinity.
SHUNT_FUNCTION float power(float score, float largest) {
  return score == kMinusInfinity ? 0.0F : kernel_math::exp(score - largest);
}

// Computes four columns of a token, of which `count` exist. Loads for several experts are unconditional, so that all
// are in flight before the first is used.
template <bool in_sixteens>
SHUNT_FUNCTION void add_experts(const CudaCall* call, std::uint64_t token, std::uint32_t first) {
  const auto& args = arguments_of<ExpertsSumArgs>(call);
  const std::uint32_t used = args.used;
  const std::uint32_t experts = args.experts;
  const float scale = args.scale;
  const std::uint32_t count = args.columns - first;
  const float* const x =
      input_of<float>(call, 0) + token * args.x_strides[0] + std::uint64_t{first} * args.x_strides[2];
  const float* const scores = input_of<float>(call, 1) + token * args.score_strides[0];
  const auto* const ids = input_of<std::int32_t>(call, 2) + token * args.id_strides[0];
  const std::uint64_t x_stride = args.x_strides[1];
  const std::uint64_t column_stride = args.x_strides[2];
  const std::uint64_t score_stride = args.score_strides[1];
  const std::uint64_t id_stride = args.id_strides[1];
  const FourFloats residual = read_columns<in_sixteens>(
      input_of<float>(call, 3) + token * args.residual_strides[0] + std::uint64_t{first} * args.residual_strides[1],
      args.residual_strides[1], count);
  float largest = kMinusInfinity;
  float powers = 0.0F;
  FourFloats sum{};
  for (std::uint32_t begin = 0; begin < used; begin += kTogether) {
    std::uint32_t chosen[kTogether];
    FourFloats held[kTogether];
    float factors[kTogether];
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kTogether; ++i)
      chosen[i] = fresh_word(ids + (begin + i < used ? begin + i : begin) * id_stride);
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kTogether; ++i)
      held[i] = read_columns<in_sixteens>(x + (begin + i < used ? begin + i : begin) * x_stride, column_stride, count);
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kTogether; ++i)
      factors[i] = fresh_float(chosen[i] < experts ? scores + chosen[i] * score_stride : x);
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kTogether; ++i) {
      const float score = chosen[i] < experts ? scale * factors[i] : 0.0F;
      factors[i] = begin + i < used ? score : kMinusInfinity;
    }
    const float before = largest;
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kTogether; ++i) largest = kernel_math::max(largest, factors[i]);
    const float kept = power(before, largest);
    powers *= kept;
    SHUNT_UNROLL
    for (std::uint32_t e = 0; e < 4; ++e) sum.values[e] *= kept;
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kTogether; ++i) {
      if (begin + i >= used) continue;
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

}  // namespace
}  // namespace shunt

SHUNT_BOUNDED_KERNEL(experts_sum, shunt::kCudaGroupSize, 1) {
  using namespace shunt;
  let_next_kernel_begin();
  const auto& args = arguments_of<ExpertsSumArgs>(call);
  const std::uint32_t blocks = experts_sum_blocks(args);
  const std::uint64_t token = group() / blocks;
  const auto first = static_cast<std::uint32_t>(group() % blocks) * kExpertsSumColumns + lane() * 4U;
  const bool exists =
      token < valid_rows(args.tokens, static_cast<Extent>(args.extent), parameters_of(call)) && first < args.columns;
  const bool in_sixteens = are_in_sixteens(call, args);
  wait_for_earlier_kernels();
  if (!exists) return;
  if (in_sixteens)
    add_experts<true>(call, token, first);
  else
    add_experts<false>(call, token, first);
}
