// The way of cached keys and values to shared memory, for attention_tile. Numbers of 16 bits are taken as they are;
// blocks become halves on their way.
#pragma once

#include "ops/async_copy.cuh"
#include "ops/attention/quants.cuh"
#include "ops/attention/tile_place.cuh"

namespace shunt {
namespace {

// Copies of keys and values of 16 bits to shared memory, which run while the block computes.
template <class F, bool in_blocks = F::kInBlocks>
struct Copies {
  const std::uint16_t* keys;
  const std::uint16_t* values;
  std::uint32_t slot_elements;

  SHUNT_FUNCTION Copies(const CudaCall* call, const AttentionArgs& args, std::uint32_t kv_head)
      : keys(input_of<std::uint16_t>(call, 1) + std::uint64_t{kv_head} * F::kDim),
        values(input_of<std::uint16_t>(call, 2) + std::uint64_t{kv_head} * F::kDim),
        slot_elements(args.kv_heads * F::kDim) {}

  // Starts to copy the keys and values at these slots; zeros stand for positions without one.
  SHUNT_FUNCTION void begin(const std::uint32_t (&slots)[F::kPositions], SharedAddress keys_to,
                            SharedAddress values_to) {
    constexpr std::uint32_t kPieces = F::kDim / 8;  // of 16 bytes in a head
    constexpr std::uint32_t kAll = F::kPositions * kPieces;
    SHUNT_UNROLL
    for (std::uint32_t first = 0; first < kAll; first += F::kThreads) {
      const std::uint32_t number = first + lane();
      if (kAll % F::kThreads != 0 && number >= kAll) continue;
      const std::uint32_t place = number / kPieces;
      const std::uint32_t piece = number % kPieces;
      const std::uint32_t slot = slots[place];
      const bool exists = slot != kNone;
      const std::uint64_t element = std::uint64_t{exists ? slot : 0} * slot_elements + std::uint64_t{piece} * 8U;
      const std::uint32_t to = place * F::kPitch + piece * 16U;
      copy_sixteen(keys_to + to, keys + element, exists);
      copy_sixteen(values_to + to, values + element, exists);
    }
    commit_copies();
  }
  SHUNT_FUNCTION void end(unsigned char*) {}
};

// The same of blocks: they are in registers while the block computes, and become halves at the end.
template <class F>
struct Copies<F, true> {
  static constexpr std::uint32_t kPieces = F::kDim / 8;  // of eight quants
  static constexpr std::uint32_t kAll = F::kPositions * kPieces;
  static constexpr std::uint32_t kOfThread = (kAll + F::kThreads - 1) / F::kThreads;
  // Eight quants and their scale.
  struct Piece {
    std::uint32_t fours[2];
    std::uint32_t scale;

    SHUNT_FUNCTION void read(const std::uint8_t* head, std::uint32_t piece) {
      const std::uint8_t* const block = head + std::uint64_t{piece / 4U} * kBlockBytes;
      scale = *reinterpret_cast<const std::uint16_t*>(block);
      read_quants<2>(block + 2U + std::uint64_t{piece % 4U} * 8U, false, fours);
    }
    SHUNT_FUNCTION FourWords halves() const {
      const std::uint32_t scales = twice_half(scale, 0);
      FourWords four;
      SHUNT_UNROLL
      for (std::uint32_t i = 0; i < 4; ++i)
        four.words[i] = product_of_halves(quants_as_halves(fours[i / 2U], i % 2U), scales);
      return four;
    }
  };

  const std::uint8_t* keys;
  const std::uint8_t* values;
  std::uint64_t slot_bytes;
  Piece of_keys[kOfThread];
  Piece of_values[kOfThread];

  SHUNT_FUNCTION Copies(const CudaCall* call, const AttentionArgs& args, std::uint32_t kv_head)
      : keys(input_of<std::uint8_t>(call, 1) + kv_head * row_bytes(F::kCached, F::kDim)),
        values(input_of<std::uint8_t>(call, 2) + kv_head * row_bytes(F::kCached, F::kDim)),
        slot_bytes(args.kv_heads * row_bytes(F::kCached, F::kDim)) {}

