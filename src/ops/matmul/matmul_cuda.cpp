#include "ops/cuda.h"
#include "ops/matmul/matmul.h"

namespace shunt {
namespace {

// All that the arguments describe.
std::string supports(const OpCall&) { return {}; }

std::uint64_t blocks(const OpCall& call) {
  const MatmulArgs args = matmul_args(call);
  return (matmul_capacity(args) + kMatmulGroupRows - 1) / kMatmulGroupRows * args.m;
}

}  // namespace

extern const CudaKernel matmul_cuda;
const CudaKernel matmul_cuda{supports, blocks, nullptr};

}  // namespace shunt
