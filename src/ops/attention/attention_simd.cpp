#include <algorithm>
#include <limits>

#include "ops/attention/attention.h"
#include "ops/attention/tile.h"
#include "ops/elements.h"
#include "ops/kernel_arguments.h"
#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention/attention_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/attention/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {
namespace {

using namespace tiles;

class Attention {
 public:
  explicit Attention(const CpuCall& call)
      : call_(call),
        args_(call.args<AttentionArgs>()),
        step_{call.in<std::int32_t>(3), call.in<std::int32_t>(4), call.in<std::int32_t>(5)},
        head_dim_(args_.query.extents[3]),
        head_bytes_(cached_head_bytes(static_cast<DType>(args_.state_dtype), args_.query.extents[3])),
        width_(padded_width(head_dim_)),
        pitch_(tile_pitch(width_)),
        heads_per_key_(args_.query.extents[2] / args_.kv_heads),
        scratch_(scratch_at(call.thread_scratch, width_)) {}

  void run() {
    const std::uint64_t tokens =
        valid_rows(args_.query.entries, static_cast<Extent>(args_.query.extent), *call_.parameters);
    groups_ = groups_of(args_, tokens, call_.shares);
    std::uint64_t whole = 0;
    for (std::uint64_t token = 0; token < tokens;) {
      const Block block = block_at(args_, step_, groups_, token, tokens);
      whole += block.cost * groups_.count;
      token += block.tokens;
    }
    std::uint64_t before = 0;
    for (std::uint64_t token = 0; token < tokens;) {
      const Block block = block_at(args_, step_, groups_, token, tokens);
      run_block(block, share_of_block(before, block, groups_.count, whole, call_.share, call_.shares));
      before += block.cost * groups_.count;
      token += block.tokens;
    }
  }

 private:
  void run_block(const Block& block, GroupRange range) {
    const std::size_t rows = std::size_t{block.tokens} * groups_.heads;
    if (rows > kFewRows) {
      for (std::uint32_t group = range.begin; group < range.end; ++group) run_many(block, group, rows);
      return;
    }
    const std::size_t padded = rows == 3 ? 4 : rows;
    const auto batch = static_cast<std::uint32_t>(kSlabRows / padded);
    for (std::uint32_t group = range.begin; group < range.end; group += batch)
      run_few(block, {group, std::min(group + batch, range.end)}, rows, padded);
  }

  // Many rows of one group: scores and sums are products of matrices. Scores are transposed, [keys, rows], so that both
  // products read keys and values as they lie in memory and the softmax works on a vector of rows.
  void run_many(const Block& block, std::uint32_t group, std::size_t rows) {
    const std::size_t padded = (rows + 15) / 16 * 16;
    load_queries(block, group, rows, padded, 0);
    transpose_queries(padded);
    std::uint64_t next = block.begin;
    while (find_tile(block, next)) {
      load_rows(keys_, group, scratch_.keys);
      load_rows(values_, group, scratch_.values);
      for (std::size_t row = 0; row < rows; row += kSlabRows) see_slab(block, row, std::min(rows - row, kSlabRows));
    }
    store(block, group, rows, 0);
  }

  // Turns the queries of each slab into [width, kSlabRows], by way of the keys' scratch.
  void transpose_queries(std::size_t rows) {
    for (std::size_t row = 0; row < rows; row += kSlabRows) {
      float* const slab = scratch_.query + row * width_;
      const std::size_t count = std::min(rows - row, kSlabRows);
      std::copy_n(slab, count * width_, scratch_.keys);
      transpose(scratch_.keys, width_, count, width_, slab, kSlabRows);
    }
  }

  // Adds the current tile to the sums of the slab that begins with a row of the block.
  void see_slab(const Block& block, std::size_t first_row, std::size_t rows) {
    find_spans(block, first_row, rows);
    const KeySpan all = span_of(0, rows);
    if (all.begin >= all.end) return;
    const float* const query = scratch_.query + first_row * width_;
    const std::size_t lanes = hn::Lanes(Floats());
    const std::size_t columns = (rows + lanes - 1) / lanes * lanes;
    for_each_columns<kQueryVectors>(columns, [&](auto vectors, std::size_t column) HWY_ATTR {
      const KeySpan span = span_of(column, column + vectors * lanes);
      for (std::size_t key = span.begin / kMultiplyRows * kMultiplyRows; key < span.end; key += kMultiplyRows)
        multiply_block<vectors, false>({scratch_.keys + key * pitch_, pitch_, 1}, query + column, kSlabRows, head_dim_,
                                       scratch_.scores + key * kSlabRows + column, kSlabRows);
    });
    weigh_slab(all, first_row, rows, columns);
    for_each_columns<kValueVectors>(width_, [&](auto vectors, std::size_t column) HWY_ATTR {
      for (std::size_t row = 0; row < rows; row += kMultiplyRows) {
        const KeySpan span = product_spans_[row / kMultiplyRows];
        if (span.begin >= span.end) continue;
        multiply_block<vectors, true>({scratch_.scores + span.begin * kSlabRows + row, 1, kSlabRows},
                                      scratch_.values + span.begin * pitch_ + column, pitch_, span.end - span.begin,
                                      scratch_.sums + (first_row + row) * width_ + column, width_);
      }
    });
  }

