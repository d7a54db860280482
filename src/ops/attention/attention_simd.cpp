#include <algorithm>
#include <cmath>

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
    const auto batch = static_cast<std::uint32_t>(kBlockRows / padded);
    for (std::uint32_t group = range.begin; group < range.end; group += batch)
      run_few(block, {group, std::min(group + batch, range.end)}, rows, padded);
  }

  // Many rows of one group: the scores of a tile are a matrix product.
  void run_many(const Block& block, std::uint32_t group, std::size_t rows) {
    const std::size_t padded = (rows + kMultiplyRows - 1) / kMultiplyRows * kMultiplyRows;
    load_queries(block, group, rows, padded, 0);
    std::uint64_t next = block.begin;
    while (find_tile(block, next)) {
      load_rows(keys_, group);
      const std::size_t rounded = (count_ + 15) / 16 * 16;
      std::fill(scratch_.rows + count_ * width_, scratch_.rows + rounded * width_, 0.0F);
      transpose(scratch_.rows, width_, rounded, width_, scratch_.columns, kTileKeys);
      multiply(scratch_.query, width_, scratch_.columns, kTileKeys, padded, head_dim_, rounded, false, scratch_.scores,
               kTileKeys);
      weigh(block, rows, 0);
      load_rows(values_, group);
      multiply(scratch_.scores, kTileKeys, scratch_.rows, width_, padded, count_, width_, true, scratch_.sums, width_);
    }
    store(block, group, rows, 0);
  }

  // Few rows of several groups, tile by tile.
  void run_few(const Block& block, GroupRange range, std::size_t rows, std::size_t padded) {
    FewHeads heads[kBlockRows];
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
    for (std::size_t j = 0; j < count_; ++j) converted[j] = reinterpret_cast<std::byte*>(scratch_.rows + j * width_);
    for (std::size_t i = 0; i < count; ++i) {
      load_rows(rows, range.begin + static_cast<std::uint32_t>(i));
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
    std::fill_n(scratch_.states + at, padded, RowState{});
    for (std::size_t row = 0; row < rows; ++row) scratch_.states[at + row] = first_state(head_of(group, row));
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
  [[nodiscard]] RowState first_state(std::uint64_t head) const {
    RowState state;
    if (args_.has_sinks == 0) return state;
    const float sink = call_.in<float>(6)[head * args_.sink_stride];
    if (sink > state.largest) state = {.largest = sink, .total = 1};
    return state;
  }

  // Returns the bytes from the start of a position's row to the key head of a group.
  [[nodiscard]] std::size_t head_offset(std::uint32_t group) const {
    return std::size_t{group} * groups_.heads / heads_per_key_ * head_bytes_;
  }

  // Finds the next tile: positions from `next` on that have a page. Returns false if there are none.
  bool find_tile(const Block& block, std::uint64_t& next) {
    const std::uint64_t row_bytes = args_.kv_heads * head_bytes_;
    count_ = 0;
    while (next < block.visible && count_ < kTileKeys) {
      const std::uint64_t page_tokens = args_.table.page_tokens;
      const std::uint64_t page_end = std::min(block.visible, (next / page_tokens + 1) * page_tokens);
      const std::uint64_t slot = state_slot(args_.table, step_.pages, block.sequence, static_cast<std::int64_t>(next));
      const std::uint64_t end = std::min(page_end, next + kTileKeys - count_);
      if (slot == kNoSlot) {
        next = page_end;
        continue;
      }
      for (std::uint64_t offset = slot * row_bytes; next < end; ++next, offset += row_bytes) {
        positions_[count_] = next;
        keys_[count_] = call_.inputs[1] + offset;
        values_[count_++] = call_.inputs[2] + offset;
      }
    }
    return count_ != 0;
  }

  // Loads the tile's keys or values of one head as F32.
  void load_rows(const std::byte* const* rows, std::uint32_t group) {
    const DType dtype = static_cast<DType>(args_.state_dtype);
    const std::size_t offset = head_offset(group);
    for (std::size_t j = 0; j < count_; ++j) {
      float* const out = scratch_.rows + j * width_;
      if (dtype == DType::Q8_0)
        store_row<DType::Q8_0>(rows[j] + offset, head_dim_, out);
      else
        widen_row(dtype, rows[j] + offset, head_dim_, out);
      std::fill(out + head_dim_, out + width_, 0.0F);
    }
  }

  // Returns how many positions of the tile precede this one.
  [[nodiscard]] std::size_t tile_index(std::uint64_t position) const {
    return static_cast<std::size_t>(std::lower_bound(positions_, positions_ + count_, position) - positions_);
  }

  void weigh(const Block& block, std::size_t rows, std::size_t at) {
    for (std::size_t row = 0; row < rows; ++row) {
      const std::uint64_t visible = step_.visible(args_.table, token_of(block, row));
      const std::size_t seen = tile_index(visible);
      float* const scores = scratch_.scores + (at + row) * kTileKeys;
      if (args_.soft_cap > 0) cap_scores(args_.soft_cap, scores);
      if (args_.window != 0)
        std::fill_n(scores, tile_index(step_.first(args_, token_of(block, row))),
                    -std::numeric_limits<float>::infinity());
      weigh_row(seen, width_, scratch_.states[at + row], scores, scratch_.sums + (at + row) * width_);
    }
  }

  void store(const Block& block, std::uint32_t group, std::size_t rows, std::size_t at) {
    for (std::size_t row = 0; row < rows; ++row) {
      const float total = scratch_.states[at + row].total;
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
  std::uint32_t heads_per_key_;
  Scratch scratch_;
  Groups groups_;
  // The current tile: its positions and the start of their rows (first head).
  std::size_t count_ = 0;
  std::uint64_t positions_[kTileKeys];
  const std::byte* keys_[kTileKeys];
  const std::byte* values_[kTileKeys];
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
