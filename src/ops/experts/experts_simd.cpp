// The SIMD linear over selected experts. Uses (a token and one of its experts) are sorted by matrix. Each matrix is
// multiplied by its uses: few of them with linear's dot kernel, many with its tiles, in bytes if the numerics allow it
// and the processor has it. A program for one token has one phase, without sorting. Others sort, pack or round x of the
// matrices with many uses, if there can be any, and multiply.
#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/experts/experts_simd.cpp"
#include "hwy/foreach_target.h"
// Must follow foreach_target.h.
#include "hwy/highway.h"
#include "ops/linear/byte_tile-inl.h"
#include "ops/linear/linear_dot-inl.h"
#include "ops/linear/linear_tile-inl.h"

#ifndef SHUNT_OPS_EXPERTS_SIMD_ONCE
#define SHUNT_OPS_EXPERTS_SIMD_ONCE
#include <algorithm>

#include "ops/experts/experts.h"
#include "ops/experts/experts_parts.h"

namespace shunt {

struct alignas(16) ExpertsSimdArgs {
  ExpertsArgs experts;
  bool has_bytes;  // matrices with many uses are multiplied in bytes

  // The most uses of a matrix that are left to the dot kernel.
  [[nodiscard]] std::uint32_t few() const { return has_bytes ? kDotRowsBesideBytes : kDotRows; }
  // The cost of unpacking a row of a matrix, in products of it with one use, as measured with AVX2 and Q4_K.
  [[nodiscard]] std::uint64_t unpacking() const { return has_bytes ? 20 : 5; }
  // Returns whether a matrix may have more than few uses.
  [[nodiscard]] bool packs() const { return std::uint64_t{experts.tokens} * experts.used > few(); }
};

// Uses sorted by matrix, in the shared scratch. Those of experts that are not held come last.
struct ExpertOrder {
  std::uint32_t* begins = nullptr;  // [held + 2], of the uses of each matrix, then of those without one
  std::uint32_t* panels = nullptr;  // [held], first panel of each matrix with many uses
  std::uint32_t* uses = nullptr;    // [tokens * used]
  std::byte* packed = nullptr;      // panels [k][kPanelRows] of F32, or rounded rows in the order of uses

