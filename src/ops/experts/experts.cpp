#include "ops/experts/experts.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "ops/elements.h"
#include "ops/kernel_arguments.h"
#include "ops/quantize/blocks.h"
#include "ops/rules.h"
#include "ops/strided.h"

namespace shunt {
namespace {

Result<ResultShape> result_shape(InputOperands inputs, const Attributes&) {
  const Operand& x = *inputs[0];
  const Operand& weight = *inputs[1];
  const Operand& ids = *inputs[2];
  SHUNT_TRY(need_rank("ids", ids, 2));
  if (x.shape.rank() != 2) SHUNT_TRY(need_rank("x", x, 3));
  SHUNT_TRY(need_rank("weight", weight, 3));
  if (ids.dtype != DType::I32) return invalid(fmt::format("ids must be I32, are {}", text_of(ids)));
  if (x.dtype != DType::F32) return invalid(fmt::format("x must be F32, is {}", text_of(x)));
  if (info_of(weight.dtype).kind == DTypeKind::integer)
    return invalid(fmt::format("weight must not be {}", text_of(weight)));
  const std::uint32_t used = ids.shape[1];
  if (x.shape[0] != ids.shape[0] || (x.shape.rank() == 3 && x.shape[1] != 1 && x.shape[1] != used))
    return invalid(fmt::format("x {} must have the tokens of ids {}, and a row for all or for each of its experts",
                               text_of(x), text_of(ids)));
  if (x.shape.columns() != weight.shape[2])
    return invalid(fmt::format("columns of x {} and weight {} differ", text_of(x), text_of(weight)));
  if (present(inputs, 3)) {
    SHUNT_TRY(need_rank("slots", *inputs[3], 1));
    if (inputs[3]->dtype != DType::I32) return invalid(fmt::format("slots must be I32, are {}", text_of(*inputs[3])));
  }
  if (present(inputs, 4)) SHUNT_TRY(need("bias", *inputs[4], DType::F32, Shape{weight.shape[0], weight.shape[1]}));
  return value(DType::F32, Shape{ids.shape[0], used, weight.shape[1]}, x.extent);
}

// Reads at most one matrix for each use of an expert.
Cost cost_of(const OpCall& call) {
  const Operand& weight = call.input(1);
  const Shape& ids = call.input(2).shape;
  const auto uses = static_cast<double>(ids.elements());
  const double share = weight.shape[0] == 0 ? 0 : std::min(1.0, uses / weight.shape[0]);
  return {.flops = 2.0 * static_cast<double>(call.output->shape.elements()) * weight.shape.columns(),
          .bytes_read = bytes_of(call.input(0)) + bytes_of(weight) * share,
          .bytes_written = bytes_of(*call.output)};
}

void make_sample(SampleBuilder& sample) {
  const DType weight = sample.pick_weight();
  const std::uint32_t columns = sample.pick_columns(weight);
  const Entries entries = sample.pick_entries();
  const std::uint32_t used = sample.pick({2U, 1U, 3U});
  const std::uint32_t experts = sample.pick({4U, 1U, 9U});
  const std::uint32_t rows = sample.pick_weight_rows({5U, 1U, 48U, 131U});
  const bool row_for_each = sample.pick({false, true});
  const bool has_slots = sample.pick({false, true});
  const bool has_bias = sample.pick({false, true});
  const View view = sample.pick_view();
  const std::uint32_t held = has_slots ? experts / 2 + 1 : experts;
  sample.add({.shape = {entries.count, row_for_each ? used : 1, columns}, .extent = entries.extent, .view = view});
  sample.add({.dtype = weight, .shape = {held, rows, columns}, .kind = TensorKind::weight});
  sample.add_indices({entries.count, used}, entries.extent, sample.indices(entries.count * used, experts));
  if (has_slots) {
    // Every other expert is held; the last of them has slot 0.
    std::vector<std::int32_t> slots(experts, -1);
    for (std::uint32_t expert = 0; expert < experts; expert += 2)
      slots[expert] = static_cast<std::int32_t>((experts - 1) / 2 - expert / 2);
    sample.add_indices({experts}, Extent::fixed, slots);
  } else {
    sample.add_absent();
  }
  if (has_bias)
    sample.add({.shape = {held, rows}, .kind = TensorKind::weight});
  else
    sample.add_absent();
}

void make_swiglu_sample(SampleBuilder& sample) {
  const bool has_norm = sample.takes(Attr::epsilon);
  const DType weight = sample.pick_weight();
  const std::uint32_t columns = sample.pick_columns(weight);
  const Entries entries = sample.pick_entries();
  const std::uint32_t used = sample.pick({2U, 1U, 3U});
  const std::uint32_t experts = sample.pick({4U, 1U, 9U});
  const std::uint32_t rows = sample.pick_weight_rows({5U, 1U, 48U, 131U});
  // A row for all experts of a token, without an axis for them or with one, or a row for each.
  const std::uint32_t x_rows = sample.pick({0U, 1U, used});
  const Shape x = x_rows == 0 ? Shape{entries.count, columns} : Shape{entries.count, x_rows, columns};
  const View view = sample.pick_view();
  if (has_norm) sample.set(Attr::epsilon, sample.pick({1e-5F, 0.5F}));
  const SampleBuilder::Request matrices{.dtype = weight, .shape = {experts, rows, columns}, .kind = TensorKind::weight};
  sample.add({.shape = x, .extent = entries.extent, .view = view});
  sample.add(matrices);
  // Some of the indices may be out of range.
  sample.add_indices({entries.count, used}, entries.extent, sample.indices(entries.count * used, experts + 1));
  sample.add(matrices);
  if (has_norm) sample.add({.shape = {columns}, .kind = TensorKind::weight});
}

Result<ResultShape> swiglu_result_shape(InputOperands inputs, const Attributes& attributes) {
  SHUNT_TRY(need("up", *inputs[3], inputs[1]->dtype, inputs[1]->shape));
  return result_shape(inputs.first(3), attributes);
}

Result<ResultShape> norm_swiglu_result_shape(InputOperands inputs, const Attributes& attributes) {
  SHUNT_TRY_ASSIGN(ResultShape result, swiglu_result_shape(inputs, attributes));
  SHUNT_TRY(need("norm", *inputs[4], DType::F32, Shape{inputs[0]->shape.columns()}));
  return result;
}

Cost swiglu_cost_of(const OpCall& call) {
  Cost cost = cost_of(call);
  cost.flops *= 2;
  if (call.has_input(4)) cost.flops += rowwise_cost(call).flops;
  cost.bytes_read += cost.bytes_read - bytes_of(call.input(0));
  return cost;
}

// Returns the matrices of a layer.
Operand bench_matrices(const BenchBuilder& bench) {
  return BenchBuilder::weight(bench.dtype(), {kBenchExperts, bench.sizes().feed_forward, bench.sizes().embedding});
}

void make_bench(BenchBuilder& bench) {
  bench.add_values({bench.rows(), 1, bench.sizes().embedding});
  bench.add(bench_matrices(bench));
  bench.add_indices({bench.rows(), kBenchUsedExperts});
  bench.fill_up(bench_matrices(bench));
}

void make_norm_bench(BenchBuilder& bench) {
  bench.add_values({bench.rows(), bench.sizes().embedding});
  bench.add(bench_matrices(bench));
  bench.add_indices({bench.rows(), kBenchUsedExperts});
  bench.add(bench_matrices(bench));
  bench.add(BenchBuilder::weight(DType::F32, {bench.sizes().embedding}));
}

BenchIndices bench_indices(const BenchCase& use, std::size_t) {
  return {.first = 1, .step = 3, .modulus = use.shape(1)[0]};
}

// Each thread has a decoded row of the weight and one of x.
CpuWork work(const OpCall& call, std::uint32_t) {
  return {.phases = 1,
          .shared_scratch_bytes = 0,
          .thread_scratch_bytes = std::uint64_t{2} * call.input(1).shape.columns() * sizeof(float)};
}

// One use of an expert.
struct Use {
  const ExpertsArgs& args;
  const CpuCall& call;
  std::uint64_t token;
  std::uint64_t place;  // among the token's experts