  SHUNT_FUNCTION void begin(const std::uint32_t (&slots)[F::kPositions], SharedAddress, SharedAddress) {
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kOfThread; ++i) {
      const std::uint32_t number = i * F::kThreads + lane();
      of_keys[i] = {};
      of_values[i] = {};
      if (kAll % F::kThreads != 0 && number >= kAll) continue;
      const std::uint32_t slot = slots[number / kPieces];
      if (slot == kNone) continue;
      of_keys[i].read(keys + slot * slot_bytes, number % kPieces);
      of_values[i].read(values + slot * slot_bytes, number % kPieces);
    }
  }
  SHUNT_FUNCTION void end(unsigned char* step) {
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kOfThread; ++i) {
      const std::uint32_t number = i * F::kThreads + lane();
      if (kAll % F::kThreads != 0 && number >= kAll) continue;
      const std::uint32_t to = number / kPieces * F::kPitch + number % kPieces * 16U;
      *reinterpret_cast<FourWords*>(step + to) = of_keys[i].halves();
      *reinterpret_cast<FourWords*>(step + F::kStepBytes + to) = of_values[i].halves();
    }
  }
};

// The cached keys and values of a key head, the slots of the positions of a few steps, and the way of steps to shared
// memory.
template <class F>
struct Cache {
  Copies<F> copies;
  const std::int32_t* pages;
  PageTable table;
  std::uint32_t (&slots)[kRing][F::kPositions];
  SharedAddress memory;  // [2 steps, keys and values, positions, pitch]

  SHUNT_FUNCTION Cache(const CudaCall* call, const AttentionArgs& args, std::uint32_t kv_head,
                       std::uint32_t (&of_steps)[kRing][F::kPositions])
      : copies(call, args, kv_head),
        pages(input_of<std::int32_t>(call, 5)),
        table(args.table),
        slots(of_steps),
        memory(shared_address(dynamic_shared())) {}

  SHUNT_FUNCTION static std::uint32_t offset_of(std::uint32_t step) { return step % 2U * 2U * F::kStepBytes; }
  SHUNT_FUNCTION SharedAddress keys_of(std::uint32_t step) const { return memory + offset_of(step); }
  SHUNT_FUNCTION SharedAddress values_of(std::uint32_t step) const { return keys_of(step) + F::kStepBytes; }

  // Returns the slot of the thread's position of a step.
  SHUNT_FUNCTION std::uint32_t find(const Run& run, std::uint32_t step) const {
    const std::uint32_t position = run.first + step * F::kPositions + lane();
    if (lane() >= F::kPositions || position >= run.end) return kNone;
    return static_cast<std::uint32_t>(state_slot(table, pages, run.sequence, static_cast<std::int64_t>(position)));
  }
  // Remembers it; returns whether the position should have a slot and has none.
  SHUNT_FUNCTION bool remember(const Run& run, std::uint32_t step, std::uint32_t slot) const {
    if (lane() >= F::kPositions) return false;
    slots[step % kRing][lane()] = slot;
    return slot == kNone && run.first + step * F::kPositions + lane() < run.end;
  }
  SHUNT_FUNCTION bool has(std::uint32_t step, std::uint32_t place) const { return slots[step % kRing][place] != kNone; }

  // Bring the keys and values of a step to shared memory, while the block computes in between.
  SHUNT_FUNCTION void begin_copy(std::uint32_t step) {
    copies.begin(slots[step % kRing], keys_of(step), values_of(step));
  }
  SHUNT_FUNCTION void end_copy(std::uint32_t step) { copies.end(dynamic_shared() + offset_of(step)); }

  // Starts with a run: brings its first step and finds the slots of the second. Returns whether a position of the first
  // has no slot.
  SHUNT_FUNCTION bool start(const Run& run, bool& second_has_hole) {
    const bool has_holes = sync_any(remember(run, 0, find(run, 0)));
    begin_copy(0);
    second_has_hole = remember(run, 1, find(run, 1));
    end_copy(0);
    return has_holes;
  }
};

}  // namespace
}  // namespace shunt
