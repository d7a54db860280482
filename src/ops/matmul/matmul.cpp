#include "ops/matmul/matmul.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "ops/elements.h"
#include "ops/kernel.h"
#include "ops/quantize/blocks.h"

namespace shunt {
namespace {

constexpr std::uint64_t kMax32 = std::numeric_limits<std::uint32_t>::max();

bool is_floating(const Operand& operand) { return info_of(operand.dtype).kind == DTypeKind::floating; }

// Strides of a [..., columns] operand, the last that of its columns; axes that it lacks are never stepped over.
void write_strides(const Operand& operand, std::uint32_t (&strides)[4]) {
  const std::size_t leading = operand.shape.rank() - 1;
  for (std::size_t axis = 0; axis < leading; ++axis) strides[axis] = static_cast<std::uint32_t>(operand.strides[axis]);
  strides[3] = static_cast<std::uint32_t>(operand.strides[leading]);
}

std::string strides_refusal(const OpCall& call, std::string_view name, const Operand& operand) {
  for (std::size_t axis = 0; axis < operand.shape.rank(); ++axis)
    if (operand.strides[axis] > kMax32)
      return fmt::format("{}: stride {} of axis {} of {} does not fit 32 bits", name_of(call.op), operand.strides[axis],
                         axis, name);
  return {};
}

std::string rows_refusal(const OpCall& call, std::string_view name, const Operand& operand) {
  if (!operand.has_contiguous_rows())
    return fmt::format("{}: the elements of a row of {} must be neighbours", name_of(call.op), name);
  return strides_refusal(call, name, operand);
}

std::string weight_refusal(const OpCall& call, const Operand& weight) {
  const std::string_view op = name_of(call.op);
  const DTypeInfo& info = info_of(weight.dtype);
  if (info.kind == DTypeKind::integer) return fmt::format("{}: weight must not be {}", op, info.name);
  if (weight.layout != Layout::rows)
    return fmt::format("{}: weight is in layout {}, must be in layout rows", op, name_of(weight.layout));
  if (std::string reason = rows_refusal(call, "weight", weight); !reason.empty()) return reason;
  if (weight.shape[1] % info.block_elements != 0 || weight.strides[0] % info.block_elements != 0)
    return fmt::format("{}: rows of weight {} {} are not whole blocks of {}", op, info.name, to_string(weight.shape),
                       info.block_elements);
  if (weight.strides[0] / info.block_elements * info.block_bytes > kMax32)
    return fmt::format("{}: a row of weight {} {} is larger than 4 GiB", op, info.name, to_string(weight.shape));
  return {};
}

std::string supports(const OpCall& call) { return matmul_refusal(call); }

// One decoded row of the weight and one of x for each thread.
CpuWork work(const OpCall& call, std::uint32_t) {
  const std::uint64_t columns = call.input(1).shape[1];
  return {.phases = 1, .shared_scratch_bytes = 0, .thread_scratch_bytes = 2 * columns * sizeof(float)};
}

void write_arguments(const OpCall& call, std::span<std::byte, kMaxArgumentBytes> out) {
  const MatmulArgs args = matmul_args(call);
  std::memcpy(out.data(), &args, sizeof(args));
}

// Four partial sums, so that additions need not wait for each other.
double dot(const float* a, const float* b, std::uint64_t count) {
  double sums[4] = {0, 0, 0, 0};
  std::uint64_t i = 0;
  for (; i + 4 <= count; i += 4)
    for (std::uint64_t lane = 0; lane < 4; ++lane)
      sums[lane] += static_cast<double>(a[i + lane]) * static_cast<double>(b[i + lane]);
  for (; i < count; ++i) sums[0] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

int run(const CpuCall& call) {
  const auto& args = call.args<MatmulArgs>();
  const auto x_dtype = static_cast<DType>(args.x_dtype);
  const std::uint64_t rows = matmul_rows(args, *call.parameters);
  const Range range = share_of(args.m, call.thread, call.threads);
  auto* const decoded = reinterpret_cast<float*>(call.thread_scratch);
  float* const widened = decoded + args.k;
  for (std::uint64_t r = range.begin; r < range.end; ++r) {
    decode_row(static_cast<DType>(args.weight_dtype), call.inputs[1] + r * args.weight_row_bytes, args.k, decoded);
    for (std::uint64_t row = 0; row < rows; ++row) {
      const std::uint64_t x_row = row_offset(args.extents, args.x_strides, row);
      for (std::uint64_t column = 0; column < args.k; ++column)
        widened[column] = static_cast<float>(load_element(x_dtype, call.inputs[0], x_row + column * args.x_strides[3]));
      double sum = dot(decoded, widened, args.k);
      if (args.has_residual != 0)
        sum += static_cast<double>(call.in<float>(2)[row_offset(args.extents, args.residual_strides, row) + r]);
      call.out<float>()[row_offset(args.extents, args.out_strides, row) + r] = static_cast<float>(sum);
    }
  }
  return 0;
}

}  // namespace

std::string matmul_refusal(const OpCall& call) {
  const Operand& x = call.input(0);
  if (!is_floating(x)) return fmt::format("{}: x must be F32, F16 or BF16, is {}", name_of(call.op), name_of(x.dtype));
  if (std::string reason = strides_refusal(call, "x", x); !reason.empty()) return reason;
  if (std::string reason = weight_refusal(call, call.input(1)); !reason.empty()) return reason;
  if (std::string reason = rows_refusal(call, "the result", *call.output); !reason.empty()) return reason;
  return call.has_input(2) ? rows_refusal(call, "residual", call.input(2)) : std::string();
}

MatmulArgs matmul_args(const OpCall& call) {
  const Operand& x = call.input(0);
  const Operand& weight = call.input(1);
  const DTypeInfo& info = info_of(weight.dtype);
  MatmulArgs args{};
  for (std::size_t axis = 0; axis < 4; ++axis) args.extents[axis] = axis + 1 < x.shape.rank() ? x.shape[axis] : 1;
  args.extent = static_cast<std::uint32_t>(x.shape.rank() > 1 ? x.extent : Extent::fixed);
  write_strides(x, args.x_strides);
  write_strides(*call.output, args.out_strides);
  if (call.has_input(2)) write_strides(call.input(2), args.residual_strides);
  args.has_residual = call.has_input(2) ? 1 : 0;
  args.x_dtype = static_cast<std::uint32_t>(x.dtype);
  args.weight_dtype = static_cast<std::uint32_t>(weight.dtype);
  args.k = weight.shape[1];
  args.m = weight.shape[0];
  args.weight_row_bytes = static_cast<std::uint32_t>(weight.strides[0] / info.block_elements * info.block_bytes);
  return args;
}

extern const CpuKernel matmul_scalar;
const CpuKernel matmul_scalar{supports, work, write_arguments, run};

}  // namespace shunt
