#include "ops/attention/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/elements.h"
#include "ops/kernel_arguments.h"
#include "ops/rules.h"

namespace shunt {
namespace {

Result<ResultShape> result_shape(InputOperands inputs, const Attributes& attributes) {
  const Operand& query = *inputs[0];
  const Operand& keys = *inputs[1];
  const Operand& values = *inputs[2];
  SHUNT_TRY(need_floating("query", query));
  SHUNT_TRY(need_rank("query", query, 3));
  SHUNT_TRY(need_rank("keys", keys, 4));
  SHUNT_TRY(need_cache("keys", keys));
  if (values.dtype != keys.dtype || values.shape != keys.shape || values.kind != TensorKind::state)
    return invalid(fmt::format("keys {} and values {} must be state tensors alike", text_of(keys), text_of(values)));
  if (keys.shape[1] == 0 || keys.shape[2] == 0 || query.shape[1] % keys.shape[2] != 0 ||
      query.shape[2] != keys.shape[3])
    return invalid(fmt::format("heads of query {} do not divide over keys {}", text_of(query), text_of(keys)));
  SHUNT_TRY(need_page_table(inputs, 3, query.shape[0]));
  if (present(inputs, 6)) SHUNT_TRY(need("sinks", *inputs[6], DType::F32, Shape{query.shape[1]}));
  if (!(attributes.f32(Attr::soft_cap) >= 0))
    return invalid(fmt::format("soft_cap {} must not be negative", attributes.f32(Attr::soft_cap)));
  return value(DType::F32, query.shape, query.extent);
}

// Counts each token against half of its sequence's capacity, the average while it fills up, or the window if that is
// smaller.
Cost cost_of(const OpCall& call) {
  const Operand& query = call.input(0);
  const Operand& keys = call.input(1);
  const std::uint32_t window = call.attributes->u32(Attr::window);
  double positions = std::max(static_cast<double>(call.input(5).shape[1]) * keys.shape[1] / 2, 1.0);
  if (window != 0) positions = std::min<double>(positions, window);
  const double row =
      static_cast<double>(keys.shape[2]) * static_cast<double>(cached_head_bytes(keys.dtype, keys.shape[3]));
  return {.flops = 4.0 * static_cast<double>(query.shape.elements()) * positions,
          .bytes_read = bytes_of(query) + 2.0 * positions * row,
          .bytes_written = bytes_of(*call.output)};
}

void make_sample(SampleBuilder& sample) {
  struct Heads {
    std::uint32_t of_query;
    std::uint32_t of_state;
  };
  const DType state = sample.pick(cache_dtypes());
  const DType dtype = sample.pick_floating();
  const Paging paging = pick_paging(sample);
  const Heads heads = sample.pick({Heads{4, 2}, Heads{1, 1}, Heads{6, 1}, Heads{3, 3}});
  const std::uint32_t head_dim = whole_blocks(state, sample.pick({64U, 16U, 40U, 7U, 260U}));
  const View view = sample.pick_view();
  sample.set(Attr::scale, sample.pick({0.125F, 1.0F}));
  sample.add({.dtype = dtype,
              .shape = {paging.tokens.count, heads.of_query, head_dim},
              .extent = paging.tokens.extent,
              .view = view});
  for (int keys_then_values = 0; keys_then_values < 2; ++keys_then_values)
    sample.add({.dtype = state,
                .shape = {paging.pages, paging.page_tokens, heads.of_state, head_dim},
                .kind = TensorKind::state});
  add_paging(sample, paging);
  // Options that some kernels do not support. They are often left out so that those kernels are tested with all the
  // rest.
  struct More {
    float soft_cap = 0;
    std::uint32_t window = 0;
    bool sinks = false;
  };
  const More more = sample.pick({More{}, More{}, More{}, More{.soft_cap = 2}, More{.window = 3}, More{.sinks = true},
                                 More{.soft_cap = 5, .window = 1, .sinks = true}});
  sample.set(Attr::soft_cap, more.soft_cap);
  sample.set(Attr::window, more.window);
  if (more.sinks)
    sample.add({.shape = {heads.of_query}});
  else
    sample.add_absent();
}

void make_bench(BenchBuilder& bench) {
  bench.add_values({bench.rows(), bench.sizes().heads, bench.sizes().head_dim});
  bench.add_state();
  bench.add_state();
  bench.add_page_table();
}

// Each token sees half of the context, as its cost assumes.
BenchIndices bench_indices(const BenchCase& use, std::size_t index) {
  const Shape& cache = use.shape(1);
  const std::uint64_t context = std::uint64_t{cache[0]} * cache[1];
  if (index == 3) return {.first = std::max<std::uint64_t>(context / 2, 1) - 1, .modulus = context};
  return index == 5 ? BenchIndices{.step = 1, .modulus = cache[0]} : BenchIndices{};
}

CpuWork work(const OpCall& call, std::uint32_t) {
  return {
      .phases = 1, .shared_scratch_bytes = 0, .thread_scratch_bytes = call.input(0).shape.columns() * sizeof(double)};
}

// The online softmax of one query row over key and value rows.
class Row {
 public:
  Row(const AttentionArgs& args, const CpuCall& call, std::uint64_t row)
      : args_(args),
        call_(call),
        head_dim_(args.query.extents[3]),
        query_(row_offset(args.query, row)),
        sums_(reinterpret_cast<double*>(call.thread_scratch)) {
    for (std::uint64_t i = 0; i < head_dim_; ++i) sums_[i] = 0;
    if (args.has_sinks == 0) return;
    const double sink = static_cast<double>(call.in<float>(6)[row % args.query.extents[2] * args.sink_stride]);
    if (!(sink > largest_)) return;
    largest_ = sink;
    total_ = 1;
  }

