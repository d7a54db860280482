#include "ops/experts/experts.h"

#include <fmt/format.h>

#include <limits>

#include "ops/elements.h"
#include "ops/kernel_arguments.h"
#include "ops/quantize/blocks.h"
#include "ops/strided.h"

namespace shunt {
namespace {

// A row of the weight for each thread.
CpuWork work(const OpCall& call, std::uint32_t) {
  return {
      .phases = 1, .shared_scratch_bytes = 0, .thread_scratch_bytes = call.input(1).shape.columns() * sizeof(float)};
}

double product(const ExpertsArgs& args, const CpuCall& call, std::uint64_t x, std::uint32_t slot, std::uint64_t row) {
  auto* const decoded = reinterpret_cast<float*>(call.thread_scratch);
  decode_row(static_cast<DType>(args.weight_dtype),
             call.inputs[1] + expert_weight_offset(args, slot) + row * args.weight_row_bytes, args.k, decoded);
  double sum = 0;
  for (std::uint64_t column = 0; column < args.k; ++column)
    sum +=
        static_cast<double>(decoded[column]) * static_cast<double>(call.in<float>(0)[x + column * args.x_strides[2]]);
  if (args.has_bias != 0)
    sum +=
        static_cast<double>(call.in<float>(4)[slot * std::uint64_t{args.bias_strides[0]} + row * args.bias_strides[1]]);
  return sum;
}

int run(const CpuCall& call) {
  const auto& args = call.args<ExpertsArgs>();
  const std::uint64_t tokens = valid_rows(args.tokens, static_cast<Extent>(args.extent), *call.parameters);
  const Range rows = share_of(args.m, call.thread, call.threads);
  const std::int32_t* const slots = args.has_slots == 0 ? nullptr : call.in<std::int32_t>(3);
  for (std::uint64_t use = 0; use < tokens * args.used; ++use) {
    const std::uint64_t token = use / args.used;
    const std::uint64_t place = use % args.used;
    const std::uint32_t slot = expert_slot(args, call.in<std::int32_t>(2), slots, token, place);
    for (std::uint64_t row = rows.begin; row < rows.end; ++row) {
      const double value = slot == kNoExpert ? 0 : product(args, call, expert_x_offset(args, token, place), slot, row);
      call.out<float>()[use * args.m + row] = static_cast<float>(value);
    }
  }
  return 0;
}

}  // namespace

std::string experts_refusal(const OpCall& call) {
  const Operand& weight = call.input(1);
  const DTypeInfo& info = info_of(weight.dtype);
  if (weight.layout != Layout::rows)
    return fmt::format("matmul_experts: weight is in layout {}, must be in layout rows", name_of(weight.layout));
  if (!weight.has_contiguous_rows()) return "matmul_experts: the elements of a row of weight must be neighbours";
  const std::uint64_t row = weight.strides[1];
  if (weight.shape[2] % info.block_elements != 0 || row % info.block_elements != 0)
    return fmt::format("matmul_experts: rows of weight {} {} are not whole blocks of {}", info.name,
                       to_string(weight.shape), info.block_elements);
  if (row / info.block_elements * info.block_bytes > std::numeric_limits<std::uint32_t>::max())
    return fmt::format("matmul_experts: a row of weight {} {} is larger than 4 GiB", info.name,
                       to_string(weight.shape));
  if (row != 0 && weight.strides[0] % row != 0)
    return fmt::format("matmul_experts: matrices of weight {} {} are not whole rows apart", info.name,
                       to_string(weight.shape));
  return fits_arguments(call);
}

ExpertsArgs experts_arguments(const OpCall& call) {
  const Operand& x = call.input(0);
  const Operand& weight = call.input(1);
  const Operand& ids = call.input(2);
  const DTypeInfo& info = info_of(weight.dtype);
  const auto stride = [](const Operand& operand, std::size_t axis) {
    return static_cast<std::uint32_t>(operand.strides[axis]);
  };
  ExpertsArgs args;
  args.x_strides[0] = stride(x, 0);
  args.x_strides[1] = x.shape[1] == 1 ? 0 : stride(x, 1);
  args.x_strides[2] = stride(x, 2);
  for (std::size_t axis = 0; axis < 2; ++axis) args.id_strides[axis] = stride(ids, axis);
  args.tokens = ids.shape[0];
  args.extent = static_cast<std::uint32_t>(x.extent);
  args.used = ids.shape[1];
  args.k = weight.shape[2];
  args.m = weight.shape[1];
  args.held = weight.shape[0];
  args.experts = args.held;
  if (call.has_input(3)) {
    args.has_slots = 1;
    args.experts = call.input(3).shape[0];
    args.slot_stride = stride(call.input(3), 0);
  }
  if (call.has_input(4)) {
    args.has_bias = 1;
    for (std::size_t axis = 0; axis < 2; ++axis) args.bias_strides[axis] = stride(call.input(4), axis);
  }
  args.weight_dtype = static_cast<std::uint32_t>(weight.dtype);
  args.weight_row_bytes = static_cast<std::uint32_t>(weight.strides[1] / info.block_elements * info.block_bytes);
  args.weight_rows = weight.strides[1] == 0 ? 0 : static_cast<std::uint32_t>(weight.strides[0] / weight.strides[1]);
  return args;
}

extern const CpuKernel experts_scalar{experts_refusal, work, write_arguments<experts_arguments>, run};

}  // namespace shunt
