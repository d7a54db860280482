#include "devices/cpu/program.h"

#include <fmt/format.h>

#include <algorithm>

#include "devices/cpu/memory.h"

namespace shunt::cpu {
namespace {

constexpr std::uint64_t kLine = 64;
std::uint64_t whole_lines(std::uint64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

std::byte* address_of(const Binding& binding) {
  return binding.buffer == nullptr ? nullptr : binding.buffer->host().data() + binding.offset;
}

}  // namespace

void ScratchSize::add(const CpuWork& work) {
  shared_bytes_ = std::max(shared_bytes_, whole_lines(work.shared_scratch_bytes));
  thread_bytes_ = std::max(thread_bytes_, whole_lines(work.thread_scratch_bytes));
}

// How a run ended, written by whichever thread met the first failure of the first failing step.
struct CpuProgram::Outcome {
  static constexpr std::uint32_t kNever = 0xFFFFFFFFU;
  std::atomic<std::uint32_t> failed_step{kNever};
  std::atomic<int> kernel_error{0};
  std::atomic<bool> timed_out{false};

  void fail_at(std::uint32_t step) { failed_step.store(step, std::memory_order_release); }
  [[nodiscard]] bool ends_after(std::uint32_t step) const {
    return failed_step.load(std::memory_order_acquire) <= step;
  }
};

Result<std::unique_ptr<CpuProgram>> CpuProgram::create(const ProgramRequest& request, ChooseKernel choose,
                                                       std::uint32_t threads, trace::Recorder* recorder,
                                                       std::string_view device) {
  auto program = std::make_unique<CpuProgram>();
  program->name_ = request.name;
  program->recorder_ = recorder;
  if (recorder != nullptr)
    program->event_ = {.what = recorder->intern(request.name),
                       .device = recorder->intern(device),
                       .kind = trace::Kind::program,
                       .predicted_us = static_cast<float>(request.predicted_us)};
  for (const ProgramOp& op : request.ops) {
    Step step{.kernel = choose(op.call), .output = address_of(op.output), .name = op.name};
    step.kernel->write_arguments(op.call, step.arguments.bytes);
    for (const Binding& input : op.inputs) step.inputs.push_back(address_of(input));
    const CpuWork work = step.kernel->work(op.call, threads);
    step.phases = work.phases;
    program->scratch_size_.add(work);
    if (recorder != nullptr)
      step.event = {.what = recorder->intern(fmt::format("{} {}", name_of(op.call.op), op.name)),
                    .device = program->event_.device,
                    .reason = recorder->intern(op.reason),
                    .kind = trace::Kind::op,
                    .predicted_us = static_cast<float>(op.predicted_us)};
    program->steps_.push_back(std::move(step));
  }
  SHUNT_TRY_ASSIGN(program->scratch_, allocate_host(program->scratch_size_.total(threads)));
  return program;
}

Status CpuProgram::run(ThreadPool& pool, const Submission& submission, const Deadline& deadline) {
  Outcome outcome;
  const std::uint64_t start = trace::now_ns();
  pool.run([&](std::uint32_t thread) { run_thread(pool, submission, deadline, thread, outcome); });
  Status status = status_of(outcome);
  if (recorder_ != nullptr) {
    trace::Event event = event_;
    event.start_ns = start;
    event.duration_ns = trace::now_ns() - start;
    event.step = submission.step;
    event.failed = !status;
    if (!status) event.code = status.error().code;
    recorder_->record(event);
  }
  return status;
}

void CpuProgram::run_thread(ThreadPool& pool, const Submission& submission, const Deadline& deadline,
                            std::uint32_t thread, Outcome& outcome) {
  std::byte* const scratch = scratch_->host().data();
  CpuCall call{.parameters = &submission.parameters,
               .thread = thread,
               .threads = pool.threads(),
               .shared_scratch = scratch,
               .thread_scratch = scratch + scratch_size_.shared_bytes() + thread * scratch_size_.thread_bytes()};
  const bool profile = thread == 0 && submission.profile && recorder_ != nullptr;
  for (std::uint32_t index = 0; index < steps_.size(); ++index) {
    const Step& step = steps_[index];
    const std::uint64_t start = profile ? trace::now_ns() : 0;
    call.arguments = step.arguments.bytes.data();
    call.inputs = step.inputs;
    call.output = step.output;
    for (call.phase = 0; call.phase < step.phases; ++call.phase) {
      if (const int error = step.kernel->run(call); error != 0) {
        outcome.kernel_error.store(error, std::memory_order_relaxed);
        outcome.fail_at(index);
      }
      if (thread == 0 && deadline && std::chrono::steady_clock::now() > *deadline) {
        outcome.timed_out.store(true, std::memory_order_relaxed);
        outcome.fail_at(index);
      }
      pool.barrier();
    }
    if (profile) {
      trace::Event event = step.event;
      event.start_ns = start;
      event.duration_ns = trace::now_ns() - start;
      event.step = submission.step;
      recorder_->record(event);
    }
    // Every thread sees the same answer: what made it true happened before the barrier, and a thread that is
    // ahead can only fail a later step.
    if (outcome.ends_after(index)) return;
  }
}

Status CpuProgram::status_of(const Outcome& outcome) const {
  const std::uint32_t failed = outcome.failed_step.load();
  if (failed == Outcome::kNever) return {};
  const std::string& op = steps_[failed].name;
  if (const int error = outcome.kernel_error.load(); error != 0)
    return fail(Code::internal, fmt::format("program \"{}\": kernel of \"{}\" failed with {}", name_, op, error));
  return fail(Code::timed_out, fmt::format("program \"{}\" ran past its deadline at \"{}\"", name_, op));
}

}  // namespace shunt::cpu
