// A block computes one head of one token: online softmax over tiles of 64 positions, one score per thread. Then each
// thread sums up to four elements of the result. Larger heads take several passes.
#include "ops/attention/attention_args.h"
#include "ops/attention/cached.cuh"

SHUNT_BOUNDED_KERNEL(attention, shunt::kCudaGroupSize, 1) {
  using namespace shunt;
  constexpr std::uint32_t kElements = kHeadPart / kGroup;  // of the result, per thread
  constexpr float kLeast = -3.4028234e38F;
  const auto& args = arguments_of<AttentionArgs>(call);
  const std::uint64_t row = group();
  if (row >= valid_row_count(args.query, parameters_of(call))) return;
  const std::uint32_t heads = args.query.extents[2];
  const std::uint32_t head_dim = args.query.extents[3];
  const std::uint64_t token = row / heads;
  const std::uint64_t kv_head = row % heads / (heads / args.kv_heads);
  const std::uint64_t query = row_offset(args.query, row);
  const std::int32_t position = input_of<std::int32_t>(call, 3)[token * args.table.position_stride];
  const std::int32_t sequence = input_of<std::int32_t>(call, 4)[token * args.table.sequence_stride];
  const std::uint64_t visible = visible_positions(args.table, sequence, position);

  SHUNT_SHARED std::uint64_t slots[kGroup];
  SHUNT_SHARED float weights[kGroup];
  for (std::uint32_t part = 0; part < head_dim; part += kHeadPart) {
    float sums[kElements];
    for (std::uint32_t i = 0; i < kElements; ++i) sums[i] = 0.0F;
    float largest = kLeast;
    float total = 0.0F;
    if (args.has_sinks != 0) {
      const float sink = input_of<float>(call, 6)[row % heads * args.sink_stride];
      if (sink > kLeast) {
        largest = sink;
        total = 1.0F;
      }
    }
    for (std::uint64_t tile = first_position(args, position); tile < visible; tile += kGroup) {
      const std::uint64_t at = tile + lane();
      const std::uint64_t slot = at < visible ? state_slot(args.table, input_of<std::int32_t>(call, 5), sequence,
                                                           static_cast<std::int64_t>(at))
                                              : kNoSlot;
      float score = kLeast;
      if (slot != kNoSlot) {
        const std::uint64_t begin = (slot * args.kv_heads + kv_head) * head_dim;
        score = 0.0F;
        for (std::uint32_t i = 0; i < head_dim; ++i)
          score += load(args.query.dtype, input_of<void>(call, 0), query + std::uint64_t{i} * args.query.strides[3]) *
                   cached(args.state_dtype, input_of<void>(call, 1), begin, i);
        score *= args.scale;
        if (args.soft_cap > 0.0F) score = args.soft_cap * kernel_math::tanh(score / args.soft_cap);
      }
      const float top = kernel_math::max(largest, largest_of_group(score));
      slots[lane()] = slot;
      weights[lane()] = slot == kNoSlot ? 0.0F : kernel_math::exp(score - top);
      sync();
      const float shrink = kernel_math::exp(largest - top);
      largest = top;
      // The tile is summed before it is added, so that long sums stay precise.
      float tile_total = 0.0F;
      float tile_sums[kElements];
      for (std::uint32_t i = 0; i < kElements; ++i) tile_sums[i] = 0.0F;
      const auto count = static_cast<std::uint32_t>(visible - tile < kGroup ? visible - tile : kGroup);
      for (std::uint32_t seen = 0; seen < count; ++seen) {
        if (slots[seen] == kNoSlot) continue;
        const std::uint64_t begin = (slots[seen] * args.kv_heads + kv_head) * head_dim;
        tile_total += weights[seen];
        for (std::uint32_t i = 0; i < kElements; ++i) {
          const std::uint32_t d = lane() + i * kGroup;
          if (part + d < head_dim)
            tile_sums[i] += weights[seen] * cached(args.state_dtype, input_of<void>(call, 2), begin, part + d);
        }
      }
      total = total * shrink + tile_total;
      for (std::uint32_t i = 0; i < kElements; ++i) sums[i] = sums[i] * shrink + tile_sums[i];
      sync();
    }
    for (std::uint32_t i = 0; i < kElements; ++i) {
      const std::uint32_t d = part + lane() + i * kGroup;
      if (d < head_dim) output_of<float>(call)[row * head_dim + d] = total == 0.0F ? 0.0F : sums[i] / total;
    }
  }
}
