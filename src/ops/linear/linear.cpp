#include "ops/linear/linear.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "ops/elements.h"
#include "ops/kernel.h"
#include "ops/quantize/blocks.h"
#include "ops/rules.h"

namespace shunt {
namespace {

Result<ResultShape> result_shape(InputOperands inputs, const Attributes&) {
  const Operand& x = *inputs[0];
  const Operand& weight = *inputs[1];
  SHUNT_TRY(need_floating("x", x));
  SHUNT_TRY(need_rank("weight", weight, 2));
  if (info_of(weight.dtype).kind == DTypeKind::integer)
    return invalid(fmt::format("weight must not be {}", text_of(weight)));
  if (x.shape.rank() == 0 || x.shape.columns() != weight.shape[1])
    return invalid(fmt::format("columns of x {} and weight {} differ", text_of(x), text_of(weight)));
  Shape shape = x.shape;
  shape.set(shape.rank() - 1, weight.shape[0]);
  if (present(inputs, 2)) SHUNT_TRY(need("residual", *inputs[2], DType::F32, shape));
  return value(DType::F32, shape, x.extent);
}

Cost cost_of(const OpCall& call) {
  Cost cost = read_all_write_one(call);
  cost.flops = 2.0 * static_cast<double>(call.output->shape.elements()) * call.input(0).shape.columns();
  return cost;
}

void make_sample(SampleBuilder& sample) {
  const DType weight = sample.pick_weight();
  const std::uint32_t columns = sample.pick_columns(weight);
  const DType dtype = sample.pick_floating();
  const Entries entries = sample.pick_entries();
  const std::uint32_t rows = sample.pick_weight_rows({5U, 1U, 48U, 131U});
  const View view = sample.pick_view();
  const bool has_middle_axis = sample.pick({false, false, true});
  Shape x{entries.count, columns};
  Shape result{entries.count, rows};
  if (has_middle_axis) x = Shape{entries.count, 2, columns};
  if (has_middle_axis) result = Shape{entries.count, 2, rows};
  sample.add({.dtype = dtype, .shape = x, .extent = entries.extent, .view = view});
  sample.add({.dtype = weight, .shape = {rows, columns}, .kind = TensorKind::weight});
  if (sample.row().inputs.size() > 2) sample.add({.shape = result, .extent = entries.extent});
}

void make_bench(BenchBuilder& bench) {
  const OpSizes& sizes = bench.sizes();
  bench.add_values({bench.rows(), sizes.embedding});
  bench.add(BenchBuilder::weight(bench.dtype(), {sizes.feed_forward, sizes.embedding}));
  bench.fill_up(BenchBuilder::values({bench.rows(), sizes.feed_forward}));
}

Result<ResultShape> norm_linear_result_shape(InputOperands inputs, const Attributes&) {
  const Operand& x = *inputs[0];
  const Operand& weight = *inputs[1];
  if (x.dtype != DType::F32) return invalid(fmt::format("x must be F32, is {}", text_of(x)));
  SHUNT_TRY_ASSIGN(ResultShape result, result_shape(inputs.first(2), {}));
  SHUNT_TRY(need("norm", *inputs[2], DType::F32, Shape{weight.shape[1]}));
  if (present(inputs, 3)) SHUNT_TRY(need("up", *inputs[3], weight.dtype, weight.shape));
  return result;
}

Cost norm_linear_cost_of(const OpCall& call) {
  Cost cost = cost_of(call);
  cost.flops = cost.flops * static_cast<double>(call.inputs.size() - 2) + rowwise_cost(call).flops;
  return cost;
}

void make_norm_linear_sample(SampleBuilder& sample) {
  const DType weight = sample.pick_weight();
  const std::uint32_t columns = sample.pick_columns(weight);
  const Entries entries = sample.pick_entries();
  const std::uint32_t rows = sample.pick_weight_rows({5U, 1U, 48U, 131U});
  const View view = sample.pick_view();
  sample.set(Attr::epsilon, sample.pick({1e-5F, 0.5F}));
  sample.add({.shape = {entries.count, columns}, .extent = entries.extent, .view = view});
  sample.add({.dtype = weight, .shape = {rows, columns}, .kind = TensorKind::weight});
  sample.add({.shape = {columns}, .kind = TensorKind::weight});
  if (sample.row().inputs.size() > 3)
    sample.add({.dtype = weight, .shape = {rows, columns}, .kind = TensorKind::weight});
}

void make_norm_linear_bench(BenchBuilder& bench) {
  const OpSizes& sizes = bench.sizes();
  const Operand matrix = BenchBuilder::weight(bench.dtype(), {sizes.feed_forward, sizes.embedding});
  bench.add_values({bench.rows(), sizes.embedding});
  bench.add(matrix);
  bench.add(BenchBuilder::weight(DType::F32, {sizes.embedding}));
  bench.fill_up(matrix);
}

constexpr std::uint64_t kMax32 = std::numeric_limits<std::uint32_t>::max();

// Writes the strides of a [..., columns] operand, with that of the columns last. Missing axes have extent 1.
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
  if (std::string reason = rows_refusal(call, "weight", weight); !reason.empty()) return reason;
  if (weight.shape[1] % info.block_elements != 0 || weight.strides[0] % info.block_elements != 0)
    return fmt::format("{}: rows of weight {} {} are not whole blocks of {}", op, info.name, to_string(weight.shape),
                       info.block_elements);
  if (weight.strides[0] / info.block_elements * info.block_bytes > kMax32)
    return fmt::format("{}: a row of weight {} {} is larger than 4 GiB", op, info.name, to_string(weight.shape));
  return {};
}

std::string norm_refusal(const OpCall& call) {
  if (!call.input(2).is_contiguous()) return fmt::format("{}: norm must be contiguous", name_of(call.op));
  if (call.has_input(3) && call.input(3).strides != call.input(1).strides)
    return fmt::format("{}: gate and up must lie alike", name_of(call.op));
  return call.has_input(3) ? weight_refusal(call, call.input(3)) : std::string();
}

std::string supports(const OpCall& call) { return linear_refusal(call); }

// Each thread has a decoded row of the weight and one of x. Normalized rows are shared by all threads.
CpuWork work(const OpCall& call, std::uint32_t) {
  const LinearArgs args = linear_args(call);
  CpuWork work{.phases = 1, .shared_scratch_bytes = 0, .thread_scratch_bytes = 2ULL * args.k * sizeof(float)};
  if (args.has_norm == 0) return work;
  work.phases = 2;
  work.shared_scratch_bytes = linear_capacity(args) * args.k * sizeof(float);
  return work;
}

void write_arguments(const OpCall& call, std::span<std::byte, kMaxArgumentBytes> out) {
  const LinearArgs args = linear_args(call);
  std::memcpy(out.data(), &args, sizeof(args));
}

// Uses four partial sums so that additions do not wait for each other.
double dot(const float* a, const float* b, std::uint64_t count) {
  double sums[4] = {0, 0, 0, 0};
  std::uint64_t i = 0;
  for (; i + 4 <= count; i += 4)
    for (std::uint64_t lane = 0; lane < 4; ++lane)
      sums[lane] += static_cast<double>(a[i + lane]) * static_cast<double>(b[i + lane]);
  for (; i < count; ++i) sums[0] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

void widen_row(const CpuCall& call, std::uint64_t row, float* to) {
  const auto& args = call.args<LinearArgs>();
  const std::uint64_t begin = row_offset(args.extents, args.x_strides, row);
  for (std::uint64_t column = 0; column < args.k; ++column)
    to[column] = static_cast<float>(
        load_element(static_cast<DType>(args.x_dtype), call.inputs[0], begin + column * args.x_strides[3]));
}

void normalize_rows(const CpuCall& call, std::uint64_t rows) {
  const auto& args = call.args<LinearArgs>();
  const Range range = share_of(rows, call.share, call.shares);
  for (std::uint64_t row = range.begin; row < range.end; ++row) {
    float* const x = reinterpret_cast<float*>(call.shared_scratch) + row * args.k;
    widen_row(call, row, x);
    const double mean = dot(x, x, args.k) / static_cast<double>(args.k);
    const double root = std::sqrt(mean + static_cast<double>(args.epsilon));
    for (std::uint64_t column = 0; column < args.k; ++column)
      x[column] =
          static_cast<float>(static_cast<double>(x[column]) / root * static_cast<double>(call.in<float>(2)[column]));
  }
}

// Multiplies row r of a weight by each of the first `rows` rows of x and calls store(row, product).
template <class Store>
void multiply_row(const CpuCall& call, const std::byte* weight, std::uint64_t r, std::uint64_t rows,
                  const Store& store) {
  const auto& args = call.args<LinearArgs>();
  auto* const decoded = reinterpret_cast<float*>(call.thread_scratch);
  decode_row(static_cast<DType>(args.weight_dtype), weight + r * args.weight_row_bytes, args.k, decoded);
  for (std::uint64_t row = 0; row < rows; ++row) {
    const float* x = decoded + args.k;
    if (args.has_norm == 0)
      widen_row(call, row, decoded + args.k);
    else
      x = reinterpret_cast<const float*>(call.shared_scratch) + row * args.k;
    store(row, dot(decoded, x, args.k));
  }
}

int run(const CpuCall& call) {
  const auto& args = call.args<LinearArgs>();
  const std::uint64_t rows = linear_rows(args, *call.parameters);
  if (args.has_norm != 0 && call.phase == 0) {
    normalize_rows(call, rows);
    return 0;
  }
  const Range range = share_of(args.m, call.share, call.shares);
  const auto out = [&](std::uint64_t row, std::uint64_t r) -> float& {
    return call.out<float>()[row_offset(args.extents, args.out_strides, row) + r];
  };
  for (std::uint64_t r = range.begin; r < range.end; ++r) {
    multiply_row(call, call.inputs[1], r, rows, [&](std::uint64_t row, double product) {
      if (args.has_residual != 0)
        product += static_cast<double>(call.in<float>(2)[row_offset(args.extents, args.residual_strides, row) + r]);
      out(row, r) = static_cast<float>(product);
    });
    if (args.has_up == 0) continue;
    multiply_row(call, call.inputs[3], r, rows, [&](std::uint64_t row, double product) {
      const auto gate = static_cast<double>(out(row, r));
      out(row, r) = static_cast<float>(gate / (1 + std::exp(-gate)) * product);
    });
  }
  return 0;
}

}  // namespace

std::string linear_refusal(const OpCall& call) {
  const Operand& x = call.input(0);
  if (!is_floating(x)) return fmt::format("{}: x must be F32, F16 or BF16, is {}", name_of(call.op), name_of(x.dtype));
  if (std::string reason = strides_refusal(call, "x", x); !reason.empty()) return reason;
  if (std::string reason = weight_refusal(call, call.input(1)); !reason.empty()) return reason;
  if (std::string reason = rows_refusal(call, "the result", *call.output); !reason.empty()) return reason;
  if (normalizes(call)) return norm_refusal(call);
  return call.has_input(2) ? rows_refusal(call, "residual", call.input(2)) : std::string();
}

bool normalizes(const OpCall& call) { return call.inputs.size() > 2 && info_of(call.op).inputs[2] == "norm"; }

std::string normalizes_refusal(const OpCall& call) {
  if (!normalizes(call)) return {};
  return fmt::format("{}: the kernel does not normalize x; rms_norm and linear do that one after the other",
                     name_of(call.op));
}

LinearArgs linear_args(const OpCall& call) {
  const Operand& x = call.input(0);
  const Operand& weight = call.input(1);
  const DTypeInfo& info = info_of(weight.dtype);
  LinearArgs args{};
  for (std::size_t axis = 0; axis < 4; ++axis) args.extents[axis] = axis + 1 < x.shape.rank() ? x.shape[axis] : 1;
  args.extent = static_cast<std::uint32_t>(x.shape.rank() > 1 ? x.extent : Extent::fixed);
  write_strides(x, args.x_strides);
  write_strides(*call.output, args.out_strides);
  if (normalizes(call)) {
    args.has_norm = 1;
    args.epsilon = call.attributes->f32(Attr::epsilon);
    args.has_up = call.has_input(3) ? 1 : 0;
  } else if (call.has_input(2)) {
    args.has_residual = 1;
    write_strides(call.input(2), args.residual_strides);
  }
  args.x_dtype = static_cast<std::uint32_t>(x.dtype);
  args.weight_dtype = static_cast<std::uint32_t>(weight.dtype);
  args.k = weight.shape[1];
  args.m = weight.shape[0];
  args.weight_row_bytes = static_cast<std::uint32_t>(weight.strides[0] / info.block_elements * info.block_bytes);
  return args;
}

extern const CpuKernel linear_scalar;
const CpuKernel linear_scalar{supports, work, write_arguments, run};

extern const OpRule linear_rule{.shape = result_shape,
                                .cost = cost_of,
                                .sample = make_sample,
                                .bench = make_bench,
                                .bench_dtype = DType::Q8_0,
                                .benches_every_weight = true};
extern const OpRule norm_linear_rule{.shape = norm_linear_result_shape,
                                     .cost = norm_linear_cost_of,
                                     .sample = make_norm_linear_sample,
                                     .bench = make_norm_linear_bench,
                                     .bench_dtype = DType::Q8_0};

}  // namespace shunt
