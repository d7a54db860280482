// Widening, a thread computes one element. Quantizing, a block of threads writes one block of 256 elements or two
// of 32.
#include "ops/quantize/quantize_args.h"

#include "ops/quantize/pack.cuh"

namespace shunt {
namespace {

SHUNT_FUNCTION void widen(const CudaCall* call, const QuantizeArgs& args, std::uint64_t end) {
  const std::uint64_t index = thread_index();
  if (index >= end) return;
  const std::uint8_t* const row =
      input_of<std::uint8_t>(call, 0) + row_bytes(args.x.dtype, row_offset(args.x, index / args.x.extents[3]));
  store(args.to, output_of<void>(call), index,
        weight_at(args.x.dtype, row, static_cast<std::uint32_t>(index % args.x.extents[3])));
}

SHUNT_FUNCTION void encode(const CudaCall* call, const QuantizeArgs& args, std::uint64_t end) {
  SHUNT_SHARED encoding::Tile tile;
  const std::uint32_t of_tile = quantize_tile(block_elements(args.to));
  const std::uint64_t first = group() * of_tile;
  if (first >= end) return;
  // The second of two blocks may not be valid.
  const auto elements = static_cast<std::uint32_t>(end - first < of_tile ? end - first : of_tile);
  for (std::uint32_t i = lane(); i < elements; i += kGroup) {
    const std::uint64_t index = first + i;
    tile.x[i] = load(args.x.dtype, input_of<void>(call, 0),
                     row_offset(args.x, index / args.x.extents[3]) + index % args.x.extents[3]);
  }
  encoding::encode_tile(tile, args.to, elements);
  const std::uint64_t bytes = row_bytes(args.to, elements);
  const std::uint64_t of_block = row_bytes(args.to, block_elements(args.to));
  std::uint8_t* const out = output_of<std::uint8_t>(call) + row_bytes(args.to, first);
  for (std::uint64_t i = lane(); i < bytes; i += kGroup)
    out[i] = encoding::byte_of(tile, args.to, static_cast<std::uint32_t>(i / of_block),
                               static_cast<std::uint32_t>(i % of_block));
}

}  // namespace
}  // namespace shunt

SHUNT_KERNEL(quantize) {
  using namespace shunt;
  const auto& args = arguments_of<QuantizeArgs>(call);
  const std::uint64_t end = valid_row_count(args.x, parameters_of(call)) * args.x.extents[3];
  if (block_elements(args.to) == 1)
    widen(call, args, end);
  else
    encode(call, args, end);
}
