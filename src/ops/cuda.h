// How a CUDA-style kernel runs one op: the interface that the CUDA and HIP backends share.
//
// A family folder may hold one or several kernels, each with any name x:
//   x.cu           one source for CUDA and HIP; ops/kernel.cuh says what it sees of a call
//   x.weights.cu   the same, compiled to PTX once for each dtype of weights (ops/each_weight.cuh)
//   FAMILY_gpu.cpp what the host knows about them, if the defaults of CudaKernel do not fit (ops/gpu_kernels.h)
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

[[nodiscard]] std::uint32_t small_blocks(const OpCall& call);

struct CudaKernel {
  std::string_view name;  // of its source; empty: the family's
  // Returns an empty string if this kernel can run the op, otherwise the reason why not.
  std::string (*supports)(const OpCall& call) = no_refusal;
  // REQUIRES (here and below): supports(call) is empty.
  // Returns the blocks for the program's full capacity; kernels mask what a submission does not fill.
  std::uint64_t (*blocks)(const OpCall& call) = result_elements;
  // Returns the threads of a block.
  std::uint32_t (*threads)(const OpCall& call) = small_blocks;
  // Returns which of the source's kernels runs the call: what its name has after shunt_ and the module's name. Null: it
  // has one.
  std::string (*variant)(const OpCall& call) = nullptr;
  // Among a family's kernels that can run a call, the one with the highest rank is chosen.
  int rank = 0;
  // Returns numbers that the kernel reads through CudaCall::constants; null: none.
  std::vector<std::uint32_t> (*constants)(const OpCall& call) = nullptr;
};

// A compiled source, in which the kernels are named shunt_NAME and variants; a form that was not built is empty.
struct CudaModule {
  std::string_view name;
  std::string_view family;
  std::string_view weight;  // name of the dtype of input kCudaWeight that it is for; empty: any
  const CudaKernel* kernel;
  std::span<const std::byte> ptx;  // ends with a zero
  std::span<const std::byte> code_object;
};
// The input that a source compiled for each dtype of weights is compiled for.
inline constexpr std::size_t kCudaWeight = 1;

// All modules of this build, sorted by source.
[[nodiscard]] std::span<const CudaModule> cuda_modules();

// The kernel that runs the call, by the name that it has in its module, or why there is none.
struct CudaChoice {
  const CudaModule* module = nullptr;
  std::string entry;
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
