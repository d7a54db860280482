// The SIMD linear over selected experts. Uses (a token and one of its experts) are sorted by matrix. Each matrix is
// multiplied by its uses: few of them with linear's dot kernel, many with its tiles. Threads share the rows of every
// matrix. A program for one token has one phase. Others have three: sorting, packing x for the tiles, products.
#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/experts/experts_simd.cpp"
#include "hwy/foreach_target.h"
// Must follow foreach_target.h.
#include "hwy/highway.h"
#include "ops/linear/linear_dot-inl.h"
#include "ops/linear/linear_tile-inl.h"

#ifndef SHUNT_OPS_EXPERTS_SIMD_ONCE
#define SHUNT_OPS_EXPERTS_SIMD_ONCE
#include <algorithm>

#include "ops/experts/experts.h"

namespace shunt {

// Uses sorted by matrix, in the shared scratch. Those of experts that are not held come last.
struct ExpertOrder {
  std::uint32_t* begins = nullptr;  // [held + 2], of the uses of each matrix, then of those without one
  std::uint32_t* panels = nullptr;  // [held], first panel of each matrix with more than kDotRows uses
  std::uint32_t* uses = nullptr;    // [tokens * used]
  float* packed = nullptr;          // panels [k][kPanelRows]
};

inline std::uint64_t expert_order_bytes(std::uint64_t held, std::uint64_t uses) {
  return ((2 * held + 2 + uses) * sizeof(std::uint32_t) + 63) / 64 * 64;
}

// More than kDotRows uses of a matrix fill more than half of their panels.
inline std::uint64_t expert_panels(std::uint64_t uses) {
  static_assert(kDotRows >= kPanelRows / 2);
  return uses <= kDotRows ? 0 : 2 * uses / kPanelRows + 1;
}

// One submission of one call.
struct ExpertsRun {
  const CpuCall& call;
  const ExpertsArgs& args;

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
  [[nodiscard]] Range share(std::uint64_t grain) const { return share_of(args.m, call.share, call.shares, grain); }
  [[nodiscard]] float* scratch() const { return reinterpret_cast<float*>(call.thread_scratch); }
  // Returns the arguments of linear's kernels for one matrix.
  [[nodiscard]] LinearArgs matrix() const {
    LinearArgs linear;
    linear.k = args.k;
    linear.m = args.m;
    linear.weight_dtype = args.weight_dtype;
    linear.weight_row_bytes = args.weight_row_bytes;
    return linear;
  }
  [[nodiscard]] ExpertOrder order() const {
    ExpertOrder order;
    order.begins = reinterpret_cast<std::uint32_t*>(call.shared_scratch);
    order.panels = order.begins + args.held + 2;
    order.uses = order.panels + args.held;
    const std::uint64_t bytes = expert_order_bytes(args.held, std::uint64_t{args.tokens} * args.used);
    order.packed = reinterpret_cast<float*>(call.shared_scratch + bytes);
    return order;
  }

