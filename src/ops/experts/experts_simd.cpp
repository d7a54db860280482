// The SIMD linear over selected experts. Uses (a token and one of its experts) are sorted by matrix. Each matrix is
// multiplied by its uses as linear multiplies token rows (row_products.h). A program for one token has one phase,
// without sorting. Others sort, prepare x of the matrices with many uses, if there can be any, and multiply. Threads
// prepare the uses of a matrix with few for themselves: a step more would take longer.
#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>

#include "ops/experts/experts.h"
#include "ops/experts/experts_parts.h"
#include "ops/kernel_arguments.h"
#include "ops/linear/row_products.h"

namespace shunt {
namespace {

struct alignas(16) ExpertsSimdArgs {
  ExpertsArgs experts;
  ProductRule rule;

  [[nodiscard]] std::uint64_t few() const { return few_rows_beside(rule.many); }
  // The cost of unpacking a row of a matrix, in products of it with one use, as measured with AVX2 and Q4_K.
  [[nodiscard]] std::uint64_t unpacking() const { return rule.many == Arithmetic::f32 ? 5 : 20; }
  // Prepared rows of a matrix begin at a multiple of so many: panels and strips, or whole lines of a cache.
  [[nodiscard]] std::uint64_t row_grain() const {
    static_assert(kPanelRows % kBf16StripRows == 0 && kBatchRows % kPanelRows == 0);
    return rule.many == Arithmetic::bytes || rule.many == Arithmetic::words ? 16 : kPanelRows;
  }
  [[nodiscard]] std::uint64_t to_grain(std::uint64_t rows) const {
    return (rows + row_grain() - 1) / row_grain() * row_grain();
  }
  // Returns whether a matrix may have more than few uses.
  [[nodiscard]] bool may_have_many() const { return std::uint64_t{experts.tokens} * experts.used > few(); }
};

// Uses sorted by matrix, in the shared scratch. Those of experts that are not held come last.
struct ExpertOrder {
  std::uint32_t* begins = nullptr;  // [held + 2], of the uses of each matrix, then of those without one
  std::uint32_t* rows = nullptr;    // [held], the first prepared row of each matrix with many uses
  std::uint32_t* uses = nullptr;    // [tokens * used]
  std::byte* prepared = nullptr;

  [[nodiscard]] std::uint32_t count(std::uint32_t slot) const { return begins[slot + 1] - begins[slot]; }
};

std::uint64_t aligned(std::uint64_t bytes) { return (bytes + 63) / 64 * 64; }
std::uint64_t order_bytes(std::uint64_t held, std::uint64_t uses) {
  return aligned((2 * held + 2 + uses) * sizeof(std::uint32_t));
}

// Returns the arguments of products with one matrix.
LinearArgs matrix_of(const ExpertsArgs& args) {
  LinearArgs linear;
  linear.k = args.k;
  linear.m = args.m;
  linear.x_dtype = static_cast<std::uint32_t>(DType::F32);
  linear.weight_dtype = args.weight_dtype;
  linear.weight_row_bytes = args.weight_row_bytes;
  return linear;
}

// The bytes of a thread that few uses are prepared in.
std::uint64_t few_bytes(const ExpertsSimdArgs& args) {
  const std::uint64_t rows = args.experts.tokens <= 1 ? 1 : args.few();
  return aligned(prepared_bytes(matrix_of(args.experts), args.rule, rows));
}

// Uses of one matrix that are multiplied together.
struct ExpertBatch {
  std::uint32_t slot;
  std::uint32_t first;  // of the order
  std::uint32_t count;  // <= kBatchRows
};

// One submission of one call.
struct ExpertsRun {
  explicit ExpertsRun(const CpuCall& c) : call(c) {}

  const CpuCall& call;
  const ExpertsSimdArgs& choice = call.args<ExpertsSimdArgs>();
  const ExpertsArgs& args = choice.experts;
  LinearArgs matrix = matrix_of(args);
  std::byte* few_prepared = call.thread_scratch;
  std::byte* scratch = call.thread_scratch + few_bytes(choice);

