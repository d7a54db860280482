// A run of ops through the CPU's kernels: for each op the kernel, its plain-data arguments and its pointers. The
// devices of cpu/ and sim/ share it; they decide which threads run it, and when.
//
// It goes step by step. Neighbouring ops that do not depend on each other, such as a layer's query, key and value,
// share their steps, and what they would all prepare is prepared once: threads then meet less often.
//
// Holds pointers into the buffers that the ops were bound to. Constant once made; any thread may run a share.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "devices/device.h"
#include "ops/kernel.h"

namespace shunt {

// The scratch memory of a run of ops: one block shared by all threads, then one block per thread.
class ScratchSize {
 public:
  void add(const CpuWork& work);
  [[nodiscard]] std::uint64_t shared_bytes() const { return shared_bytes_; }
  [[nodiscard]] std::uint64_t thread_bytes() const { return thread_bytes_; }
  [[nodiscard]] std::uint64_t total(std::uint32_t threads) const { return shared_bytes_ + threads * thread_bytes_; }

 private:
  std::uint64_t shared_bytes_ = 0;
  std::uint64_t thread_bytes_ = 0;
};

class KernelRun {
 public:
  // Returns the kernel for a call, or null.
  using Choose = const CpuKernel* (*)(const OpCall& call);
  // Returns where a binding begins; null for a binding without a buffer.
  using Address = std::byte* (*)(const Binding& binding);

  // Device::supports() for a device that runs these kernels on this many threads.
  [[nodiscard]] static Support supports(std::span<const OpCall> run, Choose choose, std::uint32_t threads,
                                        std::string_view device);

  // REQUIRES: supports() accepted the ops.
  KernelRun(std::span<const ProgramOp> ops, Choose choose, Address address, std::uint32_t threads);

  // A phase of an op, or of several neighbours, which begins when the step before has ended.
  struct Step {
    std::uint32_t op = 0;  // the first
    std::uint32_t ops = 1;
    std::uint32_t phase = 0;
    std::uint32_t shares = 1;  // of all its ops
  };
  // The most ops of a step.
  static constexpr std::uint32_t kMostJoined = 4;

  // In the order of their ops.
  [[nodiscard]] std::span<const Step> steps() const { return steps_; }
  [[nodiscard]] const ScratchSize& scratch() const { return scratch_; }

  struct Share {
    std::uint32_t op = 0;
    std::uint32_t share = 0;  // of the op's phase
    std::uint32_t shares = 1;
  };
  // Returns what one share of a step is.
  [[nodiscard]] Share share_of(const Step& step, std::uint32_t share) const;

  // Runs one share of a phase of an op and returns the kernel's result. The caller fills in phase, parameters and
  // scratch.
  [[nodiscard]] int run(const Share& share, CpuCall& call) const;

 private:
  struct alignas(16) Arguments {
    std::array<std::byte, kMaxArgumentBytes> bytes{};
  };
  struct BoundOp {
    const CpuKernel* kernel = nullptr;
    Arguments arguments;
    std::vector<const std::byte*> inputs;
    std::byte* output = nullptr;
    std::uint32_t shares = 1;
    CpuWork work;
    std::shared_ptr<const void> context;
  };

  // Rounds up to a multiple of the number of threads.
  [[nodiscard]] std::uint32_t rounded_to_threads(std::uint32_t shares) const {
    return (shares + threads_ - 1) / threads_ * threads_;
  }
  [[nodiscard]] std::size_t count_of_joined(std::span<const ProgramOp> ops, std::span<const BoundOp> bound) const;
  [[nodiscard]] bool may_join(const OpCall& one_call, const BoundOp& one, const OpCall& other_call,
                              const BoundOp& other) const;
  void add_steps(std::uint32_t first, std::uint32_t count);

  std::uint32_t threads_;
  std::vector<BoundOp> ops_;
  std::vector<Step> steps_;
  ScratchSize scratch_;
};

}  // namespace shunt
