// A block multiplies one row of an expert's matrix by one row of x.
#include "ops/experts/experts_args.h"

#include "ops/matrix.cuh"

namespace shunt {
namespace {

template <bool in_strips>
SHUNT_FUNCTION void multiply(const CudaCall* call) {
  const auto& args = arguments_of<ExpertsArgs>(call);
  const std::uint64_t use = group() / args.m;
  const std::uint64_t row = group() % args.m;
  const std::uint64_t token = use / args.used;
  if (token >= valid_rows(args.tokens, static_cast<Extent>(args.extent), parameters_of(call))) return;
  const std::uint32_t slot =
      expert_slot(args, input_of<std::int32_t>(call, 2), input_of<std::int32_t>(call, 3), token, use % args.used);
  float sum = 0.0F;
  if (slot != kNoExpert) {
    const float* const x = input_of<float>(call, 0) + expert_x_offset(args, token, use % args.used);
    const Matrix<in_strips> weight{input_of<std::uint8_t>(call, 1) + expert_weight_offset(args, slot),
                                   args.weight_dtype, args.k, args.weight_row_bytes};
    sum = sum_of_columns(args.k, [&](std::uint64_t column) {
      return x[column * args.x_strides[2]] * weight.at(row, static_cast<std::uint32_t>(column));
    });
    if (args.has_bias != 0)
      sum += input_of<float>(call, 4)[std::uint64_t{slot} * args.bias_strides[0] + row * args.bias_strides[1]];
  }
  if (lane() == 0) output_of<float>(call)[group()] = sum;
}

}  // namespace
}  // namespace shunt

SHUNT_KERNEL(experts) { shunt::multiply<false>(call); }
SHUNT_KERNEL(experts_strips) { shunt::multiply<true>(call); }
