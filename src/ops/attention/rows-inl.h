// The SIMD attention kernel: a share of a call's blocks and groups (tile.h). Included once per instruction set.
#if defined(SHUNT_OPS_ATTENTION_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_ATTENTION_ROWS_INL_H_
#undef SHUNT_OPS_ATTENTION_ROWS_INL_H_
#else
#define SHUNT_OPS_ATTENTION_ROWS_INL_H_
#endif

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <type_traits>

#include "ops/attention/attention.h"
#include "ops/attention/matrix_rows-inl.h"
#include "ops/attention/tile-inl.h"
#include "ops/attention/tile.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {
namespace tiles {

// Stands for matrix tiles that a processor lacks or may not use: products are computed in F32.
struct NoTiles {};

class Attention {
 public:
  Attention(const CpuCall& call, const AttentionArgs& args)
      : call_(call),
        args_(args),
        step_{call.in<std::int32_t>(3), call.in<std::int32_t>(4), call.in<std::int32_t>(5)},
        head_dim_(args_.query.extents[3]),
        head_bytes_(cached_head_bytes(static_cast<DType>(args_.state_dtype), args_.query.extents[3])),
        width_(padded_width(head_dim_)),
        pitch_(tile_pitch(width_)),
        heads_per_key_(args_.query.extents[2] / args_.kv_heads),
        scratch_(scratch_at(call.thread_scratch, width_)),
        parts_(call.shared_scratch == nullptr ? PartResults()
                                              : part_results_at(call.shared_scratch, args_.query.extents[2], width_)) {
    for (std::size_t i = 0; i < 2; ++i) tiles_[i].scores = scratch_.scores + i * kTileKeys * kSlabRows;
  }

  // Runs a share of the current phase, with many rows by the processor's Tiles (matrix_tiles-inl.h).
  template <class Tiles>
  void run() {
    tokens_ = valid_rows(args_.query.entries, static_cast<Extent>(args_.query.extent), *call_.parameters);
    groups_ = groups_of(args_, tokens_, call_.shares);
    if (call_.phase == 1) {
      for_each_block([this](const Block& block) { merge(block); });
      return;
    }
    std::uint64_t whole = 0;
    for_each_block([&](const Block& block) { whole += block.cost * groups_.count; });
    std::uint64_t before = 0;
    for_each_block([&](const Block& block) {
      const std::uint64_t cost = block.cost * groups_.count;
      const std::uint64_t items = std::uint64_t{groups_.count} * block.parts;
      run_items<Tiles>(block, share_of_block(before, cost, items, whole, call_.share, call_.shares));
      before += cost;
    });
  }

 private:
  // Some positions, and the start of their rows (first head).
  struct Tile {
    std::size_t count = 0;
    std::uint64_t positions[kTileKeys];
    const std::byte* keys[kTileKeys];
    const std::byte* values[kTileKeys];
    float* scores = nullptr;
  };

  // A range of indices into the current tile; empty unless begin < end.
  struct KeySpan {
    std::size_t begin = kTileKeys;
    std::size_t end = 0;

    void add(KeySpan other) {
      if (other.begin < other.end) *this = {std::min(begin, other.begin), std::max(end, other.end)};
    }
  };

  template <class Use>
  void for_each_block(Use use) {
    for (std::uint64_t token = 0; token < tokens_;) {
      const Block block = block_at(args_, step_, groups_, token, tokens_);
      use(block);
      token += block.tokens;
    }
  }

  // Items are the groups of the first part, then those of the second, and so on.
  template <class Tiles>
  void run_items(const Block& block, Range items) {
    const std::size_t rows = std::size_t{block.tokens} * groups_.heads;
    const std::size_t padded = std::bit_ceil(rows);
    while (items.begin < items.end) {
      const auto part = static_cast<std::uint32_t>(items.begin / groups_.count);
      const auto group = static_cast<std::uint32_t>(items.begin % groups_.count);
      if (!block.few) {
        run_many<Tiles>(block, part, group, rows);
        ++items.begin;
        continue;
      }
      const std::uint64_t left = std::min(items.end - items.begin, std::uint64_t{groups_.count} - group);
      const std::uint64_t count = std::min<std::uint64_t>(kSlabRows / padded, left);
      run_few(block, part, {group, group + count}, rows, padded);
      items.begin += count;
    }
  }

