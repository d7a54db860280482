#include <algorithm>

#include "ops/elements.h"
#include "ops/experts_sum/experts_sum.h"
#include "ops/kernel_arguments.h"
#include "ops/simd_targets.h"
#include "ops/strided.h"

#ifndef SHUNT_OPS_EXPERTS_SUM_ONCE
#define SHUNT_OPS_EXPERTS_SUM_ONCE
namespace shunt {
// Columns summed at a time.
inline constexpr std::size_t kExpertsSumPiece = 512;
}  // namespace shunt
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/experts_sum/experts_sum_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/float_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {
namespace {

// Computes columns of one token, at most kExpertsSumPiece of them.
void sum_piece(const ExpertsSumArgs& args, const CpuCall& call, std::uint64_t token, Range columns) {
  const std::span<double> shares(reinterpret_cast<double*>(call.thread_scratch), args.used);
  float* const buffer = reinterpret_cast<float*>(shares.data() + shares.size());
  float* const sum = call.out<float>() + token * args.columns + columns.begin;
  const std::size_t elements = columns.end - columns.begin;
  write_shares(args, call, token, shares);
  const float* const residual =
      floats_of(DType::F32, call.inputs[3], token * args.residual_strides[0] + columns.begin * args.residual_strides[1],
                args.residual_strides[1], elements, buffer);
  std::copy_n(residual, elements, sum);
  for (std::uint64_t j = 0; j < shares.size(); ++j) {
    const std::uint64_t begin = token * args.x_strides[0] + j * args.x_strides[1] + columns.begin * args.x_strides[2];
    const float* const x = floats_of(DType::F32, call.inputs[0], begin, args.x_strides[2], elements, buffer);
    add_scaled_row(x, static_cast<float>(shares[j]), elements, sum);
  }
}

int run(const CpuCall& call) {
  const auto& args = call.args<ExpertsSumArgs>();
  const std::uint64_t tokens = valid_rows(args.tokens, static_cast<Extent>(args.extent), *call.parameters);
  for_each_piece(call, tokens, args.columns, kExpertsSumPiece,
                 [&](std::uint64_t token, Range columns) { sum_piece(args, call, token, columns); });
  return 0;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shunt {
namespace {

HWY_EXPORT(run);

CpuWork work(const OpCall& call, std::uint32_t) {
  return {.phases = 1,
          .shared_scratch_bytes = 0,
          .thread_scratch_bytes = call.input(0).shape[1] * sizeof(double) + kExpertsSumPiece * sizeof(float)};
}

}  // namespace

extern const CpuKernel experts_sum_simd{fits_arguments, work, write_arguments<experts_sum_arguments>,
                                        [](const CpuCall& call) { return HWY_DYNAMIC_DISPATCH(run)(call); }};

}  // namespace shunt
#endif
