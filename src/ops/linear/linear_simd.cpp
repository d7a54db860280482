// The SIMD linear. The valid rows of a submission decide: few token rows go to a row kernel, in words or F32, many to a
// tile kernel, in BF16, bytes, words or F32, as the numerics allow and the processor can. Token rows are taken in
// batches of kBatchRows. A program prepared for few F32 rows has one phase. Any other has two per batch, the first of
// which widens, packs or rounds x into the shared scratch.
#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/linear/linear_simd.cpp"
#include "hwy/foreach_target.h"
// Must follow foreach_target.h.
#include "hwy/highway.h"
#include "ops/linear/amx_tiles-inl.h"
#include "ops/linear/byte_tile-inl.h"
#include "ops/linear/linear_dot-inl.h"
#include "ops/linear/linear_tile-inl.h"
#include "ops/linear/word_tile-inl.h"

#ifndef SHUNT_OPS_MATMUL_SIMD_ONCE
#define SHUNT_OPS_MATMUL_SIMD_ONCE
#include "ops/linear/few_rows.h"

namespace shunt {

struct alignas(16) LinearSimdArgs {
  LinearArgs linear;
  std::uint32_t word_rows;  // up to so many rows are multiplied in words by the row kernel
  Arithmetic many;          // of the products of many rows
};

// One batch of a call's token rows.
struct LinearBatch {
  const CpuCall& call;
  const LinearArgs& args;
  std::uint32_t word_rows;
  Arithmetic many;  // of so many rows, unless they are few
  std::uint64_t begin;
  std::size_t rows;

  [[nodiscard]] const std::byte* x(std::size_t row) const {
    const std::uint64_t offset = row_offset(args.extents, args.x_strides, begin + row);
    return call.inputs[0] + offset * info_of(static_cast<DType>(args.x_dtype)).block_bytes;
  }
  [[nodiscard]] const float* residual(std::size_t row) const {
    return args.has_residual == 0 ? nullptr
                                  : call.in<float>(2) + row_offset(args.extents, args.residual_strides, begin + row);
  }
  [[nodiscard]] float* out(std::size_t row) const {
    return call.out<float>() + row_offset(args.extents, args.out_strides, begin + row);
  }
  [[nodiscard]] DType weight_dtype() const { return static_cast<DType>(args.weight_dtype); }
  [[nodiscard]] bool rounds_weight() const { return shunt::rounds_weight(weight_dtype()); }
  [[nodiscard]] bool is_few() const { return rows <= few_rows_beside(many); }
  [[nodiscard]] bool is_in_words() const { return is_few() ? rows <= word_rows : many == Arithmetic::words; }
  [[nodiscard]] WordsOfX words() const { return {call.shared_scratch, rows, word_blocks(args.k)}; }
  [[nodiscard]] FineWords fine_words() const { return {call.shared_scratch, rows, word_blocks(args.k)}; }
  [[nodiscard]] RoundedX rounded() const { return rounded_x(call.shared_scratch, rows, args.k); }
  template <std::size_t kParts>
  [[nodiscard]] Bf16X<kParts> bf16_x() const {
    return {reinterpret_cast<Bf16Strip<kParts>*>(call.shared_scratch), rows};
  }
  [[nodiscard]] float* shared() const { return reinterpret_cast<float*>(call.shared_scratch); }
  [[nodiscard]] float* scratch() const { return reinterpret_cast<float*>(call.thread_scratch); }
  [[nodiscard]] Range share(std::uint64_t total, std::uint64_t grain) const {
    return share_of(total, call.share, call.shares, grain);
  }
};

}  // namespace shunt
#endif

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

// For few rows: widens x to [rows][k] F32 unless it is F32 already.
void widen(const LinearBatch& batch) {
  const auto dtype = static_cast<DType>(batch.args.x_dtype);
  if (dtype == DType::F32) return;
  const Range range = batch.share(batch.rows, 1);
  for (std::uint64_t t = range.begin; t < range.end; ++t)
    decode_row_simd(dtype, batch.x(t), batch.args.k, batch.shared() + t * batch.args.k);
}

// Returns whether this instruction set, on this processor, multiplies matrix tiles of BF16.
bool has_bf16_tiles() { return has_amx_tiles(); }

