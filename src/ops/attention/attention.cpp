#include "ops/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/elements.h"
#include "ops/kernel_arguments.h"

namespace shunt {
namespace {

CpuWork work(const OpCall& call, std::uint32_t) {
  return {
      .phases = 1, .shared_scratch_bytes = 0, .thread_scratch_bytes = call.input(0).shape.columns() * sizeof(double)};
}

// The query row's products with one key or value row, and what the online softmax keeps.
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

  // `begin` is the first element of the key and value row.
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
    return load_element(static_cast<DType>(args_.state_dtype), call_.inputs[input], index);
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
  const Range share = share_of(valid_row_count(args.query, *call.parameters), call.thread, call.threads);
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

}  // namespace shunt
