// One row of x, which fits in shared memory as a whole, times a weight in strips. StripKernel takes more instructions
// for the same: most products of a generated token have a few rounds each, and take longer before and after these.
#pragma once

#include "ops/linear/strip_phase.cuh"

namespace shunt {
namespace {

template <std::uint32_t of>
struct StripRowKernel {
  using Parts = XParts<of, 1>;
  using WithNorm = XPreparation<of, 1, true>;
  using Plain = XPreparation<of, 1, false>;
  static constexpr std::uint32_t kChunkBytes = Strip<of>::kBytes;
  static constexpr std::uint32_t kBatch = kLinearStripPairs;
  static constexpr std::uint32_t kSumFloats = linear_strip_sum_bytes(1) / 4;  // of a pair
  static_assert(kBatch % kWarps == 0);  // a batch is whole rounds, whose items are neighbours in memory

  // The way of the weight to shared memory, in stages of a chunk of both streams for each warp.
  struct Ring {
    const std::uint8_t* weights[2];
    std::uint32_t items[2];  // of each stream
    std::uint32_t rounds;
    std::uint32_t stages;
    std::uint32_t at;

    SHUNT_FUNCTION Ring(const CudaCall& call, const LinearArgs& args, const LinearStripPlan& plan,
                        const WeightRowsOfBlock& weight) {
      const std::uint32_t strip_bytes = plan.chunks * kChunkBytes;
      const auto* const first = input_of<std::uint8_t>(&call, 1);
      const auto* const second = args.has_up != 0 ? input_of<std::uint8_t>(&call, 3) : first;
      weights[0] = first + std::uint64_t{weight.first[0] / 8U} * strip_bytes;
      weights[1] = second + std::uint64_t{weight.first[1] / 8U} * strip_bytes;
      items[0] = weight.pairs * plan.chunks;
      items[1] = weight.second_pairs * plan.chunks;
      rounds = (items[0] + kWarps - 1U) / kWarps;
      stages = plan.stages;
      at = plan.ring_at;
    }
    SHUNT_FUNCTION void fill(std::uint32_t round, std::uint32_t slot) const {
      const std::uint32_t first = round * kWarps;
      std::uint64_t* const full = &head().full[slot];
      std::uint8_t* const to = stage_at<kChunkBytes>(at, slot);
      std::uint32_t bytes[2];
      SHUNT_UNROLL
      for (std::uint32_t s = 0; s < 2; ++s) {
        const std::uint32_t left = items[s] > first ? items[s] - first : 0U;
        bytes[s] = (left < kWarps ? left : kWarps) * kChunkBytes;
      }
      arrive_expecting(full, bytes[0] + bytes[1]);
      const std::uint64_t from = std::uint64_t{first} * kChunkBytes;
      copy_expected(to, weights[0] + from, bytes[0], full);
      if (bytes[1] != 0) copy_expected(to + std::uint64_t{kWarps} * kChunkBytes, weights[1] + from, bytes[1], full);
      if (round + 1U == rounds) let_next_kernel_begin();
    }
    // Fills the first time stages `begin` to `end`, each by the first thread of a warp.
    SHUNT_FUNCTION void fill_stages(std::uint32_t begin, std::uint32_t end) const {
      const std::uint32_t slot = lane() / kWarp;
      if (lane() % kWarp == 0 && slot >= begin && slot < end && slot < stages && slot < rounds) fill(slot, slot);
    }
  };

  // Brings x to shared memory while the ring fills. Returns the residual of the thread's output in the first batch.
  SHUNT_FUNCTION static float begin(const CudaCall& call, const LinearArgs& args, const LinearStripPlan& plan,
                                    const WeightRowsOfBlock& weight, const Ring& ring) {
    const XReader<1> reader(&call, args);
    const bool has_norm = args.has_norm != 0;
    const std::uint32_t end = plan.chunks * Parts::kChunkGroups;
    HeldX held;
    if (has_norm) {
      wait_to_read(&call, 1U << 2U);
      WithNorm::read_norm(reader, 0, end, held);
    }
    clear_sums((weight.pairs < 2 * kBatch ? weight.pairs : 2 * kBatch) * (kSumFloats / 4));
    const bool is_last = lane() == kThreads - 1U;
    std::uint64_t rows = 0;

    wait_for_earlier_kernels();
    if (has_norm) {
      WithNorm::read_x(reader, 0, end, held);
    } else {
      Plain::read_x(reader, 0, end, held);
    }
    if (is_last) rows = linear_rows(args, parameters_of(&call));
    float residual = 0.0F;
    const std::uint32_t pairs = weight.pairs < kBatch ? weight.pairs : kBatch;
    if (lane() < Output<1>::count(args, pairs)) residual = residual_of(call, args, weight, Output<1>(args, lane()), 0);
    ring.fill_stages(kStagesBeforeX, kStages);
    if (has_norm) {
      WithNorm::put_segment(Parts(plan), reader, held, 0, end, true);
    } else {
      Plain::put_segment(Parts(plan), reader, held, 0, end, true);
    }
    if (is_last) head().rows = rows;
    return residual;
  }

  // Does the block's share of a product.
  SHUNT_FUNCTION static void run(const CudaCall& call, const LinearArgs& args, const LinearStripPlan& plan,
                                 const Share& share) {
    const WeightRowsOfBlock weight = strip_rows_of(share, args);
    const Ring ring(call, args, plan, weight);
    start_barriers();
    ring.fill_stages(0, kStagesBeforeX);
    const float residual = begin(call, args, plan, weight, ring);
    const XColumns<of, 1> x{Parts(plan)};
    Place place;
    sync();
    put_norm_factors<1>(args);
    for (std::uint32_t first_pair = 0; first_pair < weight.pairs; first_pair += kBatch) {
      const std::uint32_t left = weight.pairs - first_pair;
      const std::uint32_t pairs = left < kBatch ? left : kBatch;
      float* const sums = all_sums() + std::uint64_t{first_pair / kBatch % 2U} * kBatch * kSumFloats;
      multiply_phase(place, ring, x, (pairs * plan.chunks + kWarps - 1U) / kWarps, pairs, plan.chunks, sums);
      sync();
      finish<of, 1>(call, args, weight, sums, first_pair, pairs, weight.pairs > kBatch, residual);
    }
  }
  SHUNT_FUNCTION static void run(const CallOfBlock& of_block) {
    run(*of_block.call, arguments_of<LinearArgs>(of_block.call), constants_of<LinearStripPlan>(of_block.call),
        {of_block.block, of_block.blocks});
  }
};

}  // namespace
}  // namespace shunt
