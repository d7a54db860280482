// A prepared run of ops on the CPU: for each op the kernel, its plain-data arguments and its pointers.
#pragma once

#include <array>
#include <atomic>
#include <vector>

#include "devices/cpu/thread_pool.h"
#include "devices/device.h"
#include "ops/kernel.h"
#include "trace/recorder.h"

namespace shunt::cpu {

// The scratch memory of a run of ops: a block that all threads share, then a block for each.
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

class CpuProgram final : public Program {
 public:
  // `device` is the label under which events are recorded; `recorder` may be null.
  // REQUIRES: choose(call) is a kernel that supports the call.
  using ChooseKernel = const CpuKernel* (*)(const OpCall& call);
  [[nodiscard]] static Result<std::unique_ptr<CpuProgram>> create(const ProgramRequest& request, ChooseKernel choose,
                                                                  std::uint32_t threads, trace::Recorder* recorder,
                                                                  std::string_view device);

  [[nodiscard]] std::uint64_t scratch_bytes() const override { return scratch_ ? scratch_->bytes() : 0; }

  // Runs all ops on all threads of the pool. Errors: internal where a kernel failed, timed_out.
  using Deadline = std::optional<std::chrono::steady_clock::time_point>;
  [[nodiscard]] Status run(ThreadPool& pool, const Submission& submission, const Deadline& deadline);

 private:
  struct alignas(16) Arguments {
    std::array<std::byte, kMaxArgumentBytes> bytes{};
  };
  struct Step {
    const CpuKernel* kernel = nullptr;
    Arguments arguments;
    std::vector<const std::byte*> inputs;
    std::byte* output = nullptr;
    std::uint32_t phases = 1;
    std::string name;
    trace::Event event;  // what is known of it beforehand
  };
  struct Outcome;

  void run_thread(ThreadPool& pool, const Submission& submission, const Deadline& deadline, std::uint32_t thread,
                  Outcome& outcome);
  [[nodiscard]] Status status_of(const Outcome& outcome) const;

  std::string name_;
  std::vector<Step> steps_;
  std::unique_ptr<Buffer> scratch_;
  ScratchSize scratch_size_;
  trace::Recorder* recorder_ = nullptr;
  trace::Event event_;  // what is known of it beforehand
};

}  // namespace shunt::cpu
