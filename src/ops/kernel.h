// How the CPU runs one op: the interface that every kernel family's .cpp and _simd.cpp fills in.
//
// A family folder `x/` holds
//   x_args.h    plain-data arguments, one header for C++, CUDA and GLSL (args.h)
//   x.h         the function that derives them from an OpCall, for every backend
//   x.cpp       `const CpuKernel x_scalar`: the reference. Accumulates in double. Supports every dtype of the op.
//   x_simd.cpp  `const CpuKernel x_simd`: optional; vectors of the processor, by Highway or by another folder's kernels
// A kernel is called once for each share of each phase, from several threads at once; a phase begins when the one
// before has ended. A running kernel allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ops/arithmetic.h"
#include "ops/op.h"
#include "ops/parameters.h"

namespace shunt {

inline constexpr std::size_t kMaxArgumentBytes = 256;

// The phases and scratch memory of one use of an op.
struct CpuWork {
  std::uint32_t phases = 1;
  std::uint32_t batch_phases = 1;          // a batch's last phase computes, those before it prepare the shared scratch
  bool first_phase_is_small = false;       // one thread ends it before others could begin
  std::uint64_t shared_scratch_bytes = 0;  // one block for all shares, aligned to 64 bytes
  std::uint64_t thread_scratch_bytes = 0;  // one block for each thread, aligned to 64 bytes
};

struct CpuCall {
  const void* arguments = nullptr;           // the family's plain-data arguments
  std::span<const std::byte* const> inputs;  // null for an optional input that was not given
  std::byte* output = nullptr;
  const Parameters* parameters = nullptr;
  std::uint32_t phase = 0;
  std::uint32_t share = 0;  // of `shares`: the part of the work to be done
  std::uint32_t shares = 1;
  std::byte* shared_scratch = nullptr;
  std::byte* thread_scratch = nullptr;  // holds anything when a call begins
  const void* context = nullptr;        // the result of CpuKernel::context()
  Status* failure = nullptr;            // where the call reports an error; null: nobody reads it

  template <class T>
  [[nodiscard]] const T& args() const {
    return *static_cast<const T*>(arguments);
  }
  template <class T>
  [[nodiscard]] const T* in(std::size_t index) const {
    return reinterpret_cast<const T*>(inputs[index]);
  }
  template <class T>
  [[nodiscard]] T* out() const {
    return reinterpret_cast<T*>(output);
  }
};

struct CpuKernel {
  // Returns an empty string if this kernel can run the op, otherwise the reason why not.
  std::string (*supports)(const OpCall& call);
  // REQUIRES (here and below): supports(call) is empty.
  CpuWork (*work)(const OpCall& call, std::uint32_t shares);
  // Writes the family's arguments into `out`, aligned to 16 bytes.
  void (*write_arguments)(const OpCall& call, std::span<std::byte, kMaxArgumentBytes> out);
  // Returns 0, or a number that the caller reports as an internal error together with `failure`.
  int (*run)(const CpuCall& call);
  // Makes what a run needs besides the arguments, kept as long as the program; null: nothing.
  std::shared_ptr<const void> (*context)(const OpCall& call) = nullptr;
  // Returns how products are computed, which the call's numerics allow; null: in F32.
  Arithmetic (*arithmetic)(const OpCall& call) = nullptr;
  // Returns into how many shares the work can be cut at no cost; null: at most one per thread.
  std::uint64_t (*most_shares)(const OpCall& call) = nullptr;
  // Returns whether two calls with as many phases, and with the same inputs but for weights, prepare the same in the
  // shared scratch; null: they do not.
  bool (*prepares_alike)(const OpCall& one, const OpCall& other) = nullptr;
};

// A half-open range of work items.
struct Range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// Returns one share of `total` items, in whole multiples of `grain` except for the last.
inline Range share_of(std::uint64_t total, std::uint32_t share, std::uint32_t shares, std::uint64_t grain = 1) {
  const std::uint64_t grains = (total + grain - 1) / grain;
  const std::uint64_t begin = grains * share / shares * grain;
  const std::uint64_t end = grains * (share + 1) / shares * grain;
  return {begin < total ? begin : total, end < total ? end : total};
}

// The kernels of a family; simd is null if the folder has no x_simd.cpp. The build finds families by their folders.
struct CpuFamily {
  std::string_view name;
  const CpuKernel* scalar;
  const CpuKernel* simd;
};
[[nodiscard]] const CpuFamily& cpu_family(std::string_view name);

}  // namespace shunt
