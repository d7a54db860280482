// How a CUDA-style kernel runs one op: the interface that the CUDA and HIP backends share.
//
// A family folder may hold one or several kernels, each with any name x:
//   x.cu           one source for CUDA and HIP; ops/kernel.cuh says what it sees of a call
//   x.weights.cu   the same, compiled to PTX once for each dtype of weights (ops/each_weight.cuh); drivers compile what
//                  is used only
//   x.heads.cu     the same for each size of attention's heads (ops/each_head.cuh)
//   x.sm_90.cu     (or x.sm_90.weights.cu) the same for NVIDIA GPUs of compute capability 9.0 and newer alone. Its
//                  kernels may start early (ops/early.cuh)
//   x.sm_90a.cu    compiled as x.sm_90.cu, and once more for 9.0 alone, with instructions that no other has
//   x.matrix.cu    (or x.matrix.weights.cu) the same from 7.5 on, once more for 8.0 and newer, and for AMD GPUs with
//                  matrix instructions
//   x.early.cu     compiled as x.cu, and once more as x.sm_90.cu
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

#include "ops/arithmetic.h"
#include "ops/cuda_call.h"
#include "ops/kernel_choice.h"
#include "ops/layout.h"
#include "ops/shader.h"

namespace shunt {

[[nodiscard]] std::uint32_t small_blocks(const OpCall& call);
[[nodiscard]] std::string dtype_of_weight(const OpCall& call);

struct CudaKernel {
  std::string_view name;    // of its source; empty: the family's
  std::string_view family;  // of the ops that it runs; empty: that of its source
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
  // Returns which of the source's modules runs the call, if it was compiled to several.
  std::string (*part)(const OpCall& call) = dtype_of_weight;
  // Among a family's kernels that can run a call, the rule takes the one with the highest rank. Those of rank 0 run
  // what no other can.
  int rank = 0;
  // Returns whether the rule leaves the call to others with a rank, if one of them can run it. Null: it never does.
  bool (*yields)(const OpCall& call) = nullptr;
  // It is only in modules for one capability (CudaModule::is_for_one), not in those of the same source for newer GPUs.
  bool is_for_one = false;
  // Returns numbers that the kernel reads through CudaCall::constants; null: none.
  std::vector<std::uint32_t> (*constants)(const OpCall& call) = nullptr;
  // The layout in which it reads weights that have one other than rows (ops/strips.h).
  Layout weights = Layout::rows;
  // How it computes products; it runs only calls whose numerics allow that.
  Arithmetic arithmetic = Arithmetic::f32;
  // If not 0, a grid has at most so many blocks per multiprocessor, which share all the work, or least_blocks().
  std::uint32_t most_blocks = 0;
  // Neighbours that do not need each other's results may share a launch, each with some of its blocks, but no fewer
  // than least_blocks() says; null: one. The kernel takes its call and block from call_of_block() or call_in() alone.
  bool shares_launch = false;
  std::uint64_t (*least_blocks)(const OpCall& call) = nullptr;
  // Returns the kernel of another source, by its full name, that runs calls of two different kernels of this one in a
  // launch; empty: there is none. Null: for no calls.
  std::string (*joint)(const OpCall& first, const OpCall& next) = nullptr;
  std::string_view joint_source;
  // Returns the shared memory that a launch gives each block besides what the kernel declares; null: none.
  std::uint32_t (*shared_bytes)(const OpCall& call) = nullptr;
  // Returns the bytes at CudaCall::scratch, which keep their values from the kernel before to this one; null: none.
  std::uint64_t (*scratch_bytes)(const OpCall& call) = nullptr;
  // Runs before it on the same call, itself after its own one before, and leaves in scratch what they make of the
  // inputs in `read_before` (bits): ops in a row with the same ones share that. Null: none.
  const CudaKernel* before = nullptr;
  std::uint32_t read_before = 1U << 0U;
  // Returns a number on which that depends too; null: on nothing else.
  std::uint64_t (*before_depends_on)(const OpCall& call) = nullptr;
};

inline constexpr std::uint32_t kStripsSharedBytes = 227U << 10U;

// The properties of a GPU by which a kernel is chosen.
struct CudaGpu {
  std::uint32_t capability = 0;  // ten times the compute capability; AMD's have none
  std::uint32_t multiprocessors = 1;
  std::uint32_t shared_bytes = 0;  // of a block, at most
  std::string gfx = {};            // AMD's name of its instructions, "gfx90a"; empty: the GPU takes PTX

