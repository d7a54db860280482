#include "run/execution.h"

#include <algorithm>
#include <utility>

#include "base/out_of_memory.h"
#include "trace/run_times.h"

namespace shunt {
namespace {

// The time to wait for each of several busy devices, in turn.
constexpr std::chrono::microseconds kGlance{20};

}  // namespace

Execution::Execution(Executable& executable, const Submission& submission, std::optional<std::uint32_t> audited)
    : executable_(executable), submission_(submission), audited_(audited) {
  const std::vector<Step>& steps = executable.plan_.steps;
  for (const Executable::Prepared& program : executable.programs_)
    timed_in_ops_.push_back(program.is_timed_in_ops(submission));
  waiting_for_.resize(steps.size());
  waiters_.resize(steps.size());
  started_ns_.resize(steps.size());
  free_ns_.resize(executable.devices_.size());
  in_flight_on_.resize(executable.devices_.size());
  unwatched_.resize(executable.devices_.size());
  completions_.reserve(steps.size());
  taken_.reserve(steps.size());
  ready_.reserve(steps.size());
  starting_.reserve(steps.size());
  executable.actual_us_.assign(steps.size(), 0);
  const auto is_done = [&](std::uint32_t step) { return steps[step].transfer.stays && executable.has_lent_weights_; };
  for (std::uint32_t step = 0; step < steps.size(); ++step) {
    if (is_done(step)) continue;
    ++left_;
    for (const std::uint32_t other : steps[step].after) {
      if (is_done(other)) continue;
      ++waiting_for_[step];
      waiters_[other].push_back(step);
    }
    if (waiting_for_[step] == 0) ready_.push_back(step);
    if (steps[step].kind == Step::Kind::compute && executable.devices_[steps[step].device]->info().is_host_cpu())
      on_processors_.push_back(step);
  }
}

Execution::~Execution() {
  while (in_flight_ != 0) {
    bool worked = false;
    for (Device* const device : executable_.devices_)
      worked = guarded([&] { return device->advance(kGlance); }, [] { return false; }) || worked;
    in_flight_ -= static_cast<std::uint32_t>(take_completions(!worked).size());
  }
}

bool Execution::advance() {
  for (Completion& completion : take_completions(false)) finish(std::move(completion));
  if (const Watch* watch = executable_.context_.watch;
      status_ && watch != nullptr && !ready_.empty() && executable_.context_.may_stop)
    status_ = watch->check("a run");
  if (status_) start_ready();
  return in_flight_ != 0 || (status_ && left_ != 0);
}

// Steps that become ready meanwhile start as well. Copies of weights and state come after all others, which somebody
// waits for, as starting many of them takes long.
void Execution::start_ready() {
  bool started = true;
  while (std::exchange(started, false)) {
    starting_.clear();
    starting_.swap(ready_);
    std::ranges::stable_partition(starting_, [this](std::uint32_t number) {
      return executable_.plan_.steps[number].transfer.copied == Copied::value;
    });
    for (const std::uint32_t number : starting_) {
      const Step& step = executable_.plan_.steps[number];
      // The time of the reference, and of waiting for each op, must not count for anything else.
      if ((is_audited(step) || is_timed_in_ops(number)) && in_flight_ != 0) {
        ready_.push_back(number);
        continue;
      }
      const Phase copy = executable_.reads_in_order_[number] ? Phase::to_host : Phase::peer_copy;
      start(number, step.kind == Step::Kind::compute ? Phase::compute : copy);
      started = true;
    }
  }
}

Status Execution::wait() {
  while (advance()) {
    bool worked = false;
    for (std::size_t index = 0; index < executable_.devices_.size(); ++index) {
      Device* const device = executable_.devices_[index];
      // Other devices compute by themselves, and their advance() waits for them. So this thread first computes what it
      // can.
      worked = work_on_processors() || worked;
      prefetch_on_processors();
      if (device->info().is_host_cpu() || !device->advance(patience())) continue;
      worked = true;
      // Completed work may start something that comes before what the next device would do.
      if (!advance()) return status_;
      unwatched_[index] = false;
    }
    if (!worked)
      for (Completion& completion : take_completions(true)) finish(std::move(completion));
  }
  return status_;
}

// Does all work queued for host CPUs, and what that starts. False if there was nothing.
bool Execution::work_on_processors() {
  bool worked = false;
  const auto work = [](Device* device) { return device->info().is_host_cpu() && device->advance(); };
  while (std::ranges::any_of(executable_.devices_, work)) {
    worked = true;
    for (std::size_t device = 0; device < unwatched_.size(); ++device)
      unwatched_[device] = !executable_.devices_[device]->info().is_host_cpu();
    if (!advance()) break;
  }
  return worked;
}

// While host CPUs wait for others, they fetch what their next step reads.
void Execution::prefetch_on_processors() {
  while (begun_on_processors_ < on_processors_.size() && started_ns_[on_processors_[begun_on_processors_]] != 0)
    ++begun_on_processors_;
  if (begun_on_processors_ == on_processors_.size() || begun_on_processors_ < prefetched_) return;
  prefetched_ = begun_on_processors_ + 1;
  const std::uint32_t next = on_processors_[begun_on_processors_];
  executable_.devices_[executable_.plan_.steps[next].device]->prefetch(*executable_.programs_[next].program);
}

std::span<Execution::Completion> Execution::take_completions(bool block) {
  taken_.clear();
  std::unique_lock lock(mutex_);
  if (block) arrived_.wait(lock, [&] { return !completions_.empty(); });
  taken_.swap(completions_);
  return taken_;
}

void Execution::arrive(Completion completion) {
  const std::scoped_lock lock(mutex_);
  completions_.push_back(std::move(completion));
  arrived_.notify_one();
}

bool Execution::is_audited(const Step& step) const {
  return audited_ && step.kind == Step::Kind::compute && *audited_ >= step.first_unit &&
         *audited_ < step.first_unit + step.unit_count;
}

bool Execution::follows_in_order(std::uint32_t number, std::uint32_t other_number) const {
  const Step& step = executable_.plan_.steps[number];
  const Step& other = executable_.plan_.steps[other_number];
  if (other.kind != Step::Kind::compute || !executable_.devices_[other.device]->runs_in_order()) return false;
  if (is_audited(other) || is_timed_in_ops(other_number)) return false;
  return step.kind == Step::Kind::compute ? step.device == other.device
                                          : step.transfer.from == other.device && executable_.reads_in_order_[number];
}

void Execution::release(std::uint32_t step) {
  if (--waiting_for_[step] == 0) ready_.push_back(step);
}

void Execution::start(std::uint32_t step, Phase phase) {
  const std::uint32_t worker = worker_of(step, phase);
  if (in_flight_on_[worker] == 0) unwatched_[worker] = false;
  if (started_ns_[step] == 0) started_ns_[step] = now_ns(step);
  Event event = launch(step, phase);
  const bool has_failed = event.poll() && !event.status();
  // Nothing throws from here on: work in flight is counted and will complete.
  ++in_flight_;
  ++in_flight_on_[worker];
  event.on_done([this, step, phase](const Status& status) {
    arrive({step, phase, guarded([&] { return status; }, [] { return Status(std::unexpected(out_of_memory())); })});
  });
  for (const std::uint32_t waiter : waiters_[step])
    if (!has_failed && follows_in_order(waiter, step)) release(waiter);
}

std::uint32_t Execution::worker_of(std::uint32_t number, Phase phase) const {
  const Step& step = executable_.plan_.steps[number];
  if (phase == Phase::compute) return step.device;
  return phase == Phase::to_host ? step.transfer.from : step.transfer.to;
}

std::chrono::nanoseconds Execution::patience() {
  const std::scoped_lock lock(mutex_);
  if (!completions_.empty()) return std::chrono::nanoseconds(0);
  return std::ranges::count_if(in_flight_on_, [](std::uint32_t steps) { return steps != 0; }) > 1 ? kGlance : kPatience;
}

Event Execution::launch(std::uint32_t number, Phase phase) {
  const Step& step = executable_.plan_.steps[number];
  if (is_audited(step)) return Event(executable_.run_audited(step, *audited_, submission_));
  if (phase == Phase::compute && is_timed_in_ops(number)) return Event(executable_.run_in_ops(number, submission_));
  if (phase == Phase::compute)
    return executable_.devices_[step.device]->submit(*executable_.programs_[number].program, submission_);
  const Transfer& transfer = step.transfer;
  Device& from = *executable_.devices_[transfer.from];
  Device& to = *executable_.devices_[transfer.to];
  const auto [source, target] = executable_.ends_of(transfer);
  if (source.bytes == 0) return Event(Status());
  if (transfer.copied != Copied::value) executable_.pin_host_of(number);
  switch (phase) {
    case Phase::to_host:
      if (to.info().memory_pool == kHostPool && !target.buffer->host().empty())
        return from.read(source, target.buffer->host().subspan(target.offset, target.bytes));
      return from.read(source, staging_of(number).first(source.bytes));
    case Phase::from_host:
      return to.write(target, staging_of(number).first(target.bytes));
    case Phase::compute:
    case Phase::peer_copy:
      break;
  }
  if (transfer.copied == Copied::value) return to.copy_from_peer(from, source, target);
  const Operand& copied = executable_.graph_.tensor(transfer.tensor).operand;
  return to.copy_weight(from, source, target, {.dtype = copied.dtype, .columns = copied.shape.columns()});
}

std::span<std::byte> Execution::staging_of(std::uint32_t number) {
  std::unique_ptr<std::byte[]>& staging = executable_.staging_[number];
  const std::uint64_t bytes = executable_.plan_.steps[number].transfer.bytes;
  if (staging == nullptr) staging = std::make_unique_for_overwrite<std::byte[]>(bytes);
  return {staging.get(), static_cast<std::size_t>(bytes)};
}

void Execution::finish(Completion completion) {
  --in_flight_;
  --in_flight_on_[worker_of(completion.step, completion.phase)];
  const bool no_direct_way =
      completion.phase == Phase::peer_copy && !completion.status && completion.status.error().code == Code::unsupported;
  const bool goes_on =
      completion.phase == Phase::to_host && completion.status && executable_.staging_[completion.step] != nullptr;
  if (no_direct_way || goes_on) {
    if (status_) start(completion.step, no_direct_way ? Phase::to_host : Phase::from_host);
    return;
  }
  if (completion.phase == Phase::compute) note_program(completion);
  if (!completion.status) {
    if (status_) status_ = on_device(device_that_failed(completion), std::move(completion.status));
    return;
  }
  if (completion.phase != Phase::compute) record_transfer(completion.step);
  --left_;
  for (const std::uint32_t waiter : waiters_[completion.step]) {
    if (!follows_in_order(waiter, completion.step))
      release(waiter);
    else if (started_ns_[waiter] != 0 && executable_.plan_.steps[waiter].kind == Step::Kind::transfer)
      started_ns_[waiter] = now_ns(waiter);  // in effect
  }
}

void Execution::note_program(const Completion& completion) {
  const std::uint32_t number = completion.step;
  const Step& step = executable_.plan_.steps[number];
  const std::uint32_t device = step.device;
  const std::uint64_t now = now_ns(number);
  const std::uint64_t begin = std::max(started_ns_[number], free_ns_[device]);
  // The parts of an audited step have been recorded.
  if (const auto& trace = executable_.programs_[number].trace; trace && !is_audited(step))
    trace->record_program(begin, now, submission_.step, completion.status, is_timed_in_ops(number));
  if (!completion.status) return;
  if (!unwatched_[device]) executable_.actual_us_[number] = static_cast<double>(now - begin) * 1e-3;
  free_ns_[device] = now;
}

const Device& Execution::device_that_failed(const Completion& completion) const {
  const Step& step = executable_.plan_.steps[completion.step];
  if (completion.phase == Phase::compute) return *executable_.devices_[step.device];
  const Device& from = *executable_.devices_[step.transfer.from];
  const Device& to = *executable_.devices_[step.transfer.to];
  return completion.phase == Phase::to_host || !from.health().status ? from : to;
}

// The time by the clock of the device that computes, or receives the transfer.
std::uint64_t Execution::now_ns(std::uint32_t number) const {
  const Step& step = executable_.plan_.steps[number];
  return executable_.devices_[step.kind == Step::Kind::compute ? step.device : step.transfer.to]->now_ns();
}

void Execution::record_transfer(std::uint32_t number) const {
  trace::Recorder* recorder = executable_.context_.recorder;
  if (recorder == nullptr) return;
  const Step& step = executable_.plan_.steps[number];
  const Transfer& transfer = step.transfer;
  recorder->record({.start_ns = started_ns_[number],
                    .duration_ns = now_ns(number) - started_ns_[number],
                    .what = executable_.transfer_labels_[number],
                    .device = recorder->intern(executable_.plan_.devices[transfer.to].id),
                    .from = recorder->intern(executable_.plan_.devices[transfer.from].id),
                    .reason = transfer.copied == Copied::weight ? recorder->intern(trace::kWeightOfStep) : 0,
                    .kind = trace::Kind::transfer,
                    .step = submission_.step,
                    .plan = executable_.plan_number_,
                    .predicted_us = static_cast<float>(step.end_us - step.start_us),
                    .bytes = executable_.ends_of(transfer).first.bytes});
}

}  // namespace shunt
