#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/linear/row_products_simd.cpp"
#include "hwy/foreach_target.h"
// Must follow foreach_target.h.
#include "hwy/highway.h"
#include "ops/amx_tiles-inl.h"
#include "ops/linear/bf16_tile-inl.h"
#include "ops/linear/byte_tile-inl.h"
#include "ops/linear/linear_dot-inl.h"
#include "ops/linear/linear_tile-inl.h"
#include "ops/linear/row_products.h"
#include "ops/linear/split_row-inl.h"
#include "ops/linear/split_tile-inl.h"
#include "ops/linear/word_row-inl.h"
#include "ops/linear/word_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

// Returns whether this instruction set, on this processor, multiplies matrix tiles of BF16.
bool has_bf16_tiles() { return has_amx_tiles(); }

// Returns up to how many token rows this instruction set multiplies in words with the row kernel; 0: none.
std::size_t most_word_rows(DType dtype) {
#if SHUNT_HAS_GROUP_BYTES
  const bool has_words = for_words_of(dtype, []<DType>() {});
#else
  const bool has_words = splits_x(dtype);
#endif
  return has_words ? kDotRowsBesideWords : 0;
}

// Returns whether this instruction set has tiles in words for weights of a dtype.
bool multiplies_word_tiles(DType dtype) {
#if SHUNT_HAS_WORD_TILES
  return for_word_tiles_of(dtype, []<DType>() {});
#elif SHUNT_HAS_SPLIT_TILES
  return for_split_tiles_of(dtype, []<class, DType>() {});
#else
  static_cast<void>(dtype);
  return false;
#endif
}

WordsOfX words_of_x(const RowProduct& product) { return {product.prepared, product.rows, word_blocks(product.args.k)}; }
SplitX split_x(const RowProduct& product) { return {product.prepared, product.rows, word_blocks(product.args.k)}; }
// REQUIRES: its arithmetic is words.
bool is_split(const RowProduct& product) { return product.is_few() && splits_x(product.weight_dtype()); }
RoundedX rounded_of(const RowProduct& product) { return rounded_x(product.prepared, product.rows, product.args.k); }
// Returns the rows of words split into bytes, two for each token row.
RoundedX split_rows_of(const RowProduct& product) {
  return rounded_x(product.prepared, 2 * product.rows, product.args.k);
}
template <std::size_t kParts>
Bf16X<kParts> bf16_of(const RowProduct& product) {
  return {reinterpret_cast<Bf16Strip<kParts>*>(product.prepared), product.rows};
}
float* floats_of(const RowProduct& product) { return reinterpret_cast<float*>(product.prepared); }
float* scratch_of(const RowProduct& product) { return reinterpret_cast<float*>(product.scratch); }

// ---- Preparing. Items are blocks of a row, unless it says otherwise.

// For few rows in F32: widens x to [rows][k]. Items are rows.
void widen(const RowProduct& product, Range items) {
  const std::uint64_t k = product.args.k;
  for (std::uint64_t t = items.begin; t < items.end; ++t)
    decode_row_simd(product.x_dtype(), product.tokens.x(t), k, floats_of(product) + t * k);
}

// Calls use(row, block, its first element, elements) for items that are blocks of kWordBlock elements.
template <class Use>
HWY_INLINE void for_each_block(const RowProduct& product, Range items, const Use& use) {
  static_assert(kWordBlock == kByteElements);
  const std::size_t blocks = word_blocks(product.args.k);
  const std::size_t element_bytes = info_of(product.x_dtype()).block_bytes;
  for (std::uint64_t item = items.begin; item < items.end; ++item) {
    const std::size_t row = item / blocks;
    const std::size_t block = item % blocks;
    use(row, block, product.tokens.x(row) + block * kWordBlock * element_bytes,
        HWY_MIN(product.args.k - block * kWordBlock, kWordBlock));
  }
}