  [[nodiscard]] std::uint32_t count(std::uint32_t slot) const { return begins[slot + 1] - begins[slot]; }
};

// Uses of one matrix that are multiplied together.
struct ExpertBatch {
  std::uint32_t slot;
  std::uint32_t first;  // of the order
  std::uint32_t count;  // <= kBatchRows
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
  const ExpertsSimdArgs& choice;
  const ExpertsArgs& args = choice.experts;

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
  [[nodiscard]] DType dtype() const { return static_cast<DType>(args.weight_dtype); }
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
    order.packed = call.shared_scratch + bytes;
    return order;
  }
  [[nodiscard]] float* panel(const ExpertOrder& order, std::uint64_t number) const {
    return reinterpret_cast<float*>(order.packed) + number * args.k * kPanelRows;
  }
  [[nodiscard]] RoundedX rounded(const ExpertOrder& order, const ExpertBatch& batch) const {
    return rounded_x(order.packed + rounded_bytes(batch.first, args.k), batch.count, args.k);
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

}  // namespace shunt
#endif

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {
namespace {

// Matrices are cut into shares at multiples of so many rows: whole tiles of the dot kernel, and of both F32 kernels.
inline constexpr std::uint64_t kDotGrain = 4;
inline constexpr std::uint64_t kFloatGrain = 12;
static_assert(kFloatGrain % kDotGrain == 0 && kFloatGrain % kTileRows == 0);

// Multiplies each use separately.
void multiply_uses(const ExpertsRun& run) {
  const LinearArgs matrix = run.matrix();
  const auto uses = static_cast<std::uint32_t>(run.uses());
  for (std::uint32_t use = 0; use < uses; ++use)
    if (run.slot(use) == kNoExpert) run.zero(use);
  for_each_part(
      uses, run.args.m, kDotGrain, run.call.share, run.call.shares,
      [&](std::uint32_t use) { return std::uint64_t{run.slot(use) != kNoExpert}; },
      [&](std::uint32_t use, Range rows) {
        const std::uint32_t slot = run.slot(use);
        dot_one_row(matrix, run.weight(slot), run.x(use), run.bias(slot), run.out(use), rows, run.scratch());
      });
}

#if SHUNT_HAS_BYTE_DOT
void round_row(const float* x, std::size_t k, const ByteGroups& groups, const RoundedX& rounded, std::size_t row) {
  for (std::size_t block = 0; block < byte_blocks(k); ++block) {
    const std::size_t begin = block * kByteElements;
    round_block(x + begin, HWY_MIN(k - begin, kByteElements), groups, rounded, row, block);
  }
}

// Rounds x of the uses of matrices with many.
void round_x(const ExpertsRun& run) {
  const ExpertOrder order = run.order();
  const ByteGroups groups = byte_groups(run.dtype());
  const Range mine = share_of(order.begins[run.args.held], run.call.share, run.call.shares);
  for (std::uint32_t slot = 0; slot < run.args.held; ++slot) {
    if (order.count(slot) <= run.choice.few()) continue;
    run.for_each_batch(order, slot, [&](const ExpertBatch& batch) {
      const RoundedX rounded = run.rounded(order, batch);
      const std::uint64_t end = HWY_MIN(mine.end, std::uint64_t{batch.first} + batch.count);
      for (std::uint64_t i = HWY_MAX(mine.begin, std::uint64_t{batch.first}); i < end; ++i)
        round_row(run.x(order.uses[i]), run.args.k, groups, rounded, i - batch.first);
    });
  }
}
#endif

// Packs the panels of matrices with many uses, a strip of a panel at a time.
void pack_panels(const ExpertsRun& run) {
  const ExpertOrder order = run.order();
  const std::uint64_t k = run.args.k;
  const std::uint64_t strips = (k + kTileElements - 1) / kTileElements;
  std::uint64_t number = 0;
  for (std::uint32_t slot = 0; slot < run.args.held; ++slot) {
    const std::uint32_t end = order.begins[slot + 1];
    if (order.count(slot) <= run.choice.few()) continue;
    std::uint64_t panel = order.panels[slot];
    for (std::uint32_t first = order.begins[slot]; first < end; first += kPanelRows, ++panel) {
      const std::size_t count = HWY_MIN(std::size_t{end - first}, kPanelRows);
      const std::byte* rows[kPanelRows] = {};
      for (std::size_t t = 0; t < count; ++t)
        rows[t] = reinterpret_cast<const std::byte*>(run.x(order.uses[first + t]));
      for (std::uint64_t strip = 0; strip < strips; ++strip) {
        if (number++ % run.call.shares != run.call.share) continue;
        const std::uint64_t begin = strip * kTileElements;
        pack_panel(DType::F32, rows, count, {begin, HWY_MIN(begin + kTileElements, k)}, run.panel(order, panel));
      }
    }
  }
}

void pack(const ExpertsRun& run) {
#if SHUNT_HAS_BYTE_DOT
  if (run.choice.has_bytes) return round_x(run);
#endif
  pack_panels(run);
}

// REQUIRES: count <= kDotRows.
void multiply_few(const ExpertsRun& run, const ExpertOrder& order, const ExpertBatch& batch, Range rows) {
  const float* x[kDotRows];
  const float* bias[kDotRows];
  float* out[kDotRows];
  for (std::uint32_t t = 0; t < batch.count; ++t) {
    x[t] = run.x(order.uses[batch.first + t]);
    bias[t] = run.bias(batch.slot);
    out[t] = run.out(order.uses[batch.first + t]);
  }
  if (batch.count == 1)
    return dot_one_row(run.matrix(), run.weight(batch.slot), x[0], bias[0], out[0], rows, run.scratch());
  dot_rows(run.matrix(), run.weight(batch.slot), x, bias, out, batch.count, rows, run.scratch());
}

// Does the same with x that is packed or rounded.
void multiply_many(const ExpertsRun& run, const ExpertOrder& order, const ExpertBatch& batch, Range rows) {
  const float* bias[kBatchRows];
  float* out[kBatchRows];
  for (std::uint32_t t = 0; t < batch.count; ++t) {
    bias[t] = run.bias(batch.slot);
    out[t] = run.out(order.uses[batch.first + t]);
  }
  const LinearArgs matrix = run.matrix();
#if SHUNT_HAS_BYTE_DOT
  if (run.choice.has_bytes) {
    for_bytes_of(run.dtype(), [&]<class Dot, DType kDType>() {
      multiply_bytes<Dot, kDType>(matrix, run.weight(batch.slot), run.rounded(order, batch), {bias, out}, rows,
                                  run.call.thread_scratch);
    });
    return;
  }
#endif
  const std::uint64_t panel = order.panels[batch.slot] + (batch.first - order.begins[batch.slot]) / kPanelRows;
  tile_rows(matrix, run.weight(batch.slot), {run.panel(order, panel), batch.count, bias, out}, rows, run.scratch());
}

// Returns the weight rows at which matrices may be cut.
std::uint64_t grain_of(const ExpertsRun& run) {
#if SHUNT_HAS_BYTE_DOT
  if (run.choice.has_bytes) return kByteStripRows;
#endif
  return run.choice.packs() ? kFloatGrain : kDotGrain;
}

void multiply(const ExpertsRun& run) {
  const ExpertOrder order = run.order();
  const std::uint32_t held = run.args.held;
  for_each_part(
      held, run.args.m, grain_of(run), run.call.share, run.call.shares,
      [&](std::uint32_t slot) { return order.count(slot) == 0 ? 0 : order.count(slot) + run.choice.unpacking(); },
      [&](std::uint32_t slot, Range rows) {
        const bool is_few = order.count(slot) <= run.choice.few();
        run.for_each_batch(order, slot, [&](const ExpertBatch& batch) {
          if (is_few)
            multiply_few(run, order, batch, rows);
          else
            multiply_many(run, order, batch, rows);
        });
      });
  for (std::uint32_t i = order.begins[held]; i < order.begins[held + 1]; ++i) run.zero(order.uses[i]);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <array>
#include <tuple>

#include "ops/kernel_arguments.h"

namespace shunt {
namespace {

HWY_EXPORT(has_byte_tiles);
HWY_EXPORT(rounds_alike);
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

ExpertsSimdArgs simd_arguments(const OpCall& call) {
  ExpertsSimdArgs args{.experts = experts_arguments(call), .has_bytes = false};
  // Experts of one token differ, as a rule, so that few tokens give none of them many uses.
  args.has_bytes = allows(call, Arithmetic::bytes) && args.experts.k != 0 &&
                   args.experts.tokens > kDotRowsBesideBytes &&
                   HWY_DYNAMIC_DISPATCH(has_byte_tiles)(call.input(1).dtype);
  return args;
}

Arithmetic arithmetic_of(const OpCall& call) {
  return simd_arguments(call).has_bytes ? Arithmetic::bytes : Arithmetic::f32;
}

CpuWork work(const OpCall& call, std::uint32_t) {
  const ExpertsSimdArgs simd_args = simd_arguments(call);
  const ExpertsArgs& args = simd_args.experts;
  CpuWork work;
  // Room for four strips, or for the sums of the groups of x.
  const std::uint64_t few_bytes = std::max<std::uint64_t>(4 * kStripElements, args.k / kGroupElements) * sizeof(float);
  work.thread_scratch_bytes = few_bytes;
  if (args.tokens <= 1) return work;
  const std::uint64_t uses = std::uint64_t{args.tokens} * args.used;
  work.phases = work.batch_phases = simd_args.packs() ? 3 : 2;
  work.first_phase_is_small = true;
  work.shared_scratch_bytes = expert_order_bytes(args.held, uses);
  if (!simd_args.packs()) return work;
  const std::uint64_t panel_bytes = expert_panels(uses) * kPanelRows * args.k * sizeof(float);
  const std::uint64_t block_bytes = kBlockRows * (kTileElements + kSumPitch) * sizeof(float);
  work.shared_scratch_bytes += simd_args.has_bytes ? rounded_bytes(uses, args.k) : panel_bytes;
  work.thread_scratch_bytes = std::max<std::uint64_t>(
      few_bytes, simd_args.has_bytes ? byte_scratch(std::min<std::uint64_t>(uses, kBatchRows)) : block_bytes);
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
  if (x(one.experts) != x(other.experts) || one.has_bytes != other.has_bytes) return false;
  return !one.has_bytes || HWY_DYNAMIC_DISPATCH(rounds_alike)(one_call.input(1).dtype, other_call.input(1).dtype);
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
    if (count > run.choice.few()) panels += static_cast<std::uint32_t>((count + kPanelRows - 1) / kPanelRows);
  }
  for (std::uint32_t group = 0; group <= held; ++group) order.begins[group + 1] += order.begins[group];
  // Placing moves each begin to its end, which is the next begin; then all move back by one place.
  for (std::uint32_t use = 0; use < uses; ++use) order.uses[order.begins[group_of(use)]++] = use;
  for (std::uint32_t group = held + 1; group > 0; --group) order.begins[group] = order.begins[group - 1];
  order.begins[0] = 0;
}

int run(const CpuCall& call) {
  const ExpertsRun run{call, call.args<ExpertsSimdArgs>()};
  if (run.uses() == 0 || run.args.m == 0) return 0;
  if (run.args.tokens <= 1) {
    HWY_DYNAMIC_DISPATCH(multiply_uses)(run);
  } else if (call.phase == 0) {
    if (call.share == 0) put_in_order(run);
  } else if (call.phase == 1 && run.choice.packs()) {
    HWY_DYNAMIC_DISPATCH(pack)(run);
  } else {
    HWY_DYNAMIC_DISPATCH(multiply)(run);
  }
  return 0;
}

}  // namespace

extern const CpuKernel experts_simd;
const CpuKernel experts_simd{supports,    work,          write_arguments<simd_arguments>, run, nullptr, arithmetic_of,
                             most_shares, prepares_alike};

}  // namespace shunt
#endif  // HWY_ONCE