  // A range of indices into the current tile; empty unless begin < end.
  struct KeySpan {
    std::size_t begin = kTileKeys;
    std::size_t end = 0;

    void add(KeySpan other) { *this = {std::min(begin, other.begin), std::max(end, other.end)}; }
  };

  // Finds what each of the slab's rows sees and each kMultiplyRows of them see together.
  void find_spans(const Block& block, std::size_t first_row, std::size_t rows) {
    std::fill(product_spans_, std::end(product_spans_), KeySpan());
    for (std::size_t row = 0; row < rows; ++row) {
      const std::uint64_t token = token_of(block, first_row + row);
      spans_[row] = {args_.window == 0 ? 0 : tile_index(step_.first(args_, token)),
                     tile_index(step_.visible(args_.table, token))};
      product_spans_[row / kMultiplyRows].add(spans_[row]);
    }
  }

  // Returns what the slab's rows from one to another see together.
  [[nodiscard]] KeySpan span_of(std::size_t begin, std::size_t end) const {
    KeySpan all;
    for (std::size_t i = begin / kMultiplyRows; i * kMultiplyRows < end; ++i) all.add(product_spans_[i]);
    return all;
  }

  // Turns the slab's scores into weights, zero where a row does not see a position.
  void weigh_slab(KeySpan all, std::size_t first_row, std::size_t rows, std::size_t columns) {
    float* const scores = scratch_.scores + all.begin * kSlabRows;
    for (std::size_t key = all.begin; args_.soft_cap > 0 && key < all.end; ++key)
      cap_scores(args_.soft_cap, scratch_.scores + key * kSlabRows, columns);
    for (std::size_t row = 0; row < rows; ++row) {
      hide_scores(row, all.begin, std::min(spans_[row].begin, all.end));
      hide_scores(row, std::max(spans_[row].end, all.begin), all.end);
    }
    float shrinks[kSlabRows];
    for (std::size_t row = 0; row < columns; row += hn::Lanes(Floats()))
      hn::StoreU(weigh_rows(all.end - all.begin, scratch_.largest + first_row + row, scratch_.totals + first_row + row,
                            scores + row),
                 Floats(), shrinks + row);
    for (std::size_t row = 0; row < rows; ++row)
      if (shrinks[row] != 1) scale_row(shrinks[row], width_, scratch_.sums + (first_row + row) * width_);
  }

  void hide_scores(std::size_t row, std::size_t begin, std::size_t end) {
    for (std::size_t key = begin; key < end; ++key)
      scratch_.scores[key * kSlabRows + row] = -std::numeric_limits<float>::infinity();
  }

  // Few rows of several groups, tile by tile.
  void run_few(const Block& block, GroupRange range, std::size_t rows, std::size_t padded) {
    FewHeads heads[kSlabRows];
    const std::size_t count = range.end - range.begin;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t group = range.begin + static_cast<std::uint32_t>(i);
      const std::size_t at = i * padded;
      load_queries(block, group, rows, padded, at);
      heads[i] = {.offset = head_offset(group),
                  .query = scratch_.query + at * width_,
                  .scores = scratch_.scores + at * kTileKeys,
                  .sums = scratch_.sums + at * width_};
    }
    std::uint64_t next = block.begin;
    while (find_tile(block, next)) {
      see_tile<true>(padded, range, heads);
      for (std::size_t i = 0; i < count; ++i) weigh(block, rows, i * padded);
      see_tile<false>(padded, range, heads);
    }
    for (std::size_t i = 0; i < count; ++i) store(block, range.begin + static_cast<std::uint32_t>(i), rows, i * padded);
  }

