#include "run/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/units.h"
#include "devices/device.h"
#include "plan/planner.h"
#include "run/choose_apis.h"
#include "run/measure/brief_calibration.h"
#include "run/opened_devices.h"

namespace shunt {
namespace {

// The rate of a slow disk or network share.
constexpr std::uint64_t kSlowestBytesPerSecond = 10'000'000;

// A device that waits for the pages of its weights has not failed.
std::chrono::nanoseconds with_time_to_read(std::uint64_t bytes, std::chrono::nanoseconds timeout) {
  const std::chrono::nanoseconds more =
      std::chrono::seconds((bytes + kSlowestBytesPerSecond - 1) / kSlowestBytesPerSecond);
  return std::min(timeout, std::chrono::nanoseconds::max() - more) + more;
}

}  // namespace

Runner::Runner(const Runtime& runtime, RunClient& client, const RunnerOptions& options)
    : runtime_(runtime),
      client_(client),
      options_(options),
      device_pool_(runtime),
      weights_(opened(runtime).weights_of(options.weights)) {}

Status Runner::attempt(const std::function<Status()>& work) {
  if (is_rebuilding_) return work();
  change_plans();
  while (true) {
    Status status = rebuild();
    if (status) status = work();
    if (status) return status;
    SHUNT_TRY(recover(std::move(status).error()));
  }
}

Status Runner::recover(Error error) {
  SHUNT_TRY(device_pool_.recover(std::move(error)));
  start_over();
  return {};
}

void Runner::change_plans() {
  if (is_outdated_) start_over_with(std::exchange(next_planner_, nullptr));
}

Status Runner::rebuild() {
  is_rebuilding_ = true;
  Status status = client_.rebuild();
  is_rebuilding_ = false;
  return status;
}

void Runner::start_over_with(std::unique_ptr<BucketPlanner> planner) {
  last_run_ = nullptr;
  executables_.clear();
  state_ = {};
  arenas_ = {};
  planner_ = std::move(planner);
  next_planner_ = nullptr;
  review_.start_over();
  is_outdated_ = false;
  client_.forget();
}

BucketPlanner& Runner::planner() {
  if (planner_ == nullptr)
    planner_ = choose_apis(device_pool_, options_.margin,
                           [&](const DeviceSet& set) { return client_.planner_for(set, options_.margin); });
  return *planner_;
}

Result<Executable*> Runner::executable_for(Bucket sizes) {
  if (!is_rebuilding_) change_plans();
  const Bucket bucket = planner().bucket_for(sizes);
  std::unique_ptr<Executable>& executable = executables_[bucket];
  if (executable != nullptr) return executable.get();
  SHUNT_TRY_ASSIGN(PlannedGraph planned, planner().plan(bucket));
  planned.plan.other_apis = device_pool_.other_apis();
  device_pool_.note(planned.plan);
  if (opened(runtime_).recorder().enabled()) planner().explain(planned);
  SHUNT_TRY_ASSIGN(executable, Executable::create(std::move(planned.graph), std::move(planned.plan),
                                                  {.devices = device_pool_.devices().devices,
                                                   .weights = weights_.get(),
                                                   .state = &state_,
                                                   .arenas = &arenas_,
                                                   .recorder = &opened(runtime_).recorder(),
                                                   .audits = &device_pool_.audits(),
                                                   .watch = options_.watch,
                                                   .may_stop = options_.may_stop}));
  return executable.get();
}

PlannedGraph Runner::explained() {
  const Executable& executable = *find(kRepeated);
  PlannedGraph planned{.graph = executable.graph(), .plan = executable.plan()};
  planner().explain(planned);
  return planned;
}

Executable* Runner::find(Bucket bucket) const {
  const auto found = executables_.find(bucket);
  return found == executables_.end() ? nullptr : found->second.get();
}

Submission Runner::next_submission(const Executable& executable, const Parameters& parameters) {
  return {
      .parameters = parameters,
      .step = runs_++,
      .profile = options_.profile,
      .timeout = with_time_to_read(weights_->bytes_to_read(), device_pool_.timeout(executable.plan().predicted_us))};
}

Status Runner::run(Executable& executable, const Submission& submission, bool is_full) {
  const Device& clock = *device_pool_.devices().devices.front();
  const std::uint64_t begin_ns = clock.now_ns();
  SHUNT_TRY(executable.run(submission));
  note_devices(executable);
  if (!is_full || executable.actual_us().empty()) return {};
  device_pool_.observe(executable.plan(), executable.actual_us());
  if (&executable == find(kRepeated))
    review_.add_run(static_cast<double>(clock.now_ns() - begin_ns) * 1e-3, executable.plan().units.size());
  return {};
}

void Runner::note_devices(const Executable& executable) {
  if (std::exchange(last_run_, &executable) == &executable) return;
  for (const Decision& decision : executable.plan().decisions) {
    const std::string& id = executable.plan().devices[decision.device].id;
    if (std::ranges::find(used_devices_, id) == used_devices_.end()) used_devices_.push_back(id);
  }
}

void Runner::finish(bool may_replan) {
  is_outdated_ = device_pool_.count_step() || has_measured() || (may_replan && knows_better_plan());
}

// Expects as much work as there was.
bool Runner::has_measured() {
  constexpr double kLeastUs = 3e6;
  if (review_.ran_us() < std::max(measure_us_, kLeastUs)) return false;
  measure_us_ = 2 * review_.ran_us();
  return measure(nullptr);
}

bool Runner::measure(const std::atomic<bool>* interrupted) {
  const std::vector<RunClient::Expected> expected = client_.expected();
  if (expected.empty() || !may_measure(runtime_, device_pool_)) return false;
  const auto samples = client_.samples();
  if (!samples) return false;
  std::vector<Workload> work;
  for (const RunClient::Sample& sample : *samples) work.push_back({&sample.graph, sample.times});
  const auto forecast = [&](const DeviceSet& set, std::optional<double> margin) -> Result<Forecast> {
    const std::unique_ptr<BucketPlanner> planner = client_.planner_for(set, margin);
    Forecast all;
    for (const RunClient::Expected& runs : expected) {
      SHUNT_TRY_ASSIGN(const PlannedGraph planned, planner->plan(runs.bucket));
      const Forecast its = forecast_of(planned.plan, runs.times);
      if (&runs == expected.data()) all.device = its.device;
      all.us += its.us;
    }
    return all;
  };
  const MeasuringOptions options{
      .runtime = runtime_, .device_pool = device_pool_, .work = work, .margin = options_.margin, .forecast = forecast};
  if (!pays_to_measure(options)) return false;
  const auto costs = measure_briefly(options, interrupted);
  if (costs) device_pool_.set_costs(*costs);
  return costs.has_value();
}

// Returns whether devices are not as fast as predicted, and changing to the plan that is best now pays.
bool Runner::knows_better_plan() {
  if (planner_ == nullptr || !review_.is_due(device_pool_)) return false;
  const auto now_us = review_.begin();
  if (!now_us) return false;
  doubt_what_runs_contradict(runtime_, device_pool_);
  device_pool_.correct();
  const DeviceSet set = device_pool_.devices();
  std::unique_ptr<BucketPlanner> planner = client_.planner_for(set, options_.margin);
  const auto gain_us = [&](const Plan& plan) {
    return *now_us - plan.predicted_us * (1 + margin_or_default(options_.margin, plan.is_measured));
  };
  const auto estimate = planner->estimate(*planner_);
  if (!estimate || !review_.is_worth(gain_us(*estimate), review_.planning_us(), runs_)) return false;
  const auto other = planner->plan(kRepeated);
  const auto rebuild_us = client_.rebuild_us(*planner);
  if (!other || !rebuild_us) return false;
  if (!review_.is_worth(gain_us(other->plan), weights_us(other->plan, set) + *rebuild_us, runs_)) return false;
  device_pool_.tell(fmt::format("{} takes {}; at the measured speeds another plan should take {}", options_.run,
                                in_time(*now_us), in_time(other->plan.predicted_us)));
  next_planner_ = std::move(planner);
  return true;
}

Runner::Memory Runner::memory() const {
  Memory memory{.copied_weights = weights_->copied_bytes(), .state = state_.bytes(), .programs = arenas_.bytes()};
  for (const auto& [bucket, executable] : executables_)
    if (executable != nullptr) memory.programs += executable->scratch_bytes();
  return memory;
}

}  // namespace shunt