#if SHUNT_HAS_AMX_TILES
template <std::size_t kParts>
void pack_strips(const LinearBatch& batch) {
  pack_bf16<AmxTiles>(
      static_cast<DType>(batch.args.x_dtype), batch.args.k, [&](std::size_t row) { return batch.x(row); },
      batch.bf16_x<kParts>(), batch.share(bf16_x_items(batch.rows, batch.args.k), 1), batch.call.thread_scratch);
}
#endif

#if SHUNT_HAS_GROUP_BYTES
void round_to_words(const LinearBatch& batch) {
  const auto dtype = static_cast<DType>(batch.args.x_dtype);
  const WordsOfX words = batch.words();
  const Range range = batch.share(batch.rows * words.blocks, 1);
  for (std::uint64_t item = range.begin; item < range.end; ++item) {
    const std::size_t row = item / words.blocks;
    const std::size_t block = item % words.blocks;
    const std::size_t elements = HWY_MIN(batch.args.k - block * kWordBlock, kWordBlock);
    const std::byte* const x = batch.x(row) + block * kWordBlock * info_of(dtype).block_bytes;
    if (dtype == DType::F32 && elements == kWordBlock) {
      round_words(reinterpret_cast<const float*>(x), words, row, block);
      continue;
    }
    alignas(64) float widened[kWordBlock] = {};
    decode_row_simd(dtype, x, elements, widened);
    round_words(widened, words, row, block);
  }
}
#endif

#if SHUNT_HAS_WORD_TILES
// Rounds x for weights that are rounded as well.
void round_to_fine_words(const LinearBatch& batch) {
  const auto dtype = static_cast<DType>(batch.args.x_dtype);
  const FineWords words = batch.fine_words();
  const Range range = batch.share(batch.rows * words.blocks, 1);
  for (std::uint64_t item = range.begin; item < range.end; ++item) {
    const std::size_t row = item / words.blocks;
    const std::size_t block = item % words.blocks;
    const std::size_t elements = HWY_MIN(batch.args.k - block * kWordBlock, kWordBlock);
    round_groups(dtype, batch.x(row) + block * kWordBlock * info_of(dtype).block_bytes, elements,
                 words.words(row, block),
                 [&](std::size_t g, float scale) { *words.scale(row, block * (kWordBlock / kFineGroup) + g) = scale; });
  }
}
#endif

#if SHUNT_HAS_BYTE_DOT
void round_x(const LinearBatch& batch) {
  const auto dtype = static_cast<DType>(batch.args.x_dtype);
  const ByteGroups groups = byte_groups(batch.weight_dtype());
  const RoundedX rounded = batch.rounded();
  const std::size_t blocks = byte_blocks(batch.args.k);
  const Range range = batch.share(batch.rows * blocks, 1);
  for (std::uint64_t item = range.begin; item < range.end; ++item) {
    const std::size_t row = item / blocks;
    const std::size_t block = item % blocks;
    const std::size_t elements = HWY_MIN(batch.args.k - block * kByteElements, kByteElements);
    const std::byte* const x = batch.x(row) + block * kByteElements * info_of(dtype).block_bytes;
    alignas(64) float widened[kByteElements];
    if (dtype != DType::F32) decode_row_simd(dtype, x, elements, widened);
    round_block(dtype == DType::F32 ? reinterpret_cast<const float*>(x) : widened, elements, groups, rounded, row,
                block);
  }
}
#endif

void pack(const LinearBatch& batch) {
#if SHUNT_HAS_WORD_TILES
  if (!batch.is_few() && batch.many == Arithmetic::words && batch.rounds_weight()) return round_to_fine_words(batch);
#endif
#if SHUNT_HAS_GROUP_BYTES
  if (batch.is_in_words()) return round_to_words(batch);
#endif
  if (batch.is_few()) return widen(batch);
#if SHUNT_HAS_AMX_TILES
  if (batch.many == Arithmetic::bf16) return pack_strips<1>(batch);
  if (batch.many == Arithmetic::bf16x3) return pack_strips<2>(batch);
#endif
#if SHUNT_HAS_BYTE_DOT
  if (batch.many == Arithmetic::bytes) return round_x(batch);
#endif
  const std::uint64_t k = batch.args.k;
  const std::uint64_t panels = (batch.rows + kPanelRows - 1) / kPanelRows;
  const std::uint64_t strips = (k + kTileElements - 1) / kTileElements;
  const Range range = batch.share(panels * strips, 1);
  for (std::uint64_t item = range.begin; item < range.end; ++item) {
    const std::uint64_t first = item / strips * kPanelRows;
    const std::uint64_t begin = item % strips * kTileElements;
    const std::size_t count = HWY_MIN(batch.rows - first, kPanelRows);
    const std::byte* rows[kPanelRows] = {};
    for (std::size_t t = 0; t < count; ++t) rows[t] = batch.x(first + t);
    pack_panel(static_cast<DType>(batch.args.x_dtype), rows, count, {begin, HWY_MIN(begin + kTileElements, k)},
               batch.shared() + first * k);
  }
}