  // Reads keys (or values) in place if vectors can, otherwise head by head through a tile of F32.
  template <bool kDot>
  void see_tile(std::size_t padded, GroupRange range, const FewHeads* heads) {
    const std::byte* const* rows = kDot ? keys_ : values_;
    const std::size_t count = range.end - range.begin;
    const DType dtype = static_cast<DType>(args_.state_dtype);
    if (head_dim_ % hn::Lanes(Floats()) == 0) {
      if (dtype == DType::F32) return see_rows<kDot, LoadF32>(padded, heads, count, rows, head_dim_);
      if (dtype == DType::BF16) return see_rows<kDot, LoadBF16>(padded, heads, count, rows, head_dim_);
      if (dtype == DType::Q8_0) return see_rows<kDot, LoadBlocks>(padded, heads, count, rows, head_dim_);
#if SHUNT_HAS_F16_VECTORS
      return see_rows<kDot, LoadF16>(padded, heads, count, rows, head_dim_);
#endif
    }
    const std::byte* converted[kTileKeys];
    for (std::size_t j = 0; j < count_; ++j) converted[j] = reinterpret_cast<std::byte*>(scratch_.keys + j * pitch_);
    for (std::size_t i = 0; i < count; ++i) {
      load_rows(rows, range.begin + static_cast<std::uint32_t>(i), scratch_.keys);
      FewHeads head = heads[i];
      head.offset = 0;
      see_rows<kDot, LoadF32>(padded, &head, 1, converted, width_);
    }
  }

  template <bool kDot, class Load>
  void see_rows(std::size_t padded, const FewHeads* heads, std::size_t head_count, const std::byte* const* rows,
                std::size_t elements) {
    if (padded == 1) return see_rows_of<kDot, 1, Load>(heads, head_count, rows, elements);
    if (padded == 2) return see_rows_of<kDot, 2, Load>(heads, head_count, rows, elements);
    see_rows_of<kDot, 4, Load>(heads, head_count, rows, elements);
  }

  template <bool kDot, std::size_t kRows, class Load>
  void see_rows_of(const FewHeads* heads, std::size_t head_count, const std::byte* const* rows, std::size_t elements) {
    if constexpr (kDot)
      dot_tile<kRows, Load>(heads, head_count, rows, count_, elements, width_);
    else
      add_tile<kRows, Load>(heads, head_count, rows, count_, elements, width_);
  }

  // The token and the query head of a row of a block and group.
  [[nodiscard]] std::uint64_t token_of(const Block& block, std::size_t row) const {
    return block.first + row / groups_.heads;
  }
  [[nodiscard]] std::uint64_t head_of(std::uint32_t group, std::size_t row) const {
    return std::uint64_t{group} * groups_.heads + row % groups_.heads;
  }

  // Loads scaled queries, padded with zeros to `padded` rows and `width_` columns, and clears the sums, from scratch
  // row `at` on.
  void load_queries(const Block& block, std::uint32_t group, std::size_t rows, std::size_t padded, std::size_t at) {
    std::fill_n(scratch_.query + (at + rows) * width_, (padded - rows) * width_, 0.0F);
    std::fill_n(scratch_.sums + at * width_, padded * width_, 0.0F);
    std::fill_n(scratch_.largest + at, padded, std::numeric_limits<float>::lowest());
    std::fill_n(scratch_.totals + at, padded, 0.0F);
    for (std::size_t row = 0; row < rows; ++row) add_sink(head_of(group, row), at + row);
    const StridedTensor& query = args_.query;
    for (std::size_t row = 0; row < rows; ++row) {
      const std::uint64_t begin = row_offset(query, token_of(block, row) * query.extents[2] + head_of(group, row));
      float* const out = scratch_.query + (at + row) * width_;
      const float* x =
          floats_of(static_cast<DType>(query.dtype), call_.inputs[0], begin, query.strides[3], head_dim_, out);
      for (std::size_t i = 0; i < head_dim_; ++i) out[i] = x[i] * args_.scale;
      std::fill(out + head_dim_, out + width_, 0.0F);
    }
  }

  // A sink starts the sum.
  void add_sink(std::uint64_t head, std::size_t row) {
    if (args_.has_sinks == 0) return;
    const float sink = call_.in<float>(6)[head * args_.sink_stride];
    if (!(sink > scratch_.largest[row])) return;
    scratch_.largest[row] = sink;
    scratch_.totals[row] = 1;
  }

  // Returns the bytes from the start of a position's row to the key head of a group.
  [[nodiscard]] std::size_t head_offset(std::uint32_t group) const {
    return std::size_t{group} * groups_.heads / heads_per_key_ * head_bytes_;
  }