  // Kernels for weights in strips keep much in shared memory: GPUs of 12.x have too little.
  [[nodiscard]] bool reads_strips() const { return capability >= 90 && shared_bytes >= kStripsSharedBytes; }
};

// Those of an H100 and an H200, for which kernels choose the shapes of their blocks.
inline constexpr std::uint64_t kMultiprocessors = 132;

// A compiled source, in which the kernels are named shunt_NAME and variants; a form that was not built is empty.
struct CudaModule {
  std::string_view name;  // not always the only module of that name
  std::string_view family;
  std::string_view part;                   // the weights or heads that it is for; empty: any
  std::uint32_t capability;                // the least of a GPU that runs it
  bool is_for_one;                         // only GPUs of that very capability do
  std::vector<const CudaKernel*> kernels;  // what the host knows about those in it
  std::span<const std::byte> ptx;          // ends with a zero
  std::span<const std::byte> code_object;
  std::vector<std::string_view> code_object_for;  // CudaGpu::gfx of the GPUs that it has instructions of
};
// The input that a source compiled for each dtype of weights is compiled for.
inline constexpr std::size_t kCudaWeight = 1;

// All modules of this build, sorted by source.
[[nodiscard]] std::span<const CudaModule> cuda_modules();
// Returns the GPUs that a code object has instructions of: none if it is no bundle of clang's.
[[nodiscard]] std::vector<std::string_view> gpus_of_code_object(std::span<const std::byte> code_object);
// Returns whether this build has kernels for a GPU that others cannot run: AMD's have matrix instructions then.
[[nodiscard]] bool has_matrix_kernels(const CudaGpu& gpu);

// A kernel by the name that it has in its module.
struct CudaEntry {
  const CudaModule* module = nullptr;
  const CudaKernel* kernel = nullptr;
  std::string name;

  // Whether it may start before the kernel ahead of it has ended, and itself waits for that one's results.
  [[nodiscard]] bool starts_early() const { return module->capability >= 90; }
  // The name of its source.
  [[nodiscard]] std::string_view source() const { return kernel->name.empty() ? module->family : kernel->name; }
};

// Returns the kernels of different sources that can run a call, the one that the rule takes first; empty if there are
// not several. `weights` is the layout of those weights of the call that have one other than rows.
[[nodiscard]] std::vector<KernelCandidate> cuda_candidates(const OpCall& call, const CudaGpu& gpu, Layout weights);

// Overrides of the rule that chooses among several kernels.
struct CudaPreference {
  const KernelChoices* measured = nullptr;
  std::string_view named = {};  // one of cuda_candidates(); empty: the one that was measured
};

// The kernels that run a call, or why there are none.
struct CudaChoice {
  CudaEntry main;
  std::vector<CudaEntry> before;  // in the order in which they run
  std::string refusal;
  ChosenKernel use;
};
[[nodiscard]] CudaChoice choose_cuda(const OpCall& call, const CudaGpu& gpu, Layout weights = Layout::rows,
                                     const CudaPreference& preference = {});

// Returns the kernel that runs `next` and a call before it in one launch. Its module is null if there is none.
// REQUIRES: `kernel` was chosen for both.
[[nodiscard]] CudaEntry joint_entry(const CudaKernel& kernel, const OpCall& first, const OpCall& next,
                                    const CudaGpu& gpu);

// The most blocks of a launch whose calls do not need more.
[[nodiscard]] std::uint64_t most_blocks_of(const CudaKernel& kernel, const CudaGpu& gpu);

// The memory block that describes a call, without addresses: a CudaCall, the family's arguments, then the constants,
// aligned to 16 bytes. REQUIRES: choose_cuda() chose the kernel.
struct CudaBlock {
  std::vector<std::byte> bytes;
  std::uint64_t constants_at = 0;  // 0: none
};
[[nodiscard]] CudaBlock cuda_block(const OpCall& call, const CudaEntry& entry);

}  // namespace shunt
