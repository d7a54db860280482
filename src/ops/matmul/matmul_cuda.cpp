#include "ops/cuda.h"
#include "ops/matmul/matmul.h"

namespace shunt {
namespace {

std::string supports(const OpCall& call) { return normalizes_refusal(call); }

std::uint64_t blocks(const OpCall& call) {
  const MatmulArgs args = matmul_args(call);
  return (matmul_capacity(args) + kMatmulGroupRows - 1) / kMatmulGroupRows * args.m;
}

}  // namespace

extern const CudaKernel matmul_cuda;
const CudaKernel matmul_cuda{supports, blocks, nullptr};

}  // namespace shunt
