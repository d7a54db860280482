// A block multiplies one row of an expert's matrix by one row of x.
#include "ops/experts/experts_args.h"

#include "ops/weight.cuh"

SHUNT_KERNEL(experts) {
  using namespace shunt;
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
    const float* const norm = args.has_norm == 0 ? nullptr : input_of<float>(call, 4);
    float factor = 1.0F;
    if (args.has_norm != 0) {
      const float squares = sum_of_columns(
          args.k, [&](std::uint64_t column) { return x[column * args.x_strides[2]] * x[column * args.x_strides[2]]; });
      factor = 1.0F / kernel_math::sqrt(squares / static_cast<float>(args.k) + args.epsilon);
    }
    const auto product = [&](std::uint32_t input) {
      const std::uint8_t* const weight =
          input_of<std::uint8_t>(call, input) + expert_weight_offset(args, slot) + row * args.weight_row_bytes;
      return sum_of_columns(args.k, [&](std::uint64_t column) {
        const float element =
            norm == nullptr ? x[column * args.x_strides[2]] : x[column * args.x_strides[2]] * factor * norm[column];
        return element * weight_at(args.weight_dtype, weight, static_cast<std::uint32_t>(column));
      });
    };
    sum = product(1);
    if (args.has_up != 0) sum = sum / (1.0F + kernel_math::exp(-sum)) * product(3);
    if (args.has_bias != 0)
      sum += input_of<float>(call, 4)[std::uint64_t{slot} * args.bias_strides[0] + row * args.bias_strides[1]];
  }
  if (lane() == 0) output_of<float>(call)[group()] = sum;
}
