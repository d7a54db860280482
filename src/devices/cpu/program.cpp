#include "devices/cpu/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/out_of_memory.h"
#include "devices/cpu/memory.h"

namespace shunt::cpu {
namespace {

constexpr int kNoMemory = -1;  // the error of a kernel that threw

std::byte* address_of(const Binding& binding) {
  return binding.buffer == nullptr ? nullptr : binding.buffer->host().data() + binding.offset;
}

}  // namespace

// The end of a run, written by the thread that met the first failure of the first failing step.
struct CpuProgram::Outcome {
  static constexpr std::uint32_t kNever = 0xFFFFFFFFU;
  std::atomic<std::uint32_t> failed_step{kNever};
  std::atomic<int> kernel_error{0};
  std::atomic<bool> timed_out{false};
  std::mutex mutex;
  Status failure;  // the kernel's message; guarded by mutex

  void note(const Status& why) {
    const std::scoped_lock lock(mutex);
    if (failure) failure = why;
  }
  void fail_at(std::uint32_t step) { failed_step.store(step, std::memory_order_release); }
  [[nodiscard]] bool ends_after(std::uint32_t step) const {
    return failed_step.load(std::memory_order_acquire) <= step;
  }
};

Result<std::unique_ptr<CpuProgram>> CpuProgram::create(const ProgramRequest& request, KernelRun::Choose choose,
                                                       std::uint32_t threads, trace::Recorder* recorder,
                                                       std::string_view device) {
  std::unique_ptr<CpuProgram> program(
      new CpuProgram(KernelRun(request.ops, choose, address_of, threads), ProgramTrace(request, device, recorder)));
  program->name_ = request.name;
  for (const ProgramOp& op : request.ops) program->op_names_.push_back(op.name);
  SHUNT_TRY_ASSIGN(program->scratch_, allocate_host(program->kernels_.scratch().total(threads)));
  return program;
}

Status CpuProgram::run(ThreadPool& pool, const Submission& submission, const Deadline& deadline) {
  Outcome outcome;
  const std::uint64_t start = trace::now_ns();
  pool.run([&](std::uint32_t thread) { run_thread(pool, submission, deadline, thread, outcome); });
  Status status = status_of(outcome);
  trace_.record_program(start, trace::now_ns(), submission.step, status);
  return status;
}

void CpuProgram::run_thread(ThreadPool& pool, const Submission& submission, const Deadline& deadline,
                            std::uint32_t thread, Outcome& outcome) {
  std::byte* const scratch = scratch_->host().data();
  const ScratchSize& size = kernels_.scratch();
  Status failure;
  CpuCall call{.parameters = &submission.parameters,
               .thread = thread,
               .threads = pool.threads(),
               .shared_scratch = scratch,
               .thread_scratch = scratch + size.shared_bytes() + thread * size.thread_bytes(),
               .failure = &failure};
  const bool profile = thread == 0 && trace_.wants_ops(submission);
  std::uint64_t start = profile ? trace::now_ns() : 0;
  for (std::uint32_t index = 0; index < kernels_.size(); ++index) {
    for (call.phase = 0; call.phase < kernels_.phases(index); ++call.phase) {
      // A kernel throws only for lack of memory. No thread may be left at the barrier.
      const int error = guarded([&] { return kernels_.run(index, call); }, [] { return kNoMemory; });
      if (error != 0) {
        outcome.kernel_error.store(error, std::memory_order_relaxed);
        outcome.note(failure);
        outcome.fail_at(index);
      }
      if (thread == 0 && has_passed(deadline)) {
        outcome.timed_out.store(true, std::memory_order_relaxed);
        outcome.fail_at(index);
      }
      pool.barrier();
    }
    if (profile) {
      const std::uint64_t end = trace::now_ns();
      trace_.record_op(index, std::exchange(start, end), end, submission.step);
    }
    // Every thread sees the same answer: its cause came before the barrier, and a thread that is ahead can only fail a
    // later step.
    if (outcome.ends_after(index)) return;
  }
}

Status CpuProgram::status_of(const Outcome& outcome) const {
  const std::uint32_t failed = outcome.failed_step.load();
  if (failed == Outcome::kNever) return {};
  const std::string& op = op_names_[failed];
  if (!outcome.failure)
    return fail_at(fmt::format("program \"{}\": kernel of \"{}\"", name_, op), outcome.failure.error());
  if (outcome.kernel_error.load() == kNoMemory)
    return fail(Code::out_of_memory, fmt::format("program \"{}\": no memory for the kernel of \"{}\"", name_, op));
  if (const int error = outcome.kernel_error.load(); error != 0)
    return fail(Code::internal, fmt::format("program \"{}\": kernel of \"{}\" failed with {}", name_, op, error));
  return fail(Code::timed_out, fmt::format("program \"{}\" ran past its deadline at \"{}\"", name_, op));
}

}  // namespace shunt::cpu
