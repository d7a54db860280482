#include "ops/cache/cache.h"

#include <fmt/format.h>

#include "ops/kernel_arguments.h"
#include "ops/quantize/encode.h"
#include "ops/rotary/reference.h"
#include "ops/rules.h"

namespace shunt {
namespace {

Result<ResultShape> result_shape(InputOperands inputs, const Attributes& attributes) {
  const Operand& state = *inputs[0];
  const Operand& x = *inputs[1];
  SHUNT_TRY(need_rank("state", state, 4));
  SHUNT_TRY(need_rotary(x, attributes));
  SHUNT_TRY(need_cache("state", state));
  if (!state.is_contiguous()) return invalid(fmt::format("state {} is a strided view", text_of(state)));
  if (state.shape[1] == 0 || state.shape[2] != x.shape[1] || state.shape[3] != x.shape[2])
    return invalid(fmt::format("state {} does not hold heads of x {}", text_of(state), text_of(x)));
  SHUNT_TRY(need_page_table(inputs, 2, x.shape[0]));
  return ResultShape{.operand = state};
}

Cost cost_of(const OpCall& call) {
  const double written = bytes_of(call.input(1));
  return {
      .flops = static_cast<double>(call.input(1).shape.elements()), .bytes_read = written, .bytes_written = written};
}

void make_sample(SampleBuilder& sample) {
  const DType state = sample.pick(cache_dtypes());
  const DType dtype = sample.pick_floating();
  const Paging paging = pick_paging(sample);
  const std::uint32_t heads = sample.pick({3U, 1U});
  const std::uint32_t head_dim = whole_blocks(state, sample.pick({64U, 2U, 34U, 192U}));
  const View view = sample.pick_view();
  if (sample.takes(Attr::rotary_halves)) set_rotary_attributes(sample, head_dim);
  sample.add({.dtype = state, .shape = {paging.pages, paging.page_tokens, heads, head_dim}, .kind = TensorKind::state});
  sample.add(
      {.dtype = dtype, .shape = {paging.tokens.count, heads, head_dim}, .extent = paging.tokens.extent, .view = view});
  add_paging(sample, paging);
}

void make_bench(BenchBuilder& bench) {
  bench.add_state();
  bench.add_values({bench.rows(), bench.sizes().kv_heads, bench.sizes().head_dim});
  bench.add_page_table();
}

// Consecutive cached tokens.
BenchIndices bench_indices(const BenchCase& use, std::size_t index) {
  const Shape& cache = use.shape(0);
  if (index == 2) return {.step = 1, .modulus = std::uint64_t{cache[0]} * cache[1]};
  return index == 4 ? BenchIndices{.step = 1, .modulus = cache[0]} : BenchIndices{};
}

CpuWork work(const OpCall& call, std::uint32_t) {
  return {.phases = 1,
          .shared_scratch_bytes = 0,
          .thread_scratch_bytes = std::uint64_t{call.input(1).shape.columns()} * sizeof(float)};
}

void write_row(const CacheArgs& args, const CpuCall& call, std::uint64_t row) {
  const StridedTensor& x = args.rotary.x;
  const std::uint64_t heads = x.extents[2];
  const std::uint64_t token = row / heads;
  const std::int32_t position = call.in<std::int32_t>(2)[token * args.table.position_stride];
  const std::int32_t sequence = call.in<std::int32_t>(3)[token * args.table.sequence_stride];
  const std::uint64_t slot = state_slot(args.table, call.in<std::int32_t>(4), sequence, position);
  if (slot == kNoSlot) return;
  const DType from = static_cast<DType>(x.dtype);
  const DType to = static_cast<DType>(args.state_dtype);
  auto* const values = reinterpret_cast<float*>(call.thread_scratch);
  const auto put = [&](std::uint32_t i, double value) { values[i] = static_cast<float>(value); };
  if (args.rotates != 0)
    rotate_head(args.rotary, call.inputs[1], row_offset(x, row), position, nullptr, put);
  else
    for (std::uint32_t i = 0; i < x.extents[3]; ++i)
      put(i, load_element(from, call.inputs[1], row_offset(x, row) + std::uint64_t{i} * x.strides[3]));
  encode_row(to, values, x.extents[3],
             call.output + (slot * heads + row % heads) * cached_head_bytes(to, x.extents[3]));
}

int run(const CpuCall& call) {
  const auto& args = call.args<CacheArgs>();
  const Range share = share_of(valid_row_count(args.rotary.x, *call.parameters), call.share, call.shares);
  for (std::uint64_t row = share.begin; row < share.end; ++row) write_row(args, call, row);
  return 0;
}

}  // namespace

CacheArgs cache_arguments(const OpCall& call) {
  CacheArgs args;
  if (call.op == Op::rotary) {
    args.rotary = rotary_arguments(call);
    args.rotates = 1;
    args.table.position_stride = args.rotary.position_stride;
    args.state_dtype = static_cast<std::uint32_t>(call.output->dtype);
    return args;
  }
  args.x_input = 1;
  args.writes_state = 1;
  args.rotates = call.op == Op::rotary_cache_write ? 1 : 0;
  if (args.rotates != 0)
    args.rotary = rotary_arguments(call, call.input(1), call.input(2), nullptr);
  else
    args.rotary.x = strided(call.input(1));
  args.table = page_table(call.input(0), call.input(2), call.input(3), call.input(4));
  args.state_dtype = static_cast<std::uint32_t>(call.input(0).dtype);
  return args;
}

extern const CpuKernel cache_scalar{fits_arguments, work, write_arguments<cache_arguments>, run};

extern const OpRule cache_write_rule{.shape = result_shape,
                                     .cost = cost_of,
                                     .sample = make_sample,
                                     .bench = make_bench,
                                     .bench_dtype = DType::F16,
                                     .bench_indices = bench_indices};

}  // namespace shunt