  // Adds one key and value row, whose first element is `begin`.
  void see(std::uint64_t begin) {
    double score = 0;
    for (std::uint64_t i = 0; i < head_dim_; ++i)
      score +=
          load_element(static_cast<DType>(args_.query.dtype), call_.inputs[0], query_ + i * args_.query.strides[3]) *
          state(1, begin + i);
    score *= static_cast<double>(args_.scale);
    const double cap = static_cast<double>(args_.soft_cap);
    if (cap > 0) score = cap * std::tanh(score / cap);
    const double largest = std::max(largest_, score);
    const double shrink = std::exp(largest_ - largest);
    const double weight = std::exp(score - largest);
    for (std::uint64_t i = 0; i < head_dim_; ++i) sums_[i] = sums_[i] * shrink + weight * state(2, begin + i);
    total_ = total_ * shrink + weight;
    largest_ = largest;
  }

  void store(std::uint64_t begin) const {
    for (std::uint64_t i = 0; i < head_dim_; ++i)
      store_element(DType::F32, call_.output, begin + i, total_ == 0 ? 0 : sums_[i] / total_);
  }

 private:
  [[nodiscard]] double state(std::size_t input, std::uint64_t index) const {
    const DType dtype = static_cast<DType>(args_.state_dtype);
    if (dtype != DType::Q8_0) return load_element(dtype, call_.inputs[input], index);
    const auto block = load_as<Q8_0Block>(call_.inputs[input], index / 32);
    return static_cast<double>(f16_to_f32(block.scale)) * block.quants[index % 32];
  }

  const AttentionArgs& args_;
  const CpuCall& call_;
  std::uint64_t head_dim_;
  std::uint64_t query_;
  double* sums_;
  double largest_ = -std::numeric_limits<double>::max();
  double total_ = 0;
};

int run(const CpuCall& call) {
  const auto& args = call.args<AttentionArgs>();
  const std::uint64_t heads = args.query.extents[2];
  const std::uint64_t head_dim = args.query.extents[3];
  const Range share = share_of(valid_row_count(args.query, *call.parameters), call.share, call.shares);
  for (std::uint64_t row = share.begin; row < share.end; ++row) {
    const std::uint64_t token = row / heads;
    const std::uint64_t kv_head = row % heads / (heads / args.kv_heads);
    const std::int32_t position = call.in<std::int32_t>(3)[token * args.table.position_stride];
    const std::int32_t sequence = call.in<std::int32_t>(4)[token * args.table.sequence_stride];
    const std::uint64_t visible = visible_positions(args.table, sequence, position);
    Row sum(args, call, row);
    for (std::uint64_t at = first_position(args, position); at < visible; ++at) {
      const std::uint64_t slot =
          state_slot(args.table, call.in<std::int32_t>(5), sequence, static_cast<std::int64_t>(at));
      if (slot != kNoSlot) sum.see((slot * args.kv_heads + kv_head) * head_dim);
    }
    sum.store(row * head_dim);
  }
  return 0;
}

}  // namespace

std::string fits_attention_arguments(const OpCall& call) {
  if (!call.input(1).is_contiguous() || !call.input(2).is_contiguous()) return "needs contiguous keys and values";
  return fits_arguments(call);
}

AttentionArgs attention_arguments(const OpCall& call) {
  AttentionArgs args;
  args.query = strided(call.input(0));
  args.table = page_table(call.input(1), call.input(3), call.input(4), call.input(5));
  args.kv_heads = call.input(1).shape[2];
  args.state_dtype = static_cast<std::uint32_t>(call.input(1).dtype);
  args.scale = call.attributes->f32(Attr::scale);
  args.soft_cap = call.attributes->f32(Attr::soft_cap);
  args.window = call.attributes->u32(Attr::window);
  if (call.has_input(6)) {
    args.has_sinks = 1;
    args.sink_stride = static_cast<std::uint32_t>(call.input(6).strides[0]);
  }
  return args;
}

std::uint64_t visible_at_most(const OpCall& call) {
  const AttentionArgs args = attention_arguments(call);
  const std::uint64_t capacity = std::uint64_t{args.table.sequence_pages} * args.table.page_tokens;
  return args.window == 0 ? capacity : std::min<std::uint64_t>(capacity, args.window);
}

extern const CpuKernel attention_scalar{fits_attention_arguments, work, write_arguments<attention_arguments>, run};

extern const OpRule attention_rule{.shape = result_shape,
                                   .cost = cost_of,
                                   .sample = make_sample,
                                   .bench = make_bench,
                                   .bench_dtype = DType::F16,
                                   .bench_indices = bench_indices};

}  // namespace shunt
