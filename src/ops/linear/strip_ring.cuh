// The way of a weight in strips to a block's shared memory, through a ring of stages.
#pragma once

#include "ops/linear/strip_block.cuh"

namespace shunt {
namespace {

template <std::uint32_t chunk_bytes>
SHUNT_FUNCTION std::uint8_t* stage_at(std::uint32_t ring_at, std::uint32_t slot) {
  return dynamic_shared() + ring_at + std::uint64_t{slot} * 2U * kWarps * chunk_bytes;
}

// Starts to fill a stage with the items of a round. One thread calls it. Items are neighbours in memory as long as they
// are of one pair, and all of them if x has one segment.
template <std::uint32_t chunk_bytes>
SHUNT_FUNCTION void fill(const Stream& stream, std::uint32_t round, std::uint32_t slot) {
  const bool whole = stream.segments == 1;
  const std::uint32_t phase = stream.rounds == stream.phase_rounds ? 0U : round / stream.phase_rounds;
  const std::uint32_t batch = whole ? phase : phase / stream.segments;
  const std::uint32_t segment = phase - batch * stream.segments;
  const std::uint32_t first = (round - phase * stream.phase_rounds) * kWarps;
  const std::uint32_t first_pair = batch * stream.batch;
  const std::uint32_t chunks = stream.chunks_of(segment);
  const std::uint32_t items = stream.pairs_of(batch) * chunks;
  const std::uint32_t second_pairs = stream.second_pairs > first_pair ? stream.second_pairs - first_pair : 0U;
  const std::uint32_t second_items = second_pairs * chunks;
  const std::uint32_t end = items < first + kWarps ? items : first + kWarps;
  std::uint64_t* const full = &head().full[slot];
  for (std::uint32_t item = first; item < end;) {
    const std::uint32_t pair = whole ? 0U : item / chunks;
    const std::uint32_t pair_end = whole ? end : (pair + 1U) * chunks;
    const std::uint32_t next = pair_end < end ? pair_end : end;
    const std::uint32_t second_end = second_items < next ? second_items : next;
    const std::uint64_t from = (std::uint64_t{first_pair + pair} * stream.chunks +
                                std::uint64_t{segment} * stream.segment + (item - pair * chunks)) *
                               chunk_bytes;
    std::uint8_t* const to = stage_at<chunk_bytes>(stream.ring_at, slot) + (item - first) * chunk_bytes;
    copy_bytes(to, stream.weights[0] + from, (next - item) * chunk_bytes, full);
    if (second_end > item)
      copy_bytes(to + std::uint64_t{kWarps} * chunk_bytes, stream.weights[1] + from, (second_end - item) * chunk_bytes,
                 full);
    item = next;
  }
  arrive(full);
  if (round + 1U == stream.rounds) let_next_kernel_begin();
}

// Fills the first time stages `first` to `end` of the ring, each by the first thread of a warp.
template <std::uint32_t chunk_bytes>
SHUNT_FUNCTION void fill_stages(const Stream& stream, std::uint32_t first, std::uint32_t end) {
  const std::uint32_t slot = lane() / kWarp;
  const bool is_used = slot >= first && slot < end && slot < stream.stages && slot < stream.rounds;
  if (lane() % kWarp == 0 && is_used) fill<chunk_bytes>(stream, slot, slot);
}
// Starts the barrier of a stage by the thread that fills it.
[[maybe_unused]] SHUNT_FUNCTION void start_barriers() {
  const std::uint32_t slot = lane() / kWarp;
  if (lane() % kWarp != 0 || slot >= kStages) return;
  start_barrier(&head().full[slot]);
  head().left[slot] = 0;
  publish_barriers();
}

// Makes the ring's barriers, and shows them and the arguments in the head to all threads.
[[maybe_unused]] SHUNT_FUNCTION void begin_block() {
  start_barriers();
  sync();
}

}  // namespace
}  // namespace shunt
