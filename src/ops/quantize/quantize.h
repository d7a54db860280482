// Builds the arguments of the quantize kernels (quantize_args.h) from a call, and computes a share of it on the CPU.
// Pure functions; host only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "ops/kernel.h"
#include "ops/quantize/encode.h"
#include "ops/quantize/quantize_args.h"
#include "ops/strided.h"

namespace shunt {

// Merges axes where the strides of x allow it, so that rows are long.
[[nodiscard]] QuantizeArgs quantize_arguments(const OpCall& call);
// Returns why the arguments cannot describe the call, or an empty string.
[[nodiscard]] std::string fits_quantize_arguments(const OpCall& call);
[[nodiscard]] CpuWork quantize_work(const OpCall& call, std::uint32_t shares);

// Elements that a thread converts at a time: whole blocks of every dtype.
inline constexpr std::uint64_t kQuantizePiece = 1024;

// Computes one share. `decode(dtype, row, elements, out)` widens to F32.
template <class Decode>
void quantize_share(const CpuCall& call, Decode decode) {
  const auto& args = call.args<QuantizeArgs>();
  const DType from = static_cast<DType>(args.x.dtype);
  const DType to = static_cast<DType>(args.to);
  const DTypeInfo& in = info_of(from);
  const DTypeInfo& out = info_of(to);
  const std::uint64_t columns = args.x.extents[3];
  const std::uint64_t pieces = (columns + kQuantizePiece - 1) / kQuantizePiece;  // of a row
  const Range share = share_of(valid_row_count(args.x, *call.parameters) * pieces, call.share, call.shares);
  for (std::uint64_t i = share.begin; i < share.end; ++i) {
    const std::uint64_t row = i / pieces;
    const std::uint64_t begin = i % pieces * kQuantizePiece;
    const std::uint64_t elements = columns - begin < kQuantizePiece ? columns - begin : kQuantizePiece;
    const std::uint64_t at = row_offset(args.x, row) + begin;
    const std::byte* source = call.inputs[0] + at / in.block_elements * in.block_bytes;
    std::byte* const target = call.output + (row * columns + begin) / out.block_elements * out.block_bytes;
    if (to == DType::F32) {
      decode(from, source, elements, reinterpret_cast<float*>(target));
      continue;
    }
    if (from != DType::F32) {
      decode(from, source, elements, reinterpret_cast<float*>(call.thread_scratch));
      source = call.thread_scratch;
    }
    encode_row(to, reinterpret_cast<const float*>(source), elements, target);
  }
}

}  // namespace shunt
