// A prepared run of ops on the CPU: a job of the pool, with a step for each phase of each op.
#pragma once

#include <span>
#include <vector>

#include "base/system/thread_pool.h"
#include "devices/kernel_run.h"
#include "devices/program_trace.h"
#include "devices/waiting.h"

namespace shunt::cpu {

class CpuProgram final : public Program {
 public:
  // `device` is the label of recorded events; `recorder` may be null. REQUIRES: choose(call) returns a kernel that
  // supports the call.
  [[nodiscard]] static Result<std::unique_ptr<CpuProgram>> create(const ProgramRequest& request,
                                                                  KernelRun::Choose choose, std::uint32_t threads,
                                                                  trace::Recorder* recorder, std::string_view device);

  [[nodiscard]] std::uint64_t scratch_bytes() const override { return scratch_ ? scratch_->bytes() : 0; }
  [[nodiscard]] bool records() const override { return true; }
  // Returns about what each thread reads first, as much as its own cache can keep: parts of weights.
  [[nodiscard]] std::span<const ThreadPool::Fetched> first_reads() const { return first_reads_; }

  // Runs all ops on all threads of the pool. Errors: internal if a kernel failed, timed_out.
  [[nodiscard]] Status run(ThreadPool& pool, const Submission& submission, const Deadline& deadline);

 private:
  class Run;

  CpuProgram(KernelRun kernels, ProgramTrace trace) : kernels_(std::move(kernels)), trace_(std::move(trace)) {}

  std::string name_;
  KernelRun kernels_;
  ProgramTrace trace_;
  std::vector<std::string> op_names_;
  std::unique_ptr<Buffer> scratch_;
  std::vector<ThreadPool::Fetched> first_reads_;
};

}  // namespace shunt::cpu