  // Many rows of one group: scores and sums are products of matrices. Scores are transposed, [keys, rows], so that the
  // softmax works on a vector of rows.
  template <class Tiles>
  void run_many(const Block& block, std::uint32_t part, std::uint32_t group, std::size_t rows) {
    constexpr bool kHasTiles = !std::is_same_v<Tiles, NoTiles>;
    constexpr std::size_t kTogether = kHasTiles ? kMatrixRows : 16;
    const std::size_t padded = (rows + kTogether - 1) / kTogether * kTogether;
    load_queries(block, part, group, rows, padded, 0);
    tile_ = tiles_;
    if constexpr (kHasTiles)
      see_by_tiles<Tiles>(block, part, group, rows);
    else
      see_by_vectors(block, part, group, rows, padded);
    store(block, part, group, rows, 0);
  }

  // Both products read keys and values as they lie in memory.
  void see_by_vectors(const Block& block, std::uint32_t part, std::uint32_t group, std::size_t rows,
                      std::size_t padded) {
    transpose_queries(padded);
    Range left = positions_of(block, part);
    while (find_tile(block, left, *tile_)) {
      load_rows({tile_->keys, tile_->count}, head_offset(group), scratch_.keys);
      load_rows({tile_->values, tile_->count}, head_offset(group), scratch_.values);
      for (std::size_t row = 0; row < rows; row += kSlabRows) see_slab(block, row, std::min(rows - row, kSlabRows));
    }
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
                                       tile_->scores + key * kSlabRows + column, kSlabRows);
    });
    weigh_slab(all, first_row, rows, columns);
    shrink_sums(first_row, rows);
    for_each_columns<kValueVectors>(width_, [&](auto vectors, std::size_t column) HWY_ATTR {
      for (std::size_t row = 0; row < rows; row += kMultiplyRows) {
        const KeySpan span = product_spans_[row / kMultiplyRows];
        if (span.begin >= span.end) continue;
        multiply_block<vectors, true>({tile_->scores + span.begin * kSlabRows + row, 1, kSlabRows},
                                      scratch_.values + span.begin * pitch_ + column, pitch_, span.end - span.begin,
                                      scratch_.sums + (first_row + row) * width_ + column, width_);
      }
    });
  }

  template <class Tiles>
  void see_by_tiles(const Block& block, std::uint32_t part, std::uint32_t group, std::size_t rows) {
    pack_rows<Tiles>(rows);
    Range left = positions_of(block, part);
    left.begin = left.begin / kTileKeys * kTileKeys;  // steps do not depend on where a block begins
    Tiles tiles;
    for (bool more = find_tile(block, left, *tile_); more;) {
      Tile& next = tile_ == tiles_ ? tiles_[1] : tiles_[0];
      more = find_tile(block, left, next);
      pack_tile<Tiles>(tile_index(block.begin), head_offset(group));
      see_tile(tiles, block, rows, next, head_offset(group));
      tile_ = &next;
    }
    unpack_sums(rows);
  }

  // Packs the queries of the block's rows, by way of the keys' scratch.
  template <class Tiles>
  void pack_rows(std::size_t rows) {
    for (std::size_t row = 0; row < rows; row += kMatrixRows) {
      const std::size_t count = std::min(rows - row, kMatrixRows);
      std::copy_n(scratch_.query + row * width_, count * width_, scratch_.keys);
      pack_queries<Tiles>(scratch_.keys, count, width_, steps_at(scratch_.query + row * width_));
    }
  }

  // Packs the head at an offset of the current tile's keys and values, from `begin` on.
  template <class Tiles>
  void pack_tile(std::size_t begin, std::size_t offset) {
    const DType dtype = static_cast<DType>(args_.state_dtype);
    if (dtype == DType::F32) return pack_tile<Tiles, LoadF32>(begin, offset);
    if (dtype == DType::BF16) return pack_tile<Tiles, LoadBF16>(begin, offset);
    if (dtype == DType::Q8_0) return pack_tile<Tiles, LoadBlocks>(begin, offset);
    return pack_tile<Tiles, LoadF16>(begin, offset);
  }
  template <class Tiles, class Load>
  void pack_tile(std::size_t begin, std::size_t offset) {
    pack_keys<Tiles, Load>({tile_->keys, tile_->count}, begin, offset, width_, steps_at(scratch_.keys));
    pack_values<Tiles, Load>({tile_->values, tile_->count}, begin, offset, width_, steps_at(scratch_.values));
  }

  // Adds the current tile to the sums of all rows, and fetches the next meanwhile.
  template <class Tiles>
  void see_tile(Tiles& tiles, const Block& block, std::size_t rows, const Tile& next, std::size_t offset) {
    const auto strips = static_cast<std::uint32_t>((rows + kMatrixRows - 1) / kMatrixRows);
    for (std::uint32_t strip = 0; strip < strips; ++strip) {
      const std::size_t row = strip * kMatrixRows;
      const std::size_t count = std::min(rows - row, kMatrixRows);
      if (count <= kMatrixTileRows)
        see_strip<1>(tiles, block, row, count);
      else
        see_strip<2>(tiles, block, row, count);
      const Range part = share_of(next.count, strip, strips);
      for (std::uint64_t j = part.begin; j < part.end; ++j)
        prefetch_heads(next.keys[j] + offset, next.values[j] + offset, head_bytes_);
    }
  }

  // Adds the current tile to the sums of kHalves halves of kMatrixRows rows, of which so many are there.
  template <std::size_t kHalves, class Tiles>
  void see_strip(Tiles& tiles, const Block& block, std::size_t first_row, std::size_t rows) {
    find_spans(block, first_row, rows);
    KeySpan all = span_of(0, rows);
    if (all.begin >= all.end) return;
    const std::size_t first = all.begin / kStepKeys;
    const std::size_t end = (all.end + kStepKeys - 1) / kStepKeys;
    all = {first * kStepKeys, end * kStepKeys};
    const std::size_t steps = width_ / kMatrixTileElements;
    const Step* const queries = steps_at(scratch_.query + first_row * width_);
    for (std::size_t step = first; step < end; ++step)
      multiply_steps<kHalves>(tiles, steps_at(scratch_.keys) + step * steps, queries, steps,
                              tile_->scores + step * kStepKeys * kSlabRows, kSlabRows);
    weigh_slab(all, first_row, rows, kHalves * kMatrixTileRows);
    Step* const weights = packed_weights();
    pack_weights<kHalves, Tiles>(tile_->scores, all.begin, all.end, weights);
    alignas(64) float product[kMatrixRows * kMatrixRows];
    for (std::size_t column = 0; column < width_; column += kMatrixRows) {
      const Step* const values = steps_at(scratch_.values) + column / kMatrixRows * kKeySteps;
      multiply_steps<kHalves>(tiles, values + first, weights + first, end - first, product, kMatrixRows);
      add_product<kHalves>(shrinks_, product, scratch_.sums + first_row * width_ + column * kMatrixRows);
    }
  }

  // The weights of the current tile, in place of the other tile's scores.
  Step* packed_weights() { return steps_at((tile_ == tiles_ ? tiles_[1] : tiles_[0]).scores); }

  // Turns the sums of each kMatrixRows rows into [rows, width], by way of the keys' scratch.
  void unpack_sums(std::size_t rows) {
    for (std::size_t row = 0; row < rows; row += kMatrixRows) {
      float* const sums = scratch_.sums + row * width_;
      std::copy_n(sums, kMatrixRows * width_, scratch_.keys);
      transpose(scratch_.keys, kMatrixRows, width_, kMatrixRows, sums, width_);
    }
  }

  static Step* steps_at(float* scratch) { return reinterpret_cast<Step*>(scratch); }

  // Finds what each of the slab's rows sees and each kMultiplyRows of them see together.
  void find_spans(const Block& block, std::size_t first_row, std::size_t rows) {
    std::fill(product_spans_, std::end(product_spans_), KeySpan());
    for (std::size_t row = 0; row < rows; ++row) {
      spans_[row] = span_of_token(token_of(block, first_row + row));
      product_spans_[row / kMultiplyRows].add(spans_[row]);
    }
  }

  // Returns what a token sees.
  [[nodiscard]] KeySpan span_of_token(std::uint64_t token) const {
    return {args_.window == 0 ? 0 : tile_index(step_.first(args_, token)),
            tile_index(step_.visible(args_.table, token))};
  }

  // Returns what the slab's rows from one to another see together.
  [[nodiscard]] KeySpan span_of(std::size_t begin, std::size_t end) const {
    KeySpan all;
    for (std::size_t i = begin / kMultiplyRows; i * kMultiplyRows < end; ++i) all.add(product_spans_[i]);
    return all;
  }

  // Turns the slab's scores into weights, zero where a row does not see a position, and finds the factors of its sums.
  void weigh_slab(KeySpan all, std::size_t first_row, std::size_t rows, std::size_t columns) {
    float* const scores = tile_->scores + all.begin * kSlabRows;
    for (std::size_t key = all.begin; args_.soft_cap > 0 && key < all.end; ++key)
      cap_scores(args_.soft_cap, tile_->scores + key * kSlabRows, columns);
    for (std::size_t row = 0; row < rows; ++row) {
      hide_scores(row, all.begin, std::min(spans_[row].begin, all.end));
      hide_scores(row, std::max(spans_[row].end, all.begin), all.end);
    }
    for (std::size_t row = 0; row < columns; row += hn::Lanes(Floats()))
      hn::StoreU(weigh_rows(all.end - all.begin, scratch_.largest + first_row + row, scratch_.totals + first_row + row,
                            scores + row),
                 Floats(), shrinks_ + row);
  }

  // Multiplies the slab's sums by the factors of their rows.
  void shrink_sums(std::size_t first_row, std::size_t rows) {
    for (std::size_t row = 0; row < rows; ++row)
      if (shrinks_[row] != 1) scale_row(shrinks_[row], width_, scratch_.sums + (first_row + row) * width_);
  }

  void hide_scores(std::size_t row, std::size_t begin, std::size_t end) {
    for (std::size_t key = begin; key < end; ++key)
      tile_->scores[key * kSlabRows + row] = -std::numeric_limits<float>::infinity();
  }

  // Few rows of several groups, tile by tile.
  void run_few(const Block& block, std::uint32_t part, Range range, std::size_t rows, std::size_t padded) {
    FewRows few{.width = width_,
                .elements = head_dim_,
                .bytes = head_bytes_,
                .heads = static_cast<std::size_t>(range.end - range.begin),
                .query = scratch_.query,
                .sums = scratch_.sums};
    for (std::size_t i = 0; i < few.heads; ++i) {
      const auto group = static_cast<std::uint32_t>(range.begin + i);
      load_queries(block, part, group, rows, padded, i * padded);
      few.offsets[i] = head_offset(group);
    }
    const std::size_t all_rows = few.heads * padded;
    Range left = positions_of(block, part);
    FewTile before{.scores = tile_->scores};  // empty
    for (bool more = true; more;) {
      tile_ = tile_ == tiles_ ? tiles_ + 1 : tiles_;
      more = find_tile(block, left, *tile_);
      KeySpan all;
      for (std::size_t row = 0; row < all_rows; ++row) {
        spans_[row] = more ? span_of_token(token_of(block, std::min(row % padded, rows - 1))) : KeySpan();
        all.add(spans_[row]);
      }
      const FewTile tile{
          .keys = tile_->keys, .values = tile_->values, .begin = all.begin, .end = all.end, .scores = tile_->scores};
      see(few, padded, before, tile);
      if (all.begin < all.end) {
        weigh_slab(all, 0, all_rows, whole_vectors(all_rows + hn::Lanes(Floats()) - 1));
        shrink_sums(0, all_rows);
      }
      before = tile;
    }
    for (std::size_t i = 0; i < few.heads; ++i)
      store(block, part, static_cast<std::uint32_t>(range.begin + i), rows, i * padded);
  }

  // Reads keys and values in place if vectors can, otherwise head by head through tiles of F32.
  void see(const FewRows& few, std::size_t padded, const FewTile& before, const FewTile& tile) {
    const DType dtype = static_cast<DType>(args_.state_dtype);
    if (head_dim_ % hn::Lanes(Floats()) == 0) {
      if (dtype == DType::F32) return see_rows<LoadF32>(few, padded, before, tile);
      if (dtype == DType::BF16) return see_rows<LoadBF16>(few, padded, before, tile);
      if (dtype == DType::Q8_0) return see_rows<LoadBlocks>(few, padded, before, tile);
      return see_rows<LoadF16>(few, padded, before, tile);
    }
    const std::byte* keys[kTileKeys];
    const std::byte* values[kTileKeys];
    for (std::size_t j = 0; j < kTileKeys; ++j) {
      keys[j] = reinterpret_cast<std::byte*>(scratch_.keys + j * pitch_);
      values[j] = reinterpret_cast<std::byte*>(scratch_.values + j * pitch_);
    }
    for (std::size_t i = 0; i < few.heads; ++i) {
      load_rows({tile.keys, tile.end}, few.offsets[i], scratch_.keys);
      load_rows({before.values, before.end}, few.offsets[i], scratch_.values);
      FewRows one{.width = width_,
                  .elements = width_,
                  .heads = 1,
                  .offsets = {0},
                  .query = few.query + i * padded * width_,
                  .sums = few.sums + i * padded * width_};
      FewTile before_one = before;
      before_one.values = values;
      before_one.scores += i * padded;
      FewTile tile_one = tile;
      tile_one.keys = keys;
      tile_one.scores += i * padded;
      see_rows<LoadF32>(one, padded, before_one, tile_one);
    }
  }

  template <class Load>
  static void see_rows(const FewRows& few, std::size_t padded, const FewTile& before, const FewTile& tile) {
    if (padded == 1) return see_tiles<1, Load>(few, before, tile);
    if (padded == 2) return see_tiles<2, Load>(few, before, tile);
    if (padded == 4) return see_tiles<4, Load>(few, before, tile);
    see_tiles<8, Load>(few, before, tile);
  }

  // The token and the query head of a row of a block and group.
  [[nodiscard]] std::uint64_t token_of(const Block& block, std::size_t row) const {
    return block.first + row / groups_.heads;
  }
  [[nodiscard]] std::uint64_t head_of(std::uint32_t group, std::size_t row) const {
    return std::uint64_t{group} * groups_.heads + row % groups_.heads;
  }

  // Loads scaled queries, padded with zeros to `padded` rows and `width_` columns, and clears the sums, from scratch
  // row `at` on. A sink counts in the first part.
  void load_queries(const Block& block, std::uint32_t part, std::uint32_t group, std::size_t rows, std::size_t padded,
                    std::size_t at) {
    std::fill_n(scratch_.query + (at + rows) * width_, (padded - rows) * width_, 0.0F);
    std::fill_n(scratch_.sums + at * width_, padded * width_, 0.0F);
    std::fill_n(scratch_.largest + at, padded, std::numeric_limits<float>::lowest());
    std::fill_n(scratch_.totals + at, padded, 0.0F);
    for (std::size_t row = 0; part == 0 && row < rows; ++row) add_sink(head_of(group, row), at + row);
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

  // Finds the next tile: the first of the positions `left` that have a page, which it takes away. Returns false if
  // there are none. Tiles end at multiples of kTileKeys, so that what rows sum together does not depend on where a
  // block begins.
  bool find_tile(const Block& block, Range& left, Tile& tile) const {
    const std::uint64_t row_bytes = args_.kv_heads * head_bytes_;
    tile.count = 0;
    std::uint64_t tile_end = left.end;
    while (left.begin < tile_end) {
      const std::uint64_t page_tokens = args_.table.page_tokens;
      const std::uint64_t page_end = std::min(left.end, (left.begin / page_tokens + 1) * page_tokens);
      const std::uint64_t slot =
          state_slot(args_.table, step_.pages, block.sequence, static_cast<std::int64_t>(left.begin));
      if (slot == kNoSlot) {
        left.begin = page_end;
        continue;
      }
      if (tile.count == 0) tile_end = std::min(left.end, (left.begin / kTileKeys + 1) * kTileKeys);
      const std::uint64_t end = std::min(page_end, tile_end);
      for (std::uint64_t offset = slot * row_bytes; left.begin < end; ++left.begin, offset += row_bytes) {
        tile.positions[tile.count] = left.begin;
        tile.keys[tile.count] = call_.inputs[1] + offset;
        tile.values[tile.count++] = call_.inputs[2] + offset;
      }
    }
    return tile.count != 0;
  }

  // Loads keys or values of the head at an offset as F32, to `to` [kTileKeys, pitch].
  void load_rows(std::span<const std::byte* const> rows, std::size_t offset, float* to) {
    const DType dtype = static_cast<DType>(args_.state_dtype);
    for (std::size_t j = 0; j < rows.size(); ++j) {
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
    if (position > tile_->positions[tile_->count - 1]) return tile_->count;  // most rows see whole tiles
    return static_cast<std::size_t>(std::lower_bound(tile_->positions, tile_->positions + tile_->count, position) -
                                    tile_->positions);
  }

  // Stores the results of rows, or those of a part for merge().
  void store(const Block& block, std::uint32_t part, std::uint32_t group, std::size_t rows, std::size_t at) {
    for (std::size_t row = 0; row < rows; ++row) {
      const std::uint64_t token = token_of(block, row);
      const std::uint64_t head = head_of(group, row);
      const float* sums = scratch_.sums + (at + row) * width_;
      const float total = scratch_.totals[at + row];
      if (block.parts > 1) {
        const std::uint64_t slot = part_row(token, part, head);
        std::copy_n(sums, width_, parts_.sums + slot * width_);
        parts_.largest[slot] = scratch_.largest[at + row];
        parts_.totals[slot] = total;
        continue;
      }
      const float factor = total == 0 ? 0.0F : 1.0F / total;
      float* const out = result_of(token, head);
      for (std::size_t i = 0; i < head_dim_; ++i) out[i] = sums[i] * factor;
    }
  }

  // Stores the results of a share of a block's rows that have parts.
  void merge(const Block& block) {
    if (block.parts == 1) return;
    const std::uint64_t heads = args_.query.extents[2];
    const Range share = share_of(block.tokens * heads, call_.share, call_.shares);
    for (std::uint64_t row = share.begin; row < share.end; ++row) {
      const std::uint64_t token = block.first + row / heads;
      const std::uint64_t first = part_row(token, 0, row % heads);
      float largest = std::numeric_limits<float>::lowest();
      for (std::uint32_t part = 0; part < block.parts; ++part)
        largest = std::max(largest, parts_.largest[first + part * heads]);
      float factors[kMostParts];
      float total = 0;
      for (std::uint32_t part = 0; part < block.parts; ++part) {
        factors[part] = std::exp(parts_.largest[first + part * heads] - largest);
        total += factors[part] * parts_.totals[first + part * heads];
      }
      for (std::uint32_t part = 0; part < block.parts; ++part) factors[part] = total == 0 ? 0 : factors[part] / total;
      float* const out = result_of(token, row % heads);
      std::fill_n(out, head_dim_, 0.0F);
      for (std::uint32_t part = 0; part < block.parts; ++part)
        add_scaled_row(parts_.sums + (first + part * heads) * width_, factors[part], head_dim_, out);
    }
  }

  // The row of a token's part and head among the results of parts.
  [[nodiscard]] std::uint64_t part_row(std::uint64_t token, std::uint32_t part, std::uint64_t head) const {
    return (token * groups_.most_parts + part) * args_.query.extents[2] + head;
  }

  [[nodiscard]] float* result_of(std::uint64_t token, std::uint64_t head) const {
    return call_.out<float>() + (token * args_.query.extents[2] + head) * head_dim_;
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
  PartResults parts_;
  std::uint64_t tokens_ = 0;
  Groups groups_;
  Tile tiles_[2];  // few rows also need the one before
  Tile* tile_ = tiles_;
  // Positions of the tile that the current slab's rows see: each row, and the rows of each product together.
  KeySpan spans_[kSlabRows];
  KeySpan product_spans_[kSlabRows / kMultiplyRows];
  float shrinks_[kSlabRows];  // factors for the sums of the current slab's rows
};

}  // namespace tiles
}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