  [[nodiscard]] std::uint32_t slot() const {
    const std::int32_t* const slots = args.has_slots == 0 ? nullptr : call.in<std::int32_t>(3);
    return expert_slot(args, call.in<std::int32_t>(2), slots, token, place);
  }
  [[nodiscard]] float* decoded() const { return reinterpret_cast<float*>(call.thread_scratch); }
  [[nodiscard]] float* x() const { return decoded() + args.k; }

  void read_x() const {
    const float* const from = call.in<float>(0) + expert_x_offset(args, token, place);
    double squares = 0;
    for (std::uint64_t column = 0; column < args.k; ++column) {
      x()[column] = from[column * args.x_strides[2]];
      squares += static_cast<double>(x()[column]) * static_cast<double>(x()[column]);
    }
    if (args.has_norm == 0) return;
    const double root = std::sqrt(squares / args.k + static_cast<double>(args.epsilon));
    for (std::uint64_t column = 0; column < args.k; ++column)
      x()[column] =
          static_cast<float>(static_cast<double>(x()[column]) / root * static_cast<double>(call.in<float>(4)[column]));
  }
  // Multiplies a row of a matrix of input `weight`.
  [[nodiscard]] double product(std::size_t weight, std::uint32_t slot, std::uint64_t row) const {
    decode_row(static_cast<DType>(args.weight_dtype),
               call.inputs[weight] + expert_weight_offset(args, slot) + row * args.weight_row_bytes, args.k, decoded());
    double sum = 0;
    for (std::uint64_t column = 0; column < args.k; ++column)
      sum += static_cast<double>(decoded()[column]) * static_cast<double>(x()[column]);
    return sum;
  }
  [[nodiscard]] double element(std::uint32_t slot, std::uint64_t row) const {
    double sum = product(1, slot, row);
    if (args.has_bias != 0)
      sum += static_cast<double>(
          call.in<float>(4)[slot * std::uint64_t{args.bias_strides[0]} + row * args.bias_strides[1]]);
    return args.has_up == 0 ? sum : sum / (1 + std::exp(-sum)) * product(3, slot, row);
  }
};

int run(const CpuCall& call) {
  const auto& args = call.args<ExpertsArgs>();
  const std::uint64_t tokens = valid_rows(args.tokens, static_cast<Extent>(args.extent), *call.parameters);
  const Range rows = share_of(args.m, call.share, call.shares);
  for (std::uint64_t number = 0; number < tokens * args.used; ++number) {
    const Use use{args, call, number / args.used, number % args.used};
    const std::uint32_t slot = use.slot();
    if (slot != kNoExpert) use.read_x();
    for (std::uint64_t row = rows.begin; row < rows.end; ++row)
      call.out<float>()[number * args.m + row] = slot == kNoExpert ? 0.0F : static_cast<float>(use.element(slot, row));
  }
  return 0;
}

bool has_up(const OpCall& call) { return info_of(call.op).inputs[3] == "up"; }
bool normalizes(const OpCall& call) { return info_of(call.op).inputs.back() == "norm"; }

}  // namespace

std::string up_refusal(const OpCall& call) {
  if (!has_up(call)) return {};
  return fmt::format(
      "{}: the kernel multiplies by one weight only; linear_experts and swiglu do that one after the other",
      name_of(call.op));
}

std::string experts_refusal(const OpCall& call) {
  const Operand& weight = call.input(1);
  const DTypeInfo& info = info_of(weight.dtype);
  if (has_up(call) && call.input(3).strides != weight.strides)
    return fmt::format("{}: gate and up must lie alike", name_of(call.op));
  if (normalizes(call) && !call.input(4).is_contiguous())
    return fmt::format("{}: norm must be contiguous", name_of(call.op));
  if (!weight.has_contiguous_rows()) return "linear_experts: the elements of a row of weight must be neighbours";
  const std::uint64_t row = weight.strides[1];
  if (weight.shape[2] % info.block_elements != 0 || row % info.block_elements != 0)
    return fmt::format("linear_experts: rows of weight {} {} are not whole blocks of {}", info.name,
                       to_string(weight.shape), info.block_elements);
  if (row / info.block_elements * info.block_bytes > std::numeric_limits<std::uint32_t>::max())
    return fmt::format("linear_experts: a row of weight {} {} is larger than 4 GiB", info.name,
                       to_string(weight.shape));
  if (row != 0 && weight.strides[0] % row != 0)
    return fmt::format("linear_experts: matrices of weight {} {} are not whole rows apart", info.name,
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
  args.x_strides[1] = x.shape.rank() == 2 || x.shape[1] == 1 ? 0 : stride(x, 1);
  args.x_strides[2] = stride(x, x.shape.rank() - 1);
  for (std::size_t axis = 0; axis < 2; ++axis) args.id_strides[axis] = stride(ids, axis);
  args.tokens = ids.shape[0];
  args.extent = static_cast<std::uint32_t>(x.extent);
  args.used = ids.shape[1];
  args.k = weight.shape[2];
  args.m = weight.shape[1];
  args.held = weight.shape[0];
  args.experts = args.held;
  args.has_up = has_up(call) ? 1 : 0;
  if (args.has_up == 0 && call.has_input(3)) {
    args.has_slots = 1;
    args.experts = call.input(3).shape[0];
    args.slot_stride = stride(call.input(3), 0);
  }
  if (normalizes(call)) {
    args.has_norm = 1;
    args.epsilon = call.attributes->f32(Attr::epsilon);
  } else if (call.has_input(4)) {
    args.has_bias = 1;
    for (std::size_t axis = 0; axis < 2; ++axis) args.bias_strides[axis] = stride(call.input(4), axis);
  }
  args.weight_dtype = static_cast<std::uint32_t>(weight.dtype);
  args.weight_row_bytes = static_cast<std::uint32_t>(weight.strides[1] / info.block_elements * info.block_bytes);
  args.weight_rows = weight.strides[1] == 0 ? 0 : static_cast<std::uint32_t>(weight.strides[0] / weight.strides[1]);
  return args;
}

extern const CpuKernel experts_scalar{experts_refusal, work, write_arguments<experts_arguments>, run};

extern const OpRule experts_swiglu_rule{.shape = swiglu_result_shape,
                                        .cost = swiglu_cost_of,
                                        .sample = make_swiglu_sample,
                                        .bench = make_bench,
                                        .bench_dtype = DType::Q8_0,
                                        .bench_indices = bench_indices};
extern const OpRule norm_experts_swiglu_rule{.shape = norm_swiglu_result_shape,
                                             .cost = swiglu_cost_of,
                                             .sample = make_swiglu_sample,
                                             .bench = make_norm_bench,
                                             .bench_dtype = DType::Q8_0,
                                             .bench_indices = bench_indices};
extern const OpRule linear_experts_rule{.shape = result_shape,
                                        .cost = cost_of,
                                        .sample = make_sample,
                                        .bench = make_bench,
                                        .bench_dtype = DType::Q8_0,
                                        .bench_indices = bench_indices};

}  // namespace shunt
