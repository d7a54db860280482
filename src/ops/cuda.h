// How a CUDA-style kernel runs one op: the interface that the CUDA and HIP backends share.
//
// A family folder `x/` may hold
//   x.cu        one source for CUDA and HIP; ops/kernel.cuh says what it sees of a call
//   x_gpu.cpp   what the host knows about it, if the defaults of CudaKernel do not fit (ops/gpu_kernels.h)
// The build compiles x.cu to PTX, which NVIDIA drivers assemble for their own GPUs, and to a code object for AMD GPUs,
// and embeds both. A build without clang has no PTX, one without hipcc no code objects. Plain values; any thread.
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
  // Returns an empty string if this kernel can run the op, otherwise the reason why not.
  std::string (*supports)(const OpCall& call) = no_refusal;
  // REQUIRES (here and below): supports(call) is empty.
  // Returns the blocks for the program's full capacity; kernels mask what a submission does not fill.
  std::uint64_t (*blocks)(const OpCall& call) = result_elements;
  // Returns numbers that the kernel reads through CudaCall::constants; null: none.
  std::vector<std::uint32_t> (*constants)(const OpCall& call) = nullptr;
};

// One family's kernel, named shunt_FAMILY in its compiled forms; a form that was not built is empty.
struct CudaModule {
  std::string_view family;
  const CudaKernel* kernel;
  std::span<const std::byte> ptx;  // ends with a zero
  std::span<const std::byte> code_object;
};
// All modules of this build, sorted by name.
[[nodiscard]] std::span<const CudaModule> cuda_modules();

// The kernel that runs the call, or why there is none.
struct CudaChoice {
  const CudaModule* module = nullptr;
  std::string refusal;
};
[[nodiscard]] CudaChoice choose_cuda(const OpCall& call);

// The memory block that describes a call, without addresses: a CudaCall, the family's arguments, then the constants,
// aligned to 16 bytes. REQUIRES: choose_cuda() found a module.
struct CudaBlock {
  std::vector<std::byte> bytes;
  std::uint64_t constants_at = 0;  // 0: none
};
[[nodiscard]] CudaBlock cuda_block(const OpCall& call, const CudaModule& module);

}  // namespace shunt