void multiply_few(const LinearBatch& batch) {
  const float* x[kDotRows];
  const float* residual[kDotRows];
  float* out[kDotRows];
  const bool widened = static_cast<DType>(batch.args.x_dtype) != DType::F32;
  for (std::size_t t = 0; t < batch.rows; ++t) {
    x[t] = widened ? batch.shared() + t * batch.args.k : reinterpret_cast<const float*>(batch.x(t));
    residual[t] = batch.residual(t);
    out[t] = batch.out(t);
  }
  const Range range = batch.share(batch.args.m, 4);
#if SHUNT_HAS_GROUP_BYTES
  if (batch.is_in_words()) {
    for_words_of(batch.weight_dtype(), [&]<DType kDType>() {
      multiply_words<kDType>(batch.args, batch.call.inputs[1], batch.words(), residual, out, range);
    });
    return;
  }
#endif
  if (batch.rows == 1)
    return dot_one_row(batch.args, batch.call.inputs[1], x[0], residual[0], out[0], range, batch.scratch());
  dot_rows(batch.args, batch.call.inputs[1], x, residual, out, batch.rows, range, batch.scratch());
}

void multiply(const LinearBatch& batch) {
  if (batch.is_few()) return multiply_few(batch);
  const float* residual[kBatchRows];
  float* out[kBatchRows];
  for (std::size_t t = 0; t < batch.rows; ++t) {
    residual[t] = batch.residual(t);
    out[t] = batch.out(t);
  }
#if SHUNT_HAS_AMX_TILES
  if (batch.many == Arithmetic::bf16 || batch.many == Arithmetic::bf16x3) {
    with_bf16_parts(batch.many, batch.weight_dtype(), [&]<std::size_t kWeightParts, std::size_t kXParts>() {
      multiply_bf16<AmxTiles, kWeightParts, kXParts>(
          batch.args, batch.call.inputs[1], {batch.bf16_x<kXParts>(), residual, out},
          batch.share(batch.args.m, kBf16StripRows), batch.call.thread_scratch);
    });
    return;
  }
#endif
#if SHUNT_HAS_BYTE_DOT
  if (batch.many == Arithmetic::bytes) {
    for_bytes_of(batch.weight_dtype(), [&]<class Dot, DType kDType>() {
      multiply_bytes<Dot, kDType>(batch.args, batch.call.inputs[1], batch.rounded(), {residual, out},
                                  batch.share(batch.args.m, kByteStripRows), batch.call.thread_scratch);
    });
    return;
  }
#endif
#if SHUNT_HAS_WORD_TILES
  if (batch.many == Arithmetic::words) {
    for_word_tiles_of(batch.weight_dtype(), [&]<DType kDType>() {
      multiply_word_tiles<kDType>(batch.args, batch.call.inputs[1], batch.call.shared_scratch, batch.rows,
                                  {residual, out}, batch.share(batch.args.m, kByteStripRows),
                                  batch.call.thread_scratch);
    });
    return;
  }
#endif
  tile_rows(batch.args, batch.call.inputs[1], {batch.shared(), batch.rows, residual, out},
            batch.share(batch.args.m, kTileRows), batch.scratch());
}

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "ops/kernel_arguments.h"