  void zero(std::uint64_t use) const {
    const Range rows = share(4);
    std::fill(out(use) + rows.begin, out(use) + rows.end, 0.0F);
  }
};

}  // namespace shunt
#endif

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {
namespace {

// Multiplies each use separately.
void multiply_uses(const ExpertsRun& run) {
  const LinearArgs matrix = run.matrix();
  const Range rows = run.share(4);
  for (std::uint64_t use = 0; use < run.uses(); ++use) {
    const std::uint32_t slot = run.slot(use);
    if (slot == kNoExpert)
      run.zero(use);
    else
      dot_one_row(matrix, run.weight(slot), run.x(use), run.bias(slot), run.out(use), rows, run.scratch());
  }
}

// Packs the panels of matrices with many uses, a strip of a panel at a time.
void pack(const ExpertsRun& run) {
  const ExpertOrder order = run.order();
  const std::uint64_t k = run.args.k;
  const std::uint64_t strips = (k + kTileElements - 1) / kTileElements;
  std::uint64_t number = 0;
  for (std::uint32_t slot = 0; slot < run.args.held; ++slot) {
    const std::uint32_t end = order.begins[slot + 1];
    if (end - order.begins[slot] <= kDotRows) continue;
    std::uint64_t panel = order.panels[slot];
    for (std::uint32_t first = order.begins[slot]; first < end; first += kPanelRows, ++panel) {
      const std::size_t count = HWY_MIN(std::size_t{end - first}, kPanelRows);
      const std::byte* rows[kPanelRows] = {};
      for (std::size_t t = 0; t < count; ++t)
        rows[t] = reinterpret_cast<const std::byte*>(run.x(order.uses[first + t]));
      for (std::uint64_t strip = 0; strip < strips; ++strip) {
        if (number++ % run.call.shares != run.call.share) continue;
        const std::uint64_t begin = strip * kTileElements;
        pack_panel(DType::F32, rows, count, {begin, HWY_MIN(begin + kTileElements, k)},
                   order.packed + panel * k * kPanelRows);
      }
    }
  }
}

// Multiplies uses [first, first + count) of the order. REQUIRES: count <= kDotRows.
void multiply_few(const ExpertsRun& run, const ExpertOrder& order, std::uint32_t slot, std::uint32_t first,
                  std::uint32_t count) {
  const float* x[kDotRows];
  const float* bias[kDotRows];
  float* out[kDotRows];
  for (std::uint32_t t = 0; t < count; ++t) {
    x[t] = run.x(order.uses[first + t]);
    bias[t] = run.bias(slot);
    out[t] = run.out(order.uses[first + t]);
  }
  if (count == 1)
    return dot_one_row(run.matrix(), run.weight(slot), x[0], bias[0], out[0], run.share(4), run.scratch());
  dot_rows(run.matrix(), run.weight(slot), x, bias, out, count, run.share(4), run.scratch());
}

// Does the same from panels. REQUIRES: count <= kBatchRows.
void multiply_many(const ExpertsRun& run, const ExpertOrder& order, std::uint32_t slot, std::uint32_t first,
                   std::uint32_t count) {
  const float* bias[kBatchRows];
  float* out[kBatchRows];
  for (std::uint32_t t = 0; t < count; ++t) {
    bias[t] = run.bias(slot);
    out[t] = run.out(order.uses[first + t]);
  }
  const std::uint64_t panel = order.panels[slot] + (first - order.begins[slot]) / kPanelRows;
  tile_rows(run.matrix(), run.weight(slot), {order.packed + panel * run.args.k * kPanelRows, count, bias, out},
            run.share(kTileRows), run.scratch());
}

void multiply(const ExpertsRun& run) {
  const ExpertOrder order = run.order();
  for (std::uint32_t slot = 0; slot < run.args.held; ++slot) {
    const std::uint32_t end = order.begins[slot + 1];
    const std::uint32_t count = end - order.begins[slot];
    if (count == 0) continue;
    if (count <= kDotRows) {
      multiply_few(run, order, slot, order.begins[slot], count);
      continue;
    }
    for (std::uint32_t first = order.begins[slot]; first < end; first += kBatchRows)
      multiply_many(run, order, slot, first, HWY_MIN(end - first, static_cast<std::uint32_t>(kBatchRows)));
  }
  for (std::uint32_t i = order.begins[run.args.held]; i < order.begins[run.args.held + 1]; ++i) run.zero(order.uses[i]);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/kernel_arguments.h"

namespace shunt {
namespace {

HWY_EXPORT(multiply_uses);
HWY_EXPORT(pack);
HWY_EXPORT(multiply);

std::string supports(const OpCall& call) {
  if (std::string reason = up_refusal(call); !reason.empty()) return reason;
  if (!call.input(0).has_contiguous_rows()) return "linear_experts: the elements of a row of x must be neighbours";
  if (call.has_input(4) && !call.input(4).has_contiguous_rows())
    return "linear_experts: the elements of a row of bias must be neighbours";
  return experts_refusal(call);
}

CpuWork work(const OpCall& call, std::uint32_t) {
  const ExpertsArgs args = experts_arguments(call);
  CpuWork work;
  // Room for four strips, or for the sums of the groups of x.
  work.thread_scratch_bytes = std::max<std::uint64_t>(4 * kStripElements, args.k / kGroupElements) * sizeof(float);
  if (args.tokens <= 1) return work;
  const std::uint64_t uses = std::uint64_t{args.tokens} * args.used;
  work.phases = 3;
  work.shared_scratch_bytes =
      expert_order_bytes(args.held, uses) + expert_panels(uses) * kPanelRows * args.k * sizeof(float);
  if (uses > kDotRows)
    work.thread_scratch_bytes =
        std::max<std::uint64_t>(work.thread_scratch_bytes, kBlockRows * (kTileElements + kSumPitch) * sizeof(float));
  return work;
}

// A counting sort: counts the uses of each matrix, then places each use after the earlier ones of its matrix.
void put_in_order(const ExpertsRun& run) {
  const ExpertOrder order = run.order();
  const std::uint32_t held = run.args.held;
  const auto uses = static_cast<std::uint32_t>(run.uses());
  std::fill_n(order.begins, held + 2, 0U);
  const auto group_of = [&](std::uint32_t use) { return std::min(run.slot(use), held); };
  for (std::uint32_t use = 0; use < uses; ++use) ++order.begins[group_of(use) + 1];
  std::uint32_t panels = 0;
  for (std::uint32_t slot = 0; slot < held; ++slot) {
    const std::uint32_t count = order.begins[slot + 1];
    order.panels[slot] = panels;
    if (count > kDotRows) panels += static_cast<std::uint32_t>((count + kPanelRows - 1) / kPanelRows);
  }
  for (std::uint32_t group = 0; group <= held; ++group) order.begins[group + 1] += order.begins[group];
  // Placing moves each begin to its end, which is the next begin; then all move back by one place.
  for (std::uint32_t use = 0; use < uses; ++use) order.uses[order.begins[group_of(use)]++] = use;
  for (std::uint32_t group = held + 1; group > 0; --group) order.begins[group] = order.begins[group - 1];
  order.begins[0] = 0;
}

int run(const CpuCall& call) {
  const ExpertsRun run{call, call.args<ExpertsArgs>()};
  if (run.uses() == 0 || run.args.m == 0) return 0;
  if (run.args.tokens <= 1) {
    HWY_DYNAMIC_DISPATCH(multiply_uses)(run);
  } else if (call.phase == 0) {
    if (call.share == 0) put_in_order(run);
  } else if (call.phase == 1) {
    HWY_DYNAMIC_DISPATCH(pack)(run);
  } else {
    HWY_DYNAMIC_DISPATCH(multiply)(run);
  }
  return 0;
}

}  // namespace

extern const CpuKernel experts_simd;
const CpuKernel experts_simd{supports, work, write_arguments<experts_arguments>, run};

}  // namespace shunt
#endif  // HWY_ONCE
