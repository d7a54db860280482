// A run of ops through the CPU's kernels: for each op the kernel, its plain-data arguments and its pointers. The
// devices of cpu/ and sim/ share it; they decide which threads run it, and when.
//
// Holds pointers into the buffers that the ops were bound to. Constant once made; any thread may run a share.
#pragma once

#include <array>
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

  [[nodiscard]] std::size_t size() const { return steps_.size(); }
  // Returns the phases of an op, each of which begins when the one before has ended.
  [[nodiscard]] std::uint32_t phases(std::size_t op) const { return steps_[op].phases; }
  // Returns into how many shares a phase of an op is cut.
  [[nodiscard]] std::uint32_t shares(std::size_t op, std::uint32_t phase) const {
    return steps_[op].first_phase_is_small && phase == 0 ? 1 : steps_[op].shares;
  }
  [[nodiscard]] const ScratchSize& scratch() const { return scratch_; }

  // Runs one share of a phase of an op and returns the kernel's result. The caller fills in phase, share, parameters
  // and scratch.
  [[nodiscard]] int run(std::size_t op, CpuCall& call) const;

 private:
  struct alignas(16) Arguments {
    std::array<std::byte, kMaxArgumentBytes> bytes{};
  };
  struct BoundOp {
    const CpuKernel* kernel = nullptr;
    Arguments arguments;
    std::vector<const std::byte*> inputs;
    std::byte* output = nullptr;
    std::uint32_t phases = 1;
    std::uint32_t shares = 1;
    bool first_phase_is_small = false;
    std::shared_ptr<const void> context;
  };

  std::vector<BoundOp> steps_;
  ScratchSize scratch_;
};

}  // namespace shunt