  // Finds the next tile: positions from `next` on that have a page. Returns false if there are none. Tiles end at
  // multiples of kTileKeys, so that what many rows sum together does not depend on where a block begins.
  bool find_tile(const Block& block, std::uint64_t& next) {
    const std::uint64_t row_bytes = args_.kv_heads * head_bytes_;
    count_ = 0;
    std::uint64_t tile_end = 0;
    while (next < block.visible && (count_ == 0 || next < tile_end)) {
      const std::uint64_t page_tokens = args_.table.page_tokens;
      const std::uint64_t page_end = std::min(block.visible, (next / page_tokens + 1) * page_tokens);
      const std::uint64_t slot = state_slot(args_.table, step_.pages, block.sequence, static_cast<std::int64_t>(next));
      if (slot == kNoSlot) {
        next = page_end;
        continue;
      }
      if (count_ == 0) tile_end = (next / kTileKeys + 1) * kTileKeys;
      const std::uint64_t end = std::min(page_end, tile_end);
      for (std::uint64_t offset = slot * row_bytes; next < end; ++next, offset += row_bytes) {
        positions_[count_] = next;
        keys_[count_] = call_.inputs[1] + offset;
        values_[count_++] = call_.inputs[2] + offset;
      }
    }
    return count_ != 0;
  }

  // Loads the tile's keys or values of one head as F32, to `to` [kTileKeys, pitch].
  void load_rows(const std::byte* const* rows, std::uint32_t group, float* to) {
    const DType dtype = static_cast<DType>(args_.state_dtype);
    const std::size_t offset = head_offset(group);
    for (std::size_t j = 0; j < count_; ++j) {
      float* const out = to + j * pitch_;
      if (dtype == DType::Q8_0)
        store_row<DType::Q8_0>(rows[j] + offset, head_dim_, out);
      else
        widen_row(dtype, rows[j] + offset, head_dim_, out);
      std::fill(out + head_dim_, out + width_, 0.0F);
    }
  }

  // Returns how many positions of the tile precede this one.
  [[nodiscard]] std::size_t tile_index(std::uint64_t position) const {
    if (position > positions_[count_ - 1]) return count_;  // most rows see whole tiles
    return static_cast<std::size_t>(std::lower_bound(positions_, positions_ + count_, position) - positions_);
  }

  void weigh(const Block& block, std::size_t rows, std::size_t at) {
    for (std::size_t row = 0; row < rows; ++row) {
      const std::uint64_t visible = step_.visible(args_.table, token_of(block, row));
      const std::size_t seen = tile_index(visible);
      float* const scores = scratch_.scores + (at + row) * kTileKeys;
      if (args_.soft_cap > 0) cap_scores(args_.soft_cap, scores, kTileKeys);
      if (args_.window != 0)
        std::fill_n(scores, tile_index(step_.first(args_, token_of(block, row))),
                    -std::numeric_limits<float>::infinity());
      weigh_row(seen, width_, scratch_.largest[at + row], scratch_.totals[at + row], scores,
                scratch_.sums + (at + row) * width_);
    }
  }

  void store(const Block& block, std::uint32_t group, std::size_t rows, std::size_t at) {
    for (std::size_t row = 0; row < rows; ++row) {
      const float total = scratch_.totals[at + row];
      const float factor = total == 0 ? 0.0F : 1.0F / total;
      const float* sums = scratch_.sums + (at + row) * width_;
      float* const out =
          call_.out<float>() + (token_of(block, row) * args_.query.extents[2] + head_of(group, row)) * head_dim_;
      for (std::size_t i = 0; i < head_dim_; ++i) out[i] = sums[i] * factor;
    }
  }

  const CpuCall& call_;
  const AttentionArgs& args_;
  StepIndices step_;
  std::size_t head_dim_;
  std::size_t head_bytes_;  // in the cache
  std::size_t width_;
  std::size_t pitch_;
  std::uint32_t heads_per_key_;
  Scratch scratch_;
  Groups groups_;
  // The current tile: its positions and the start of their rows (first head).
  std::size_t count_ = 0;
  std::uint64_t positions_[kTileKeys];
  const std::byte* keys_[kTileKeys];
  const std::byte* values_[kTileKeys];
  // Positions of the tile that the current slab's rows see: each row, and the rows of each product together.
  KeySpan spans_[kSlabRows];
  KeySpan product_spans_[kSlabRows / kMultiplyRows];
};

int run(const CpuCall& call) {
  Attention(call).run();
  return 0;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shunt {
namespace {

HWY_EXPORT(run);

CpuWork work(const OpCall& call, std::uint32_t) {
  return {.phases = 1,
          .shared_scratch_bytes = 0,
          .thread_scratch_bytes = attention::scratch_bytes(attention::padded_width(call.input(0).shape[2]))};
}

}  // namespace

extern const CpuKernel attention_simd{fits_attention_arguments, work, write_arguments<attention_arguments>,
                                      [](const CpuCall& call) { return HWY_DYNAMIC_DISPATCH(run)(call); }};

}  // namespace shunt
#endif