#if SHUNT_HAS_GROUP_BYTES || SHUNT_HAS_SPLIT_ROWS
void round_to_words(const RowProduct& product, Range items) {
  const auto round = [&](const float* x, std::size_t row, std::size_t block) {
#if SHUNT_HAS_SPLIT_ROWS
    if (is_split(product)) return round_split(x, split_x(product), row, block);
#endif
#if SHUNT_HAS_SPLIT_TILES
    round_to_byte_rows(x, byte_groups(product.weight_dtype()), split_rows_of(product), row, block);
#else
    round_words(x, words_of_x(product), row, block);
#endif
  };
  for_each_block(product, items, [&](std::size_t row, std::size_t block, const std::byte* x, std::size_t elements) {
    if (product.x_dtype() == DType::F32 && elements == kWordBlock)
      return round(reinterpret_cast<const float*>(x), row, block);
    alignas(64) float widened[kWordBlock] = {};
    decode_row_simd(product.x_dtype(), x, elements, widened);
    round(widened, row, block);
  });
}
#endif

#if SHUNT_HAS_WORD_TILES
// Rounds x for weights that are rounded as well.
void round_to_fine_words(const RowProduct& product, Range items) {
  const FineWords words{product.prepared, product.rows, word_blocks(product.args.k)};
  for_each_block(product, items, [&](std::size_t row, std::size_t block, const std::byte* x, std::size_t elements) {
    round_groups(product.x_dtype(), x, elements, words.words(row, block),
                 [&](std::size_t g, float scale) { *words.scale(row, block * (kWordBlock / kFineGroup) + g) = scale; });
  });
}
#endif

#if SHUNT_HAS_BYTE_DOT
void round_to_bytes(const RowProduct& product, Range items) {
  const ByteGroups groups = byte_groups(product.weight_dtype());
  const RoundedX rounded = rounded_of(product);
  for_each_block(product, items, [&](std::size_t row, std::size_t block, const std::byte* x, std::size_t elements) {
    if (product.x_dtype() == DType::F32)
      return round_block(reinterpret_cast<const float*>(x), elements, groups, rounded, row, block);
    alignas(64) float widened[kByteElements];
    decode_row_simd(product.x_dtype(), x, elements, widened);
    round_block(widened, elements, groups, rounded, row, block);
  });
}
#endif

#if SHUNT_HAS_AMX_TILES
// Items are those of bf16_x_items().
template <std::size_t kParts>
void pack_strips(const RowProduct& product, Range items) {
  pack_bf16<AmxTiles>(
      product.x_dtype(), product.args.k, [&](std::size_t row) { return product.tokens.x(row); },
      bf16_of<kParts>(product), items, product.scratch);
}
#endif

// For many rows in F32. Items are kTileElements of a panel.
void pack_panels(const RowProduct& product, Range items) {
  const std::uint64_t k = product.args.k;
  for (std::uint64_t item = items.begin; item < items.end; ++item) {
    const std::uint64_t first = item / tile_strips(k) * kPanelRows;
    const std::uint64_t begin = item % tile_strips(k) * kTileElements;
    const std::size_t count = HWY_MIN(product.rows - first, kPanelRows);
    const std::byte* rows[kPanelRows] = {};
    for (std::size_t t = 0; t < count; ++t) rows[t] = product.tokens.x(first + t);
    pack_panel(product.x_dtype(), rows, count, {begin, HWY_MIN(begin + kTileElements, k)},
               floats_of(product) + first * k);
  }
}