  [[nodiscard]] std::uint64_t uses() const {
    return std::uint64_t{valid_rows(args.tokens, static_cast<Extent>(args.extent), *call.parameters)} * args.used;
  }
  [[nodiscard]] std::uint32_t slot(std::uint64_t use) const {
    const std::int32_t* const slots = args.has_slots == 0 ? nullptr : call.in<std::int32_t>(3);
    return expert_slot(args, call.in<std::int32_t>(2), slots, use / args.used, use % args.used);
  }
  [[nodiscard]] const float* x(std::uint64_t use) const {
    return call.in<float>(0) + expert_x_offset(args, use / args.used, use % args.used);
  }
  [[nodiscard]] float* out(std::uint64_t use) const { return call.out<float>() + use * args.m; }
  [[nodiscard]] const std::byte* weight(std::uint32_t slot) const {
    return call.inputs[1] + expert_weight_offset(args, slot);
  }
  [[nodiscard]] const float* bias(std::uint32_t slot) const {
    return args.has_bias == 0 ? nullptr : call.in<float>(4) + std::uint64_t{slot} * args.bias_strides[0];
  }
  [[nodiscard]] ExpertOrder order() const {
    ExpertOrder order;
    order.begins = reinterpret_cast<std::uint32_t*>(call.shared_scratch);
    order.rows = order.begins + args.held + 2;
    order.uses = order.rows + args.held;
    order.prepared = call.shared_scratch + order_bytes(args.held, std::uint64_t{args.tokens} * args.used);
    return order;
  }
  template <class Use>
  void for_each_batch(const ExpertOrder& order, std::uint32_t slot, const Use& use) const {
    const std::uint32_t end = order.begins[slot + 1];
    for (std::uint32_t first = order.begins[slot]; first < end; first += kBatchRows)
      use(ExpertBatch{slot, first, std::min(end - first, static_cast<std::uint32_t>(kBatchRows))});
  }

  void zero(std::uint64_t use) const {
    const Range rows = share_of(args.m, call.share, call.shares);
    std::fill(out(use) + rows.begin, out(use) + rows.end, 0.0F);
  }
};

// The token rows of some uses of a matrix.
class ExpertRows final : public TokenRows {
 public:
  ExpertRows(const ExpertsRun& run, std::uint32_t slot, const std::uint32_t* uses)
      : run_(run), slot_(slot), uses_(uses) {}

  [[nodiscard]] const std::byte* x(std::size_t row) const override {
    return reinterpret_cast<const std::byte*>(run_.x(uses_[row]));
  }
  [[nodiscard]] const float* residual(std::size_t) const override { return run_.bias(slot_); }
  [[nodiscard]] float* out(std::size_t row) const override { return run_.out(uses_[row]); }

  // Returns their product with the matrix.
  [[nodiscard]] RowProduct product(std::size_t rows, std::byte* prepared) const {
    return {.tokens = *this,
            .rows = rows,
            .args = run_.matrix,
            .rule = run_.choice.rule,
            .weight = run_.weight(slot_),
            .prepared = prepared,
            .scratch = run_.scratch};
  }

