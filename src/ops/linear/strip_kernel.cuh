// Up to eight rows of x times a weight in strips (ops/strips.h), on tensor cores and as exact as products of floats.
//
// A block multiplies two streams of strips together: the two halves of its stretch of the weight, or the same rows of
// gate and up. It brings them to shared memory through a ring, a chunk of both for each warp, and begins before the
// kernel ends that writes x. x is there as pairs of halves, x = high + low / 2^11, which are neighbouring columns of
// the product (BF16: three parts). The weights' integers are halves as well, and are scaled after the product. Of each
// row of x, the columns that a warp reads together are divided by a power of two, their size, so that the largest is
// between 1 and 2; the product of a chunk is multiplied by it. Dividing a row by its norm is left to the end.
//
// Item i of a phase, chunk i % chunks of pair i / chunks, is for warp i % 16. A warp adds what it has of a pair to its
// own place of the pair's sums, so nobody waits for others but at the end of a batch of pairs, and all sums have a
// fixed order. A phase is a batch with one segment of x, of which there is one if all of x fits in shared memory.
//
// A kernel stores a product's arguments in the head, calls begin_block(), then StripKernel::run().
#pragma once

#include "ops/linear/strip_phase.cuh"

namespace shunt {
namespace {

template <std::uint32_t of, std::uint32_t x_rows>
struct StripKernel {
  using Parts = XParts<of, x_rows>;
  using WithNorm = XPreparation<of, x_rows, true>;
  using Plain = XPreparation<of, x_rows, false>;
  static constexpr std::uint32_t kChunkBytes = Strip<of>::kBytes;
  static constexpr std::uint32_t kChunkGroups = Strip<of>::kColumns / 32;
  static constexpr std::uint32_t kSumFloats = linear_strip_sum_bytes(x_rows) / 4;  // of a pair

  SHUNT_FUNCTION static Stream stream_of(const Arguments& from, const WeightRowsOfBlock& weight) {
    const LinearStripPlan& plan = from.plan;
    const std::uint64_t row_bytes = std::uint64_t{plan.chunks} * (kChunkBytes / 8U);
    const auto* const first = input_of<std::uint8_t>(&from.call, 1);
    const auto* const second = from.args.has_up != 0 ? input_of<std::uint8_t>(&from.call, 3) : first;
    const bool one_batch = weight.pairs <= plan.batch;
    const std::uint32_t batch = one_batch ? weight.pairs : plan.batch;
    const std::uint32_t phase_rounds = (batch * plan.segment + kWarps - 1U) / kWarps;
    const std::uint32_t batches = one_batch ? 1U : (weight.pairs + batch - 1U) / batch;
    return {.weights = {first + weight.first[0] * row_bytes, second + weight.first[1] * row_bytes},
            .pairs = weight.pairs,
            .second_pairs = weight.second_pairs,
            .chunks = plan.chunks,
            .batch = batch,
            .segment = plan.segment,
            .segments = plan.segments,
            .phase_rounds = phase_rounds,
            .rounds = batches * plan.segments * phase_rounds,
            .stages = plan.stages,
            .ring_at = plan.ring_at};
  }

  // Starts the ring, waits for x, and stores its first segment. Returns the residual of the thread's first output.
  SHUNT_FUNCTION static float begin(const Share& share) {
    const Arguments& from = head().arguments;
    const WeightRowsOfBlock weight = strip_rows_of(share, from.args);
    const Stream stream = stream_of(from, weight);
    fill_stages<kChunkBytes>(stream, 0, kStagesBeforeX);
    const XReader<x_rows> reader(&from.call, from.args);
    const bool has_norm = from.args.has_norm != 0;
    const std::uint32_t end = from.plan.segment * kChunkGroups;
    HeldX held;
    if (has_norm) {
      wait_to_read(&from.call, 1U << 2U);
      WithNorm::read_norm(reader, 0, end, held);
    }
    if (lane() == 0) {
      head().weight = weight;
      head().stream = stream;
    }
    clear_sums(from.plan.batch * (2 * kSumFloats / 4));
    const Parameters parameters = parameters_of(&from.call);

    wait_for_earlier_kernels();
    if (has_norm) {
      WithNorm::read_x(reader, 0, end, held);
    } else {
      Plain::read_x(reader, 0, end, held);
    }
    float residual = 0.0F;
    if (lane() < Output<x_rows>::count(from.args, stream.batch))
      residual = residual_of(from.call, from.args, weight, Output<x_rows>(from.args, lane()), 0);
    fill_stages<kChunkBytes>(stream, kStagesBeforeX, kStages);
    if (has_norm) {
      WithNorm::put_segment(Parts(from.plan), reader, held, 0, end, true);
    } else {
      Plain::put_segment(Parts(from.plan), reader, held, 0, end, true);
    }
    if (lane() == 0) head().rows = linear_rows(from.args, parameters);
    return residual;
  }

  // Reads a segment of x and stores it.
  SHUNT_FUNCTION static void put_segment(std::uint32_t segment, bool first_time) {
    const auto& [call, args, plan] = head().arguments;
    const XReader<x_rows> reader(&call, args);
    const Parts parts(plan);
    const std::uint32_t from = segment * plan.segment * kChunkGroups;
    const std::uint32_t end = from + head().stream.chunks_of(segment) * kChunkGroups;
    HeldX held;
    if (args.has_norm != 0) {
      WithNorm::read_norm(reader, from, end, held);
      WithNorm::read_x(reader, from, end, held);
      WithNorm::put_segment(parts, reader, held, from, end, first_time);
    } else {
      Plain::read_x(reader, from, end, held);
      Plain::put_segment(parts, reader, held, from, end, first_time);
    }
  }

  // The ring, as the head describes it.
  struct Ring {
    std::uint32_t rounds = head().stream.rounds;
    std::uint32_t stages = head().stream.stages;
    std::uint32_t at = head().stream.ring_at;
    SHUNT_FUNCTION void fill(std::uint32_t round, std::uint32_t slot) const {
      shunt::fill<kChunkBytes>(head().stream, round, slot);
    }
  };

  // Does the block's share of the product whose arguments are in the head. REQUIRES: begin_block() was called.
  SHUNT_FUNCTION static void run(const Share& share) {
    const float residual = begin(share);
    bool has_segment = true;
    sync();
    const Stream& stream = head().stream;
    const Ring ring;
    const XColumns<of, x_rows> x{Parts(head().arguments.plan)};
    Place place;
    for (std::uint32_t first_pair = 0, batch = 0; first_pair < stream.pairs; first_pair += stream.batch, ++batch) {
      const std::uint32_t pairs = stream.pairs_of(batch);
      float* const sums = all_sums() + std::uint64_t{batch % 2U} * head().arguments.plan.batch * kSumFloats;
      for (std::uint32_t segment = 0; segment < stream.segments; ++segment) {
        if (!has_segment) {
          sync();
          put_segment(segment, batch == 0);
          sync();
        }
        has_segment = stream.segments == 1;
        if (batch == 0 && segment + 1 == stream.segments) put_norm_factors<x_rows>(head().arguments.args);
        multiply_phase(place, ring, x, stream.phase_rounds, pairs, stream.chunks_of(segment), sums);
      }
      sync();
      const auto& [call, args, plan] = head().arguments;
      finish<of, x_rows>(call, args, head().weight, sums, first_pair, pairs, stream.pairs > stream.batch, residual);
    }
  }
};

}  // namespace
}  // namespace shunt