void prepare(const RowProduct& product, Range items) {
#if SHUNT_HAS_WORD_TILES
  if (!product.is_few() && product.arithmetic() == Arithmetic::words && rounds_weight(product.weight_dtype()))
    return round_to_fine_words(product, items);
#endif
#if SHUNT_HAS_GROUP_BYTES || SHUNT_HAS_SPLIT_ROWS
  if (product.arithmetic() == Arithmetic::words) return round_to_words(product, items);
#endif
  if (product.is_few()) return widen(product, items);
#if SHUNT_HAS_AMX_TILES
  if (product.arithmetic() == Arithmetic::bf16) return pack_strips<1>(product, items);
  if (product.arithmetic() == Arithmetic::bf16x3) return pack_strips<2>(product, items);
#endif
#if SHUNT_HAS_BYTE_DOT
  if (product.arithmetic() == Arithmetic::bytes) return round_to_bytes(product, items);
#endif
  pack_panels(product, items);
}

// ---- Multiplying

void multiply_few(const RowProduct& product, Range weight_rows) {
  const float* x[kDotRows];
  const float* residual[kDotRows];
  float* out[kDotRows];
  const bool is_widened = product.x_dtype() != DType::F32;
  for (std::size_t t = 0; t < product.rows; ++t) {
    x[t] = is_widened ? floats_of(product) + t * product.args.k : reinterpret_cast<const float*>(product.tokens.x(t));
    residual[t] = product.tokens.residual(t);
    out[t] = product.tokens.out(t);
  }
#if SHUNT_HAS_SPLIT_ROWS
  if (product.arithmetic() == Arithmetic::words && is_split(product))
    return multiply_split(product.args, product.weight, split_x(product), residual, out, weight_rows);
#endif
#if SHUNT_HAS_GROUP_BYTES
  if (product.arithmetic() == Arithmetic::words) {
    for_words_of(product.weight_dtype(), [&]<DType kDType>() {
      multiply_words<kDType>(product.args, product.weight, words_of_x(product), residual, out, weight_rows);
    });
    return;
  }
#endif
  if (product.rows == 1)
    return dot_one_row(product.args, product.weight, x[0], residual[0], out[0], weight_rows, scratch_of(product));
  dot_rows(product.args, product.weight, x, residual, out, product.rows, weight_rows, scratch_of(product));
}

void multiply(const RowProduct& product, Range weight_rows) {
  if (product.is_few()) return multiply_few(product, weight_rows);
  const float* residual[kBatchRows];
  float* out[kBatchRows];
  for (std::size_t t = 0; t < product.rows; ++t) {
    residual[t] = product.tokens.residual(t);
    out[t] = product.tokens.out(t);
  }
  [[maybe_unused]] const Arithmetic many = product.arithmetic();
#if SHUNT_HAS_AMX_TILES
  if (many == Arithmetic::bf16 || many == Arithmetic::bf16x3) {
    with_bf16_parts(many, product.weight_dtype(), [&]<std::size_t kWeightParts, std::size_t kXParts>() {
      multiply_bf16<AmxTiles, kWeightParts, kXParts>(
          product.args, product.weight, {bf16_of<kXParts>(product), residual, out}, weight_rows, product.scratch);
    });
    return;
  }
#endif
#if SHUNT_HAS_BYTE_DOT
  if (many == Arithmetic::bytes) {
    for_bytes_of(product.weight_dtype(), [&]<class Dot, DType kDType>() {
      multiply_bytes<Dot, kDType>(product.args, product.weight, rounded_of(product), {residual, out}, weight_rows,
                                  product.scratch);
    });
    return;
  }
#endif
#if SHUNT_HAS_WORD_TILES
  if (many == Arithmetic::words) {
    for_word_tiles_of(product.weight_dtype(), [&]<DType kDType>() {
      multiply_word_tiles<kDType>(product.args, product.weight, product.prepared, product.rows, {residual, out},
                                  weight_rows, product.scratch);
    });
    return;
  }
#endif
#if SHUNT_HAS_SPLIT_TILES
  if (many == Arithmetic::words) {
    for_split_tiles_of(product.weight_dtype(), [&]<class Dot, DType kDType>() {
      multiply_bytes<Dot, kDType, 2>(product.args, product.weight, split_rows_of(product), {residual, out}, weight_rows,
                                     product.scratch);
    });
    return;
  }
#endif
  tile_rows(product.args, product.weight, {floats_of(product), product.rows, residual, out}, weight_rows,
            scratch_of(product));
}

