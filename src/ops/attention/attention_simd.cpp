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
        width_(padded_width(head_dim_)),
        heads_per_key_(args_.query.extents[2] / args_.kv_heads),
        scratch_(scratch_at(call.thread_scratch, width_)) {}

  void run() {
    const std::uint64_t tokens =
        valid_rows(args_.query.entries, static_cast<Extent>(args_.query.extent), *call_.parameters);
    groups_ = groups_of(args_, tokens, call_.threads);
    std::uint64_t whole = 0;
    for (std::uint64_t token = 0; token < tokens;) {
      const Block block = block_at(args_, step_, groups_, token, tokens);
      whole += block.cost * groups_.count;
      token += block.tokens;
    }
    std::uint64_t before = 0;
    for (std::uint64_t token = 0; token < tokens;) {
      const Block block = block_at(args_, step_, groups_, token, tokens);
      run_block(block, share_of_block(before, block, groups_.count, whole, call_.thread, call_.threads));
      before += block.cost * groups_.count;
      token += block.tokens;
    }
  }

 private:
  void run_block(const Block& block, GroupRange range) {
    const std::size_t rows = block.tokens * groups_.heads;
    if (rows > kFewRows) {
      for (std::uint32_t group = range.begin; group < range.end; ++group) run_many(block, group, rows);
      return;
    }
    const std::size_t padded = rows == 3 ? 4 : rows;
    const auto batch = static_cast<std::uint32_t>(kBlockRows / padded);
    for (std::uint32_t group = range.begin; group < range.end; group += batch)
      run_few(block, {group, std::min(group + batch, range.end)}, rows, padded);
  }

  // Many rows of one group: tiles of scores are products of matrices.
  void run_many(const Block& block, std::uint32_t group, std::size_t rows) {
    const std::size_t padded = (rows + kMultiplyRows - 1) / kMultiplyRows * kMultiplyRows;
    load_queries(block, group, rows, padded, 0);
    for (std::uint64_t first = 0; first < block.visible; first += kTileKeys) {
      const std::size_t count = find_slots(block, first);
      load_rows(1, group, count);
      const std::size_t rounded = (count + 15) / 16 * 16;
      std::fill(scratch_.rows + count * width_, scratch_.rows + rounded * width_, 0.0F);
      transpose(scratch_.rows, width_, rounded, width_, scratch_.columns, kTileKeys);
      multiply(scratch_.query, width_, scratch_.columns, kTileKeys, padded, head_dim_, rounded, false, scratch_.scores,
               kTileKeys);
      weigh(block, first, count, rows, 0);
      load_rows(2, group, count);
      multiply(scratch_.scores, kTileKeys, scratch_.rows, width_, padded, count, width_, true, scratch_.sums, width_);
    }
    store(block, group, rows, 0);
  }

  // Few rows of several groups, tile by tile: neighbouring heads of a position are read together.
  void run_few(const Block& block, GroupRange range, std::size_t rows, std::size_t padded) {
    for (std::uint32_t group = range.begin; group < range.end; ++group)
      load_queries(block, group, rows, padded, (group - range.begin) * padded);
    for (std::uint64_t first = 0; first < block.visible; first += kTileKeys) {
      const std::size_t count = find_slots(block, first);
      for (std::uint32_t group = range.begin; group < range.end; ++group) {
        const std::size_t at = (group - range.begin) * padded;
        load_rows(1, group, count);
        dot(padded, at, count);
        weigh(block, first, count, rows, at);
        load_rows(2, group, count);
        add(padded, at, count);
      }
    }
    for (std::uint32_t group = range.begin; group < range.end; ++group)
      store(block, group, rows, (group - range.begin) * padded);
  }

  void dot(std::size_t padded, std::size_t at, std::size_t count) {
    const float* query = scratch_.query + at * width_;
    float* scores = scratch_.scores + at * kTileKeys;
    if (padded == 1) return dot_rows<1>(query, scratch_.rows, count, width_, scores);
    if (padded == 2) return dot_rows<2>(query, scratch_.rows, count, width_, scores);
    dot_rows<4>(query, scratch_.rows, count, width_, scores);
  }

  void add(std::size_t padded, std::size_t at, std::size_t count) {
    const float* weights = scratch_.scores + at * kTileKeys;
    float* sums = scratch_.sums + at * width_;
    if (padded == 1) return add_rows<1>(weights, scratch_.rows, count, width_, sums);
    if (padded == 2) return add_rows<2>(weights, scratch_.rows, count, width_, sums);
    add_rows<4>(weights, scratch_.rows, count, width_, sums);
  }

  // Which token and query head a row of a block and group is.
  [[nodiscard]] std::uint64_t token_of(const Block& block, std::size_t row) const {
    return block.first + row / groups_.heads;
  }
  [[nodiscard]] std::uint64_t head_of(std::uint32_t group, std::size_t row) const {
    return std::uint64_t{group} * groups_.heads + row % groups_.heads;
  }

  // Scaled queries, zeros up to `padded` rows and `width_` columns, and fresh sums, from row `at` of the scratch on.
  void load_queries(const Block& block, std::uint32_t group, std::size_t rows, std::size_t padded, std::size_t at) {
    std::fill_n(scratch_.query + at * width_, padded * width_, 0.0F);
    std::fill_n(scratch_.sums + at * width_, padded * width_, 0.0F);
    std::fill_n(scratch_.scores + at * kTileKeys, padded * kTileKeys, 0.0F);
    std::fill_n(scratch_.states + at, padded, RowState{});
    const StridedTensor& query = args_.query;
    for (std::size_t row = 0; row < rows; ++row) {
      const std::uint64_t begin = row_offset(query, token_of(block, row) * query.extents[2] + head_of(group, row));
      float* const out = scratch_.query + (at + row) * width_;
      const float* x =
          floats_of(static_cast<DType>(query.dtype), call_.inputs[0], begin, query.strides[3], head_dim_, out);
      for (std::size_t i = 0; i < head_dim_; ++i) out[i] = x[i] * args_.scale;
    }
  }

  // The slots of a tile; answers how many keys it has.
  std::size_t find_slots(const Block& block, std::uint64_t first) {
    const std::size_t count = std::min<std::uint64_t>(kTileKeys, block.visible - first);
    has_gaps_ = false;
    for (std::size_t j = 0; j < count; ++j) {
      slots_[j] = state_slot(args_.table, step_.pages, block.sequence, static_cast<std::int64_t>(first + j));
      has_gaps_ = has_gaps_ || slots_[j] == kNoSlot;
    }
    return count;
  }

  // Rows of keys (input 1) or values (input 2) as F32; zeros where a position has no page.
  void load_rows(std::size_t input, std::uint32_t group, std::size_t count) {
    const DType dtype = static_cast<DType>(args_.state_dtype);
    const std::uint64_t head = std::uint64_t{group} * groups_.heads / heads_per_key_;
    const std::uint64_t row_bytes = head_dim_ * info_of(dtype).block_bytes;
    const std::byte* const base = call_.inputs[input] + head * row_bytes;
    for (std::size_t j = 0; j < count; ++j) {
      float* const out = scratch_.rows + j * width_;
      if (slots_[j] != kNoSlot)
        widen_row(dtype, base + slots_[j] * args_.kv_heads * row_bytes, head_dim_, out);
      else
        std::fill_n(out, head_dim_, 0.0F);
      std::fill(out + head_dim_, out + width_, 0.0F);
    }
  }

  void weigh(const Block& block, std::uint64_t first, std::size_t count, std::size_t rows, std::size_t at) {
    for (std::size_t row = 0; row < rows; ++row) {
      float* const scores = scratch_.scores + (at + row) * kTileKeys;
      const std::uint64_t visible = step_.visible(args_.table, token_of(block, row));
      const std::size_t seen = visible <= first ? 0 : std::min<std::uint64_t>(count, visible - first);
      if (has_gaps_)
        for (std::size_t j = 0; j < seen; ++j)
          if (slots_[j] == kNoSlot) scores[j] = -std::numeric_limits<float>::infinity();
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
  std::size_t width_;
  std::uint32_t heads_per_key_;
  Scratch scratch_;
  Groups groups_;
  std::uint64_t slots_[kTileKeys];
  bool has_gaps_ = false;
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
