#include "ops/cuda_work.h"

namespace shunt {
namespace {

std::string supports(const OpCall& call) {
  return info_of(call.input(0).dtype).kind == DTypeKind::integer ? floating_refusal(call, 0) : std::string();
}

std::uint64_t blocks(const OpCall& call) { return blocks_for_elements(call.output->shape.elements()); }

}  // namespace

extern const CudaKernel gather_cuda;
const CudaKernel gather_cuda{supports, blocks, nullptr};

}  // namespace shunt