 private:
  const ExpertsRun& run_;
  std::uint32_t slot_;
  const std::uint32_t* uses_;
};

// Multiplies each use separately.
void multiply_uses(const ExpertsRun& run) {
  const auto uses = static_cast<std::uint32_t>(run.uses());
  for (std::uint32_t use = 0; use < uses; ++use)
    if (run.slot(use) == kNoExpert) run.zero(use);
  const float* prepared = nullptr;
  for_each_part(
      uses, run.args.m, kDotGrain, run.call.share, run.call.shares,
      [&](std::uint32_t use) { return std::uint64_t{run.slot(use) != kNoExpert}; },
      [&](std::uint32_t use, Range weight_rows) {
        const ExpertRows rows(run, run.slot(use), &use);
        const RowProduct product = rows.product(1, run.few_prepared);
        if (run.x(use) != prepared) prepare_rows(product, {0, prepare_items(product)});
        prepared = run.x(use);
        multiply_rows(product, weight_rows);
      });
}

// Calls use(product) for each batch of a matrix with many uses.
template <class Use>
void for_each_product(const ExpertsRun& run, const ExpertOrder& order, std::uint32_t slot, const Use& use) {
  const std::uint64_t grain = run.choice.row_grain();
  const std::uint64_t grain_bytes = prepared_bytes(run.matrix, run.choice.rule, grain);
  run.for_each_batch(order, slot, [&](const ExpertBatch& batch) {
    const ExpertRows rows(run, slot, order.uses + batch.first);
    const std::uint64_t row = order.rows[slot] + (batch.first - order.begins[slot]);
    use(rows.product(batch.count, order.prepared + row / grain * grain_bytes));
  });
}

// Prepares x of matrices with many uses.
void prepare_many(const ExpertsRun& run) {
  const ExpertOrder order = run.order();
  const auto for_each_many = [&](const auto& use) {
    for (std::uint32_t slot = 0; slot < run.args.held; ++slot)
      if (order.count(slot) > run.choice.few()) for_each_product(run, order, slot, use);
  };
  std::uint64_t items = 0;
  for_each_many([&](const RowProduct& product) { items += prepare_items(product); });
  const Range mine = share_of(items, run.call.share, run.call.shares);
  std::uint64_t begin = 0;  // of the product's items among all
  for_each_many([&](const RowProduct& product) {
    const std::uint64_t end = begin + prepare_items(product);
    const Range both{std::max(mine.begin, begin), std::min(mine.end, end)};
    if (both.begin < both.end) prepare_rows(product, {both.begin - begin, both.end - begin});
    begin = end;
  });
}

void multiply_few(const ExpertsRun& run, const ExpertOrder& order, std::uint32_t slot, Range weight_rows) {
  const ExpertRows rows(run, slot, order.uses + order.begins[slot]);
  const RowProduct product = rows.product(order.count(slot), run.few_prepared);
  prepare_rows(product, {0, prepare_items(product)});
  multiply_rows(product, weight_rows);
}

void multiply(const ExpertsRun& run) {
  const ExpertOrder order = run.order();
  const std::uint32_t held = run.args.held;
  // All matrices are cut alike.
  std::uint64_t grain = kDotGrain;
  for (std::uint32_t slot = 0; slot < held; ++slot)
    if (order.count(slot) > run.choice.few())
      for_each_product(run, order, slot,
                       [&](const RowProduct& product) { grain = std::lcm(grain, weight_grain(product)); });
  for_each_part(
      held, run.args.m, grain, run.call.share, run.call.shares,
      [&](std::uint32_t slot) { return order.count(slot) == 0 ? 0 : order.count(slot) + run.choice.unpacking(); },
      [&](std::uint32_t slot, Range weight_rows) {
        if (order.count(slot) <= run.choice.few()) return multiply_few(run, order, slot, weight_rows);
        for_each_product(run, order, slot, [&](const RowProduct& product) { multiply_rows(product, weight_rows); });
      });
  for (std::uint32_t i = order.begins[held]; i < order.begins[held + 1]; ++i) run.zero(order.uses[i]);
}

std::string supports(const OpCall& call) {
  if (std::string reason = up_refusal(call); !reason.empty()) return reason;
  if (!call.input(0).has_contiguous_rows()) return "linear_experts: the elements of a row of x must be neighbours";
  if (call.has_input(4) && !call.input(4).has_contiguous_rows())
    return "linear_experts: the elements of a row of bias must be neighbours";
  return experts_refusal(call);
}

ExpertsSimdArgs simd_arguments(const OpCall& call) {
  const ExpertsArgs args = experts_arguments(call);
  // Experts of one token differ, as a rule, so that few tokens give none of them many uses.
  return {.experts = args, .rule = product_rule(call, args.tokens, args.k)};
}

Arithmetic arithmetic(const OpCall& call) { return arithmetic_of(simd_arguments(call).rule); }

CpuWork work(const OpCall& call, std::uint32_t) {
  const ExpertsSimdArgs simd_args = simd_arguments(call);
  const auto& [args, rule] = simd_args;
  const LinearArgs matrix = matrix_of(args);
  const std::uint64_t uses = std::uint64_t{args.tokens} * args.used;
  CpuWork work;
  work.thread_scratch_bytes =
      few_bytes(simd_args) + product_scratch(matrix, rule, std::min<std::uint64_t>(uses, kBatchRows));
  if (args.tokens <= 1) return work;
  work.phases = work.batch_phases = simd_args.may_have_many() ? 3 : 2;
  work.first_phase_is_small = true;
  work.shared_scratch_bytes = order_bytes(args.held, uses);
  if (!simd_args.may_have_many()) return work;
  const std::uint64_t with_many = std::min<std::uint64_t>(args.held, uses / (simd_args.few() + 1));
  const std::uint64_t grain = simd_args.row_grain();
  const std::uint64_t most_rows = simd_args.to_grain(uses + with_many * (grain - 1));
  work.shared_scratch_bytes += most_rows / grain * prepared_bytes(matrix, rule, grain);
  return work;
}

std::uint64_t most_shares(const OpCall& call) {
  const ExpertsArgs args = experts_arguments(call);
  const std::uint64_t matrices = std::min<std::uint64_t>(args.held, std::uint64_t{args.tokens} * args.used);
  return matrices * args.m / (args.tokens > kDotRows ? kBlockRows : kDotBlockRows);
}

bool prepares_alike(const OpCall& one_call, const OpCall& other_call) {
  // A weight may be another one.
  for (const std::size_t prepared : {0U, 2U, 3U})
    if (one_call.has_input(prepared) && one_call.input(prepared).kind == TensorKind::weight) return false;
  const ExpertsSimdArgs one = simd_arguments(one_call);
  const ExpertsSimdArgs other = simd_arguments(other_call);
  const auto x = [](const ExpertsArgs& args) {
    return std::tuple(std::to_array(args.x_strides), std::to_array(args.id_strides), args.tokens, args.extent,
                      args.used, args.k, args.held, args.experts, args.has_slots, args.slot_stride);
  };
  return x(one.experts) == x(other.experts) && one.rule == other.rule &&
         prepares_alike(one.rule, one_call.input(1).dtype, other_call.input(1).dtype);
}

// A counting sort: counts the uses of each matrix, then places each use after the earlier ones of its matrix.
void put_in_order(const ExpertsRun& run) {
  const ExpertOrder order = run.order();
  const std::uint32_t held = run.args.held;
  const auto uses = static_cast<std::uint32_t>(run.uses());
  std::fill_n(order.begins, held + 2, 0U);
  const auto group_of = [&](std::uint32_t use) { return std::min(run.slot(use), held); };
  for (std::uint32_t use = 0; use < uses; ++use) ++order.begins[group_of(use) + 1];
  std::uint64_t rows = 0;
  for (std::uint32_t slot = 0; slot < held; ++slot) {
    const std::uint32_t count = order.begins[slot + 1];
    order.rows[slot] = static_cast<std::uint32_t>(rows);
    if (count > run.choice.few()) rows += run.choice.to_grain(count);
  }
  for (std::uint32_t group = 0; group <= held; ++group) order.begins[group + 1] += order.begins[group];
  // Placing moves each begin to its end, which is the next begin; then all move back by one place.
  for (std::uint32_t use = 0; use < uses; ++use) order.uses[order.begins[group_of(use)]++] = use;
  for (std::uint32_t group = held + 1; group > 0; --group) order.begins[group] = order.begins[group - 1];
  order.begins[0] = 0;
}

int run(const CpuCall& call) {
  const ExpertsRun run(call);
  if (run.uses() == 0 || run.args.m == 0) return 0;
  if (run.args.tokens <= 1) {
    multiply_uses(run);
  } else if (call.phase == 0) {
    if (call.share == 0) put_in_order(run);
  } else if (call.phase == 1 && run.choice.may_have_many()) {
    prepare_many(run);
  } else {
    multiply(run);
  }
  return 0;
}

}  // namespace

extern const CpuKernel experts_simd;
const CpuKernel experts_simd{supports,    work,          write_arguments<simd_arguments>, run, nullptr, arithmetic,
                             most_shares, prepares_alike};

}  // namespace shunt
