#include "ops/copy/copy.h"
#include "ops/cuda_work.h"

namespace shunt {
namespace {

// All that the arguments describe.
std::string supports(const OpCall&) { return {}; }

// A thread moves four words where x is copied as it is, else an element.
std::uint64_t blocks(const OpCall& call) {
  const std::uint64_t fours = whole_fours(call);
  return blocks_for_elements(fours != 0 ? fours : call.output->shape.elements());
}

}  // namespace

extern const CudaKernel copy_cuda;
const CudaKernel copy_cuda{supports, blocks, nullptr};

}  // namespace shunt
