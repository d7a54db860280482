#include "devices/cpu/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <span>
#include <utility>

#include "base/out_of_memory.h"
#include "devices/cpu/limits.h"
#include "devices/cpu/memory.h"

namespace shunt::cpu {
namespace {

constexpr int kNoMemory = -1;  // the error of a kernel that threw

std::byte* address_of(const Binding& binding) {
  return binding.buffer == nullptr ? nullptr : binding.buffer->host().data() + binding.offset;
}

bool is_matrix(const OpCall& call, std::size_t input) {
  return call.has_input(input) && call.input(input).kind == TensorKind::weight && call.input(input).shape.rank() > 1;
}

// Returns whether an op reads at least half of its weights, and so may read any part of them.
bool reads_weights(const OpCall& call) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    if (is_matrix(call, i)) bytes += call.input(i).span_bytes();
  return 2 * info_of(call.op).rule->cost(call).bytes_read >= static_cast<double>(bytes);
}

// Returns which parts of the first matrices each thread reads.
std::vector<ThreadPool::Fetched> first_reads_of(std::span<const ProgramOp> ops, std::uint32_t threads) {
  std::vector<ThreadPool::Fetched> reads(threads);
  std::uint64_t left = own_cache_bytes() / 4 * 3;  // of each thread
  std::size_t part = 0;
  for (const ProgramOp& op : ops)
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      if (part == ThreadPool::kMostFetched || left == 0) return reads;
      const std::byte* const weight = address_of(op.inputs[i]);
      if (weight == nullptr || !is_matrix(op.call, i) || !reads_weights(op.call)) continue;
      const std::uint64_t bytes = op.inputs[i].bytes;
      for (std::uint64_t thread = 0; thread < threads; ++thread) {
        const std::uint64_t begin = bytes * thread / threads;
        const std::uint64_t size = std::min(bytes * (thread + 1) / threads - begin, left);
        reads[thread][part] = {weight + begin, static_cast<std::size_t>(size)};
      }
      left -= std::min(bytes / threads, left);
      ++part;
    }
  return reads;
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
    if (began_ && !end_step()) return 0;
    began_ = true;
    return step_ == steps_.size() ? 0 : steps_[step_].shares;
  }

  void run(std::uint32_t number, std::uint32_t thread) override {
    std::byte* const scratch = program_.scratch_->host().data();
    const ScratchSize& size = program_.kernels_.scratch();
    Status failure;
    CpuCall call{.parameters = &submission_.parameters,
                 .phase = steps_[step_].phase,
                 .shared_scratch = scratch,
                 .thread_scratch = scratch + size.shared_bytes() + thread * size.thread_bytes(),
                 .failure = &failure};
    const KernelRun::Share share = program_.kernels_.share_of(steps_[step_], number);
    const bool is_joined = profile_ && steps_[step_].ops > 1;
    const std::uint64_t start = is_joined ? trace::now_ns() : 0;
    // A kernel throws only for lack of memory.
    const int error = guarded([&] { return program_.kernels_.run(share, call); }, [] { return kNoMemory; });
    if (is_joined) joined_ns_[share.op - steps_[step_].op] += trace::now_ns() - start;
    if (error == 0) return;
    const std::scoped_lock lock(mutex_);
    if (kernel_error_ != 0) return;
    kernel_error_ = error;
    failed_op_ = share.op;
    failure_ = failure;
  }

  [[nodiscard]] Status status() const {
    if (kernel_error_ == 0 && !timed_out_) return {};
    const std::string& op = program_.op_names_[failed_op_];
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
  bool end_step() {
    const KernelRun::Step& step = steps_[step_++];
    timed_out_ = has_passed(deadline_);
    const bool goes_on = kernel_error_ == 0 && !timed_out_;
    if (!goes_on && kernel_error_ == 0) failed_op_ = step.op;
    if (profile_ && (!goes_on || step_ == steps_.size() || steps_[step_].op != step.op)) record(step);
    return goes_on;
  }

  // Records the ops of a step after their last phase. Joined ops divide its time in proportion to that of their shares.
  void record(const KernelRun::Step& step) {
    const std::uint64_t start = op_start_;
    const auto ns = static_cast<double>(trace::now_ns() - start);
    double all = 0;
    for (const std::uint64_t part : joined_ns_) all += static_cast<double>(part);
    double part = 0;
    for (std::uint32_t op = 0; op < step.ops; ++op) {
      part += static_cast<double>(joined_ns_[op].exchange(0));
      const double fraction = step.ops == 1 || all == 0 ? 1 : part / all;
      const auto end = start + static_cast<std::uint64_t>(ns * fraction);
      program_.trace_.record_op(step.op + op, std::exchange(op_start_, end), end, submission_.step);
    }
  }

  CpuProgram& program_;
  const Submission& submission_;
  const Deadline& deadline_;
  const std::span<const KernelRun::Step> steps_ = program_.kernels_.steps();
  const bool profile_;
  std::uint64_t op_start_;
  std::array<std::atomic<std::uint64_t>, KernelRun::kMostJoined> joined_ns_{};  // of the shares of each op, all threads
  bool began_ = false;
  std::size_t step_ = 0;
  bool timed_out_ = false;
  std::mutex mutex_;
  int kernel_error_ = 0;  // the first one; guarded by mutex_ during a step, like the next two
  std::uint32_t failed_op_ = 0;
  Status failure_;  // the kernel's message
};

Result<std::unique_ptr<CpuProgram>> CpuProgram::create(const ProgramRequest& request, KernelRun::Choose choose,
                                                       std::uint32_t threads, trace::Recorder* recorder,
                                                       std::string_view device) {
  std::unique_ptr<CpuProgram> program(
      new CpuProgram(KernelRun(request.ops, choose, address_of, threads), ProgramTrace(request, device, recorder)));
  program->name_ = request.name;
  for (const ProgramOp& op : request.ops) program->op_names_.push_back(op.name);
  program->first_reads_ = first_reads_of(request.ops, threads);
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
