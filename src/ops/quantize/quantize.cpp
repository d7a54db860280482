#include "ops/quantize/quantize.h"

#include <fmt/format.h>

#include <cstring>

#include "ops/kernel_arguments.h"
#include "ops/quantize/blocks.h"

namespace shunt {
namespace {

int run(const CpuCall& call) {
  quantize_share(call, decode_row);
  return 0;
}

}  // namespace

CpuWork quantize_work(const OpCall&, std::uint32_t) {
  return {.phases = 1, .shared_scratch_bytes = 0, .thread_scratch_bytes = kQuantizePiece * sizeof(float)};
}

std::string fits_quantize_arguments(const OpCall& call) {
  const Operand& x = call.input(0);
  const std::uint32_t block = info_of(x.dtype).block_elements;
  for (std::size_t axis = 0; axis + 1 < x.shape.rank(); ++axis)
    if (x.strides[axis] % block != 0) return fmt::format("needs rows of x that begin at a block of {}", block);
  return fits_row_arguments(call);
}

QuantizeArgs quantize_arguments(const OpCall& call) {
  QuantizeArgs args;
  args.x = strided(call.input(0));
  args.to = static_cast<std::uint32_t>(call.output->dtype);
  std::uint32_t strides[1][4];
  std::memcpy(strides[0], args.x.strides, sizeof(args.x.strides));
  merge_axes(args.x, strides, 1);
  std::memcpy(args.x.strides, strides[0], sizeof(args.x.strides));
  return args;
}

extern const CpuKernel quantize_scalar;
const CpuKernel quantize_scalar{fits_quantize_arguments, quantize_work, write_arguments<quantize_arguments>, run};

}  // namespace shunt
