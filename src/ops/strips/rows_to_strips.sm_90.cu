// A block makes one chunk: it reads the chunk's part of eight rows, and each thread gathers the bits of some words.
#include "ops/strips/rows_to_strips_args.h"

#include "ops/kernel.cuh"

namespace shunt {
namespace {

constexpr std::uint32_t kRows = 8;

SHUNT_FUNCTION void rows_to_strips(const CudaCall* call) {
  SHUNT_SHARED std::uint32_t source[kMostStripSourceWords];
  const auto& args = arguments_of<RowsToStripsArgs>(call);
  const auto chunk = static_cast<std::uint32_t>(group());
  const std::uint64_t strip = chunk / args.chunks;
  const std::uint32_t column = chunk % args.chunks;
  // Blocks have an even number of bytes; here rows begin at whole words.
  const std::uint32_t halves = args.part_bytes / 2;
  const std::uint32_t stride = (args.part_bytes + 3) / 4 * 2;
  auto* const source_halves = reinterpret_cast<std::uint16_t*>(source);
  for (std::uint32_t i = lane(); i < kRows * halves; i += kRowsToStripsThreads) {
    const std::uint64_t part = (strip * kRows + i / halves) * args.chunks + column;
    source_halves[i / halves * stride + i % halves] = input_of<std::uint16_t>(call, 0)[part * halves + i % halves];
  }
  sync();
  const auto* const flips = reinterpret_cast<const std::uint32_t*>(call->constants);
  const std::uint32_t* const counts = flips + args.words;
  const auto* const moves = reinterpret_cast<const StripMove*>(counts + args.words);
  for (std::uint32_t word = lane(); word < args.words; word += kRowsToStripsThreads) {
    std::uint32_t bits = 0;
    for (std::uint32_t i = 0; i < counts[word]; ++i) {
      const StripMove move = moves[std::uint64_t{i} * args.words + word];
      const std::uint32_t from = source[move.source & 0xFFFFU];
      bits = masked_or(bits_from(from, from, move.source >> 16U), move.mask, bits);
    }
    output_of<std::uint32_t>(call)[std::uint64_t{chunk} * args.words + word] = flips[word] ^ bits;
  }
}

}  // namespace
}  // namespace shunt

SHUNT_BOUNDED_KERNEL(rows_to_strips, shunt::kRowsToStripsThreads, 8) { shunt::rows_to_strips(call); }
