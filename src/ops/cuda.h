// How a CUDA-style kernel runs one op: what the backends of CUDA and HIP share.
//
// A family folder `x/` may hold
//   x.cu        one source for CUDA and HIP; ops/kernel.cuh says what it sees of a call
//   x_gpu.cpp   what the host knows of it, where the defaults of CudaKernel do not fit (ops/gpu_kernels.h)
// The build compiles x.cu to PTX, which every NVIDIA driver assembles for its own GPU, and to a code object for AMD
// GPUs, and embeds both. A build without clang has no PTX, one without hipcc no code objects. Plain values; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/cuda_call.h"
#include "ops/shader.h"

namespace shunt {

struct CudaKernel {
  // Empty: yes. Otherwise the reason why this kernel cannot run the op.
  std::string (*supports)(const OpCall& call) = no_refusal;
  // REQUIRES (here and below): supports(call) is empty.
  // Blocks for all that the program is prepared for; kernels mask what a submission does not fill.
  std::uint64_t (*blocks)(const OpCall& call) = result_elements;
  // Numbers that the kernel reads behind CudaCall::constants; null: none.
  std::vector<std::uint32_t> (*constants)(const OpCall& call) = nullptr;
};

// One family's kernel, named shunt_FAMILY in its compiled forms; a form that was not built is empty.
struct CudaModule {
  std::string_view family;
  const CudaKernel* kernel;
  std::span<const std::byte> ptx;  // ends with a zero
  std::span<const std::byte> code_object;
};
// All that this build has, in the order of their names.
[[nodiscard]] std::span<const CudaModule> cuda_modules();

// The kernel that runs the call, or why there is none.
struct CudaChoice {
  const CudaModule* module = nullptr;
  std::string refusal;
};
[[nodiscard]] CudaChoice choose_cuda(const OpCall& call);

// The block of memory that describes the call, but for its addresses: a CudaCall, the family's arguments, and the
// constants from a whole number of 16 bytes on. REQUIRES: choose_cuda() found a module.
struct CudaBlock {
  std::vector<std::byte> bytes;
  std::uint64_t constants_at = 0;  // 0: none
};
[[nodiscard]] CudaBlock cuda_block(const OpCall& call, const CudaModule& module);

}  // namespace shunt
