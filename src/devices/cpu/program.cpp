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

class CpuProgram::Run final : public ThreadPool::Job {
 public:
  Run(CpuProgram& program, const Submission& submission, const Deadline& deadline)
      : program_(program),
        submission_(submission),
        deadline_(deadline),
        profile_(program.trace_.wants_ops(submission)),
        op_start_(profile_ ? trace::now_ns() : 0) {}

  std::uint32_t next_step() override {
    const KernelRun& kernels = program_.kernels_;
    if (began_ && !end_phase()) return 0;
    began_ = true;
    return op_ < kernels.size() ? kernels.shares(op_, phase_) : 0;
  }

  void run(std::uint32_t share, std::uint32_t thread) override {
    std::byte* const scratch = program_.scratch_->host().data();
    const ScratchSize& size = program_.kernels_.scratch();
    Status failure;
    CpuCall call{.parameters = &submission_.parameters,
                 .phase = phase_,
                 .share = share,
                 .shared_scratch = scratch,
                 .thread_scratch = scratch + size.shared_bytes() + thread * size.thread_bytes(),
                 .failure = &failure};
    // A kernel throws only for lack of memory.
    const int error = guarded([&] { return program_.kernels_.run(op_, call); }, [] { return kNoMemory; });
    if (error == 0) return;
    const std::scoped_lock lock(mutex_);
    if (kernel_error_ == 0) kernel_error_ = error;
    if (failure_) failure_ = failure;
  }

  [[nodiscard]] Status status() const {
    if (kernel_error_ == 0 && !timed_out_) return {};
    const std::string& op = program_.op_names_[op_];
    if (!failure_)
      return fail_at(fmt::format("program \"{}\": kernel of \"{}\"", program_.name_, op), failure_.error());
    if (kernel_error_ == kNoMemory)
      return fail(Code::out_of_memory,
                  fmt::format("program \"{}\": no memory for the kernel of \"{}\"", program_.name_, op));
    if (kernel_error_ != 0)
      return fail(Code::internal,
                  fmt::format("program \"{}\": kernel of \"{}\" failed with {}", program_.name_, op, kernel_error_));
    return fail(Code::timed_out, fmt::format("program \"{}\" ran past its deadline at \"{}\"", program_.name_, op));
  }

 private:
  // Returns whether the run goes on.
  bool end_phase() {
    timed_out_ = has_passed(deadline_);
    const bool goes_on = kernel_error_ == 0 && !timed_out_;
    if (goes_on && ++phase_ < program_.kernels_.phases(op_)) return true;
    if (profile_) {
      const std::uint64_t end = trace::now_ns();
      program_.trace_.record_op(op_, std::exchange(op_start_, end), end, submission_.step);
    }
    if (!goes_on) return false;
    phase_ = 0;
    ++op_;
    return true;
  }

  CpuProgram& program_;
  const Submission& submission_;
  const Deadline& deadline_;
  const bool profile_;
  std::uint64_t op_start_;
  bool began_ = false;
  std::uint32_t op_ = 0;
  std::uint32_t phase_ = 0;
  bool timed_out_ = false;
  std::mutex mutex_;
  int kernel_error_ = 0;  // the first one; guarded by mutex_ during a step, like the next
  Status failure_;        // the kernel's message
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
  const std::uint64_t start = trace::now_ns();
  Run run(*this, submission, deadline);
  pool.run(run);
  Status status = run.status();
  trace_.record_program(start, trace::now_ns(), submission.step, status);
  return status;
}

}  // namespace shunt::cpu