std::uint64_t grain_of(const RowProduct& product) {
  if (product.is_few()) return kDotGrain;
  if (product.arithmetic() == Arithmetic::bf16 || product.arithmetic() == Arithmetic::bf16x3) return kBf16StripRows;
#if SHUNT_HAS_BYTE_DOT
  if (product.arithmetic() != Arithmetic::f32) return kByteStripRows;
#endif
  return kTileRows;
}

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

namespace shunt {

HWY_EXPORT(has_bf16_tiles);
HWY_EXPORT(has_byte_tiles);
HWY_EXPORT(most_word_rows);
HWY_EXPORT(multiplies_word_tiles);
HWY_EXPORT(rounds_alike);
HWY_EXPORT(splits_x);
HWY_EXPORT(prepare);
HWY_EXPORT(grain_of);
HWY_EXPORT(multiply);

namespace {

Arithmetic many_of(const OpCall& call, std::uint64_t rows) {
  const auto may_use = [&](Arithmetic many) { return rows > few_rows_beside(many) && allows(call, many); };
  if (HWY_DYNAMIC_DISPATCH(has_bf16_tiles)()) {
    if (may_use(Arithmetic::bf16)) return Arithmetic::bf16;
    if (call.numerics != Numerics::exact && may_use(Arithmetic::bf16x3)) return Arithmetic::bf16x3;
  }
  const DType weight = call.input(1).dtype;
  if (may_use(Arithmetic::bytes) && HWY_DYNAMIC_DISPATCH(has_byte_tiles)(weight)) return Arithmetic::bytes;
  if (!may_use(Arithmetic::words) || !has_word_tiles(weight)) return Arithmetic::f32;
  return arithmetic_of_rows(Arithmetic::words, rounds_weight(weight), rows);
}

// Whether tiles in words multiply the bytes of words.
constexpr bool kSplitsTiles = HWY_ARCH_ARM_A64;

// The bytes of rows packed for many in F32.
std::uint64_t panel_bytes(const LinearArgs& args, std::uint64_t rows) {
  return panels_of(rows) * kPanelRows * args.k * sizeof(float);
}

// The bytes of rows prepared for many.
std::uint64_t many_bytes(const LinearArgs& args, Arithmetic many, std::uint64_t rows) {
  if (many == Arithmetic::bytes) return rounded_bytes(rows, args.k);
  if (many == Arithmetic::words && kSplitsTiles) return rounded_bytes(2 * rows, args.k);
  if (many == Arithmetic::words) {
    const bool rounds = rounds_weight(static_cast<DType>(args.weight_dtype));
    const std::uint64_t in_f32 = rounds ? std::min<std::uint64_t>(rows, kFineRows) : 0;
    return std::max<std::uint64_t>(words_bytes(rows, args.k), panel_bytes(args, in_f32));
  }
  if (many == Arithmetic::bf16) return bf16_x_bytes(rows, args.k, 1);
  if (many == Arithmetic::bf16x3) return bf16_x_bytes(rows, args.k, 2);
  return panel_bytes(args, rows);
}

// The bytes of rows widened or rounded for few.
std::uint64_t few_bytes(const LinearArgs& args, std::uint32_t word_rows, std::uint64_t rows) {
  const bool widens = static_cast<DType>(args.x_dtype) != DType::F32;
  return std::max<std::uint64_t>(widens ? rows * args.k * sizeof(float) : 0,
                                 split_bytes(std::min<std::uint64_t>(rows, word_rows), args.k));
}

// The scratch of a thread that multiplies many rows.
std::uint64_t many_scratch(Arithmetic many, std::uint64_t rows) {
  constexpr std::uint64_t kOfTiles = kBlockRows * (kTileElements + kSumPitch) * sizeof(float);
  if (many == Arithmetic::bytes) return byte_scratch(rows);
  if (many == Arithmetic::words && kSplitsTiles) return byte_scratch(2 * rows);
  if (many == Arithmetic::words) return std::max<std::uint64_t>(word_scratch(rows), kOfTiles);
  if (many == Arithmetic::bf16) return bf16_scratch(1);
  return many == Arithmetic::bf16x3 ? bf16_scratch(2) : kOfTiles;
}

}  // namespace

std::size_t word_rows(DType weight) { return HWY_DYNAMIC_DISPATCH(most_word_rows)(weight); }
bool has_word_tiles(DType weight) { return HWY_DYNAMIC_DISPATCH(multiplies_word_tiles)(weight); }

ProductRule product_rule(const OpCall& call, std::uint64_t rows, std::uint64_t k) {
  if (k == 0) return {};
  const bool may_use_words = allows(call, Arithmetic::words);
  return {.word_rows = may_use_words ? static_cast<std::uint32_t>(word_rows(call.input(1).dtype)) : 0,
          .many = many_of(call, rows)};
}

Arithmetic arithmetic_of(const ProductRule& rule) {
  return rule.word_rows == 0 ? rule.many : least_exact(rule.many, Arithmetic::words);
}

bool prepares_alike(const ProductRule& rule, DType one, DType other) {
  const auto splits = [](DType weight) { return HWY_DYNAMIC_DISPATCH(splits_x)(weight); };
  if (rule.word_rows != 0 && splits(one) != splits(other)) return false;
  if (rule.many == Arithmetic::words) return rounds_weight(one) == rounds_weight(other);
  return rule.many != Arithmetic::bytes || HWY_DYNAMIC_DISPATCH(rounds_alike)(one, other);
}

bool prepares(const LinearArgs& args, const ProductRule& rule, std::uint64_t rows) {
  return rule.word_rows != 0 || rows > few_rows_beside(rule.many) || static_cast<DType>(args.x_dtype) != DType::F32;
}

std::uint64_t prepared_bytes(const LinearArgs& args, const ProductRule& rule, std::uint64_t rows) {
  const std::uint64_t few = std::min<std::uint64_t>(rows, few_rows_beside(rule.many));
  std::uint64_t bytes = few_bytes(args, rule.word_rows, few);
  if (rows > few) bytes = std::max(bytes, many_bytes(args, rule.many, rows));
  return (bytes + 63) / 64 * 64;
}

std::uint64_t product_scratch(const LinearArgs& args, const ProductRule& rule, std::uint64_t rows) {
  // Room for four strips, or for the sums of the groups of x.
  const std::uint64_t bytes = std::max<std::uint64_t>(4 * kStripElements, args.k / kGroupElements) * sizeof(float);
  return rows <= few_rows_beside(rule.many) ? bytes : std::max(bytes, many_scratch(rule.many, rows));
}

std::uint64_t prepare_items(const RowProduct& product) {
  const std::uint64_t k = product.args.k;
  if (product.arithmetic() == Arithmetic::words) return product.rows * word_blocks(k);
  if (product.is_few()) return product.x_dtype() == DType::F32 ? 0 : product.rows;
  if (product.arithmetic() == Arithmetic::bytes) return product.rows * byte_blocks(k);
  if (product.arithmetic() != Arithmetic::f32) return bf16_x_items(product.rows, k);
  return panels_of(product.rows) * tile_strips(k);
}

void prepare_rows(const RowProduct& product, Range items) { HWY_DYNAMIC_DISPATCH(prepare)(product, items); }
std::uint64_t weight_grain(const RowProduct& product) { return HWY_DYNAMIC_DISPATCH(grain_of)(product); }
void multiply_rows(const RowProduct& product, Range weight_rows) {
  HWY_DYNAMIC_DISPATCH(multiply)(product, weight_rows);
}

}  // namespace shunt
#endif  // HWY_ONCE