namespace shunt {

HWY_EXPORT(has_bf16_tiles);
HWY_EXPORT(has_byte_tiles);
HWY_EXPORT(most_word_rows);
HWY_EXPORT(multiplies_word_tiles);
HWY_EXPORT(rounds_alike);
HWY_EXPORT(pack);
HWY_EXPORT(multiply);

namespace {

std::string supports(const OpCall& call) {
  if (!call.input(0).has_contiguous_rows())
    return fmt::format("{}: the elements of a row of x must be neighbours", name_of(call.op));
  if (std::string reason = normalizes_refusal(call); !reason.empty()) return reason;
  return linear_refusal(call);
}

bool has_pack_phase(const LinearArgs& args, std::uint32_t word_rows, Arithmetic many) {
  return word_rows != 0 || linear_capacity(args) > few_rows_beside(many) ||
         static_cast<DType>(args.x_dtype) != DType::F32;
}

// Returns up to how many rows are multiplied in words by the row kernel.
std::uint32_t word_rows_of(const OpCall& call) {
  const bool may_use = allows(call, Arithmetic::words) && linear_args(call).k != 0;
  return may_use ? static_cast<std::uint32_t>(word_rows(call.input(1).dtype)) : 0;
}

// Returns the arithmetic of many rows, and F32 if the program is prepared for few. Exact numerics stay with F32, since
// three products of BF16 are as exact but differ in the last bits.
Arithmetic many_of(const OpCall& call) {
  const LinearArgs args = linear_args(call);
  const std::uint64_t capacity = linear_capacity(args);
  const auto may_use = [&](Arithmetic many) {
    return args.k != 0 && capacity > few_rows_beside(many) && allows(call, many);
  };
  if (HWY_DYNAMIC_DISPATCH(has_bf16_tiles)()) {
    if (may_use(Arithmetic::bf16)) return Arithmetic::bf16;
    if (call.numerics != Numerics::exact && may_use(Arithmetic::bf16x3)) return Arithmetic::bf16x3;
  }
  const DType weight = call.input(1).dtype;
  if (may_use(Arithmetic::bytes) && HWY_DYNAMIC_DISPATCH(has_byte_tiles)(weight)) return Arithmetic::bytes;
  if (!may_use(Arithmetic::words) || !has_word_tiles(weight)) return Arithmetic::f32;
  return arithmetic_of_rows(Arithmetic::words, rounds_weight(weight), capacity);
}

LinearSimdArgs simd_arguments(const OpCall& call) {
  return {.linear = linear_args(call), .word_rows = word_rows_of(call), .many = many_of(call)};
}

Arithmetic arithmetic_of(const OpCall& call) {
  const LinearSimdArgs args = simd_arguments(call);
  return args.word_rows == 0 ? args.many : least_exact(args.many, Arithmetic::words);
}

// The bytes of a batch's x, packed for many rows in F32.
std::uint64_t panel_bytes(const LinearArgs& args, std::uint64_t rows) {
  return (rows + kPanelRows - 1) / kPanelRows * kPanelRows * args.k * sizeof(float);
}

// The bytes of a batch's x, packed for many rows.
std::uint64_t packed_bytes(const LinearArgs& args, Arithmetic many, std::uint64_t rows) {
  if (many == Arithmetic::bytes) return rounded_bytes(rows, args.k);
  if (many == Arithmetic::words) {
    const bool rounds = rounds_weight(static_cast<DType>(args.weight_dtype));
    const std::uint64_t in_f32 = rounds ? std::min<std::uint64_t>(rows, kFineRows) : 0;
    return std::max<std::uint64_t>(words_bytes(rows, args.k), panel_bytes(args, in_f32));
  }
  if (many == Arithmetic::bf16) return bf16_x_bytes(rows, args.k, 1);
  if (many == Arithmetic::bf16x3) return bf16_x_bytes(rows, args.k, 2);
  return panel_bytes(args, rows);
}

// The bytes of a batch's x, widened or rounded for few rows.
std::uint64_t few_x_bytes(const LinearArgs& args, std::uint32_t word_rows, std::uint64_t rows) {
  return std::max<std::uint64_t>(rows * args.k * sizeof(float),
                                 words_bytes(std::min<std::uint64_t>(rows, word_rows), args.k));
}

// The scratch of a thread that multiplies many rows.
std::uint64_t many_scratch(Arithmetic many, std::uint64_t rows) {
  constexpr std::uint64_t kOfTiles = kBlockRows * (kTileElements + kSumPitch) * sizeof(float);
  if (many == Arithmetic::bytes) return byte_scratch(rows);
  if (many == Arithmetic::words) return std::max<std::uint64_t>(word_scratch(rows), kOfTiles);
  if (many == Arithmetic::bf16) return bf16_scratch(1);
  return many == Arithmetic::bf16x3 ? bf16_scratch(2) : kOfTiles;
}

CpuWork work(const OpCall& call, std::uint32_t) {
  const auto [args, word_rows, many] = simd_arguments(call);
  const std::uint64_t capacity = linear_capacity(args);
  CpuWork work;
  // Room for four strips, or for the sums of the groups of x.
  work.thread_scratch_bytes = std::max<std::uint64_t>(4 * kStripElements, args.k / kGroupElements) * sizeof(float);
  if (!has_pack_phase(args, word_rows, many)) return work;
  work.batch_phases = 2;
  work.phases = static_cast<std::uint32_t>(2 * std::max<std::uint64_t>(1, (capacity + kBatchRows - 1) / kBatchRows));
  work.first_phase_is_small = capacity * args.k <= kSmallElements;
  const std::uint64_t rows = std::min<std::uint64_t>(capacity, kBatchRows);
  work.shared_scratch_bytes = few_x_bytes(args, word_rows, std::min<std::uint64_t>(rows, few_rows_beside(many)));
  if (capacity <= few_rows_beside(many)) return work;
  work.shared_scratch_bytes = std::max(work.shared_scratch_bytes, packed_bytes(args, many, rows));
  work.thread_scratch_bytes = std::max(work.thread_scratch_bytes, many_scratch(many, rows));
  return work;
}

std::uint64_t most_shares(const OpCall& call) {
  const LinearArgs args = linear_args(call);
  const std::uint64_t capacity = linear_capacity(args);
  if (capacity > kDotRows) return args.m / kBlockRows;
  const Arithmetic many = many_of(call);
  const bool has_strips = many == Arithmetic::bf16 || many == Arithmetic::bf16x3;
  return args.m / (has_strips ? kBf16StripRows : kDotBlockRows);
}

bool prepares_alike(const OpCall& one_call, const OpCall& other_call) {
  if (one_call.input(0).kind == TensorKind::weight) return false;  // it may be another one
  const LinearSimdArgs one = simd_arguments(one_call);
  const LinearSimdArgs other = simd_arguments(other_call);
  const auto x = [](const LinearArgs& args) {
    return std::tuple(std::to_array(args.extents), std::to_array(args.x_strides), args.extent, args.k, args.x_dtype);
  };
  const DType weight = one_call.input(1).dtype;
  const DType other_weight = other_call.input(1).dtype;
  if (x(one.linear) != x(other.linear) || one.word_rows != other.word_rows || one.many != other.many) return false;
  if (one.many == Arithmetic::words) return rounds_weight(weight) == rounds_weight(other_weight);
  return one.many != Arithmetic::bytes || HWY_DYNAMIC_DISPATCH(rounds_alike)(weight, other_weight);
}

int run(const CpuCall& call) {
  const auto& [args, word_rows, many] = call.args<LinearSimdArgs>();
  const bool packs = has_pack_phase(args, word_rows, many);
  const std::uint64_t begin = std::uint64_t{packs ? call.phase / 2 : 0} * kBatchRows;
  const std::uint64_t valid = linear_rows(args, *call.parameters);
  if (begin >= valid || args.m == 0) return 0;
  const auto rows = static_cast<std::size_t>(std::min<std::uint64_t>(valid - begin, kBatchRows));
  const bool rounds = rounds_weight(static_cast<DType>(args.weight_dtype));
  const LinearBatch batch{call, args, word_rows, arithmetic_of_rows(many, rounds, rows), begin, rows};
  if (packs && call.phase % 2 == 0) {
    HWY_DYNAMIC_DISPATCH(pack)(batch);
  } else {
    HWY_DYNAMIC_DISPATCH(multiply)(batch);
  }
  return 0;
}

}  // namespace

std::size_t word_rows(DType weight) { return HWY_DYNAMIC_DISPATCH(most_word_rows)(weight); }
bool has_word_tiles(DType weight) { return HWY_DYNAMIC_DISPATCH(multiplies_word_tiles)(weight); }

extern const CpuKernel linear_simd;
const CpuKernel linear_simd{supports,    work,          write_arguments<simd_arguments>, run, nullptr, arithmetic_of,
                            most_shares, prepares_alike};

}  // namespace shunt
#endif  // HWY_ONCE
