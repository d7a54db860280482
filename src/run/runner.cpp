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

// The most runs between looks for a plan that leaves more room, if there is none.
constexpr std::uint32_t kMostRunsWithoutRoom = 4096;

// A device that waits for the pages of its weights has not failed.
std::chrono::nanoseconds with_time_to_read(std::uint64_t bytes, std::chrono::nanoseconds timeout) {
  const std::chrono::nanoseconds more =
      std::chrono::seconds((bytes + kSlowestBytesPerSecond - 1) / kSlowestBytesPerSecond);
  return std::min(timeout, std::chrono::nanoseconds::max() - more) + more;
}

// Adds the scratch memory of a device that prepared plans count with.
void add_scratch(const std::map<Bucket, std::unique_ptr<Executable>>& executables, std::string_view id,
                 DevicePool::Held& held) {
  std::uint64_t shared = 0;
  for (const auto& [bucket, executable] : executables) {
    if (executable == nullptr || !executable->is_bound()) continue;
    const auto& devices = executable->plan().devices;
    const auto its = std::ranges::find(devices, id, &Plan::PlannedDevice::id);
    if (its == devices.end()) continue;
    held.bytes += its->scratch_bytes - its->shared_scratch_bytes;
    shared = std::max(shared, its->shared_scratch_bytes);
  }
  held.shared_scratch_bytes += shared;
}

// Returns the bytes of weights and state that a plan has on a device.
std::uint64_t kept_on(const Plan& plan, const Plan::PlannedDevice& device) {
  const auto use = std::ranges::find(plan.memory, device.pool, &MemoryUse::pool);
  return use == plan.memory.end() ? 0 : use->weight_bytes + use->state_bytes;
}

// Describes what devices with memory of their own hold after a change of plans: "; cuda:0 now holds 1.0 MiB of weights
// and state instead of 1.5 MiB".
std::string change_of(const Plan& before, const Plan& after) {
  std::string text;
  for (const Plan::PlannedDevice& device : after.devices) {
    const std::uint64_t was = kept_on(before, device);
    const std::uint64_t is = kept_on(after, device);
    if (device.pool != kHostPool && was != is)
      text +=
          fmt::format("; {} now holds {} of weights and state instead of {}", device.id, in_units(is), in_units(was));
  }
  return text;
}

}  // namespace

Runner::Runner(const Runtime& runtime, RunClient& client, const RunnerOptions& options)
    : runtime_(runtime),
      client_(client),
      options_(options),
      device_pool_(runtime),
      weights_(opened(runtime).weights_of(options.weights)) {
  device_pool_.count_held([this](const Device& device) { return held_on(device); });
  static_cast<void>(device_pool_.follow_free_memory());  // what others took since the runtime started
}

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
  if (is_outdated_ && !is_rebuilding_) start_over_with(std::exchange(next_planner_, nullptr));
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
  if (planner_ != nullptr) device_pool_.note_budgets();
  next_planner_ = nullptr;
  review_.start_over();
  memory_review_ = {};
  is_outdated_ = false;
  client_.forget();
}

BucketPlanner& Runner::planner() {
  if (planner_ != nullptr) return *planner_;
  planner_ = choose_apis(device_pool_, options_.margin,
                         [&](const DeviceSet& set) { return client_.planner_for(set, options_.margin); });
  device_pool_.note_budgets();
  return *planner_;
}

Result<Executable*> Runner::executable_for(Bucket sizes) {
  change_plans();
  const Bucket bucket = planner().bucket_for(sizes);
  std::unique_ptr<Executable>& executable = executables_[bucket];
  if (executable != nullptr) {
    if (!executable->is_bound()) SHUNT_TRY(executable->bind());
    return executable.get();
  }
  SHUNT_TRY_ASSIGN(PlannedGraph planned, planner().plan(bucket));
  planned.plan.other_apis = device_pool_.other_apis();
  SHUNT_TRY(device_pool_.note(planned.plan));
  release_small_arenas(planned.plan);
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

void Runner::release_small_arenas(const Plan& plan) {
  for (std::size_t number = 0; number < plan.devices.size(); ++number) {
    const Device& device = *device_pool_.devices().devices[number];
    const std::uint64_t bytes = arenas_.bytes_on(device);
    if (bytes == 0 || bytes >= plan.devices[number].arena_bytes) continue;
    for (const auto& [bucket, executable] : executables_)
      if (executable != nullptr) executable->unbind();
    arenas_.release(device);
  }
}

DevicePool::Held Runner::held_on(const Device& device) const {
  DevicePool::Held held;
  std::vector<std::string_view> pools;
  for (const Device* each : device_pool_.devices().devices) {
    if (each->info().memory_resource != device.info().memory_resource) continue;
    held.bytes += arenas_.bytes_on(*each);
    add_scratch(executables_, each->info().id, held);
    const std::string& pool = each->info().memory_pool;
    if (std::ranges::find(pools, pool) != pools.end()) continue;
    pools.push_back(pool);
    held.bytes += weights_->copied_bytes(pool) + state_.bytes(pool);
  }
  return held;
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
  if (&executable != find(kRepeated)) return {};
  const double us = static_cast<double>(clock.now_ns() - begin_ns) * 1e-3;
  for (PlanReview* review : {&review_, &memory_review_}) review->add_run(us, executable.plan().units.size());
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
  is_outdated_ = device_pool_.count_step() || has_measured() || makes_room() ||
                 (may_replan && (knows_better_plan() || uses_more_memory()));
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
  if (planner_ == nullptr || !review_.is_time() || !(review_.knows_better() || device_pool_.is_off())) return false;
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

// Returns whether a device is short of memory, and plans can hold less of it.
bool Runner::makes_room() {
  if (planner_ == nullptr || runs_ < next_room_ || !device_pool_.follow_free_memory()) return false;
  std::unique_ptr<BucketPlanner> planner = client_.planner_for(device_pool_.devices(), options_.margin);
  const auto before = planner_->plan(kRepeated);
  const auto other = planner->plan(kRepeated);
  if (!before || !other || other->plan.memory == before->plan.memory || !client_.rebuild_us(*planner)) {
    next_room_ = runs_ + room_wait_;
    room_wait_ = std::min(2 * room_wait_, kMostRunsWithoutRoom);
    return false;
  }
  room_wait_ = 1;
  patience_ = memory_review_.runs() < std::exchange(pays_after_, 0) ? 2 * patience_ : 1;
  const std::string news = device_pool_.memory_news();
  device_pool_.tell((news.empty() ? "memory is short" : news) + change_of(before->plan, other->plan));
  next_planner_ = std::move(planner);
  return true;
}

// Returns whether changing to a plan with memory that others gave back pays: within as many runs as the plan now had,
// and for each time in a row that others took it again too soon, twice as often.
bool Runner::uses_more_memory() {
  if (planner_ == nullptr || !memory_review_.is_time()) return false;
  if (!memory_review_.knows_better() && !device_pool_.has_more_memory()) return false;
  const auto now_us = memory_review_.begin();
  if (!now_us || !memory_review_.is_worth(*now_us, memory_review_.planning_us(), memory_review_.runs())) return false;
  const DeviceSet set = device_pool_.devices();
  std::unique_ptr<BucketPlanner> planner = client_.planner_for(set, options_.margin);
  const auto before = planner_->plan(kRepeated);
  const auto other = planner->plan(kRepeated);
  const auto rebuild_us = client_.rebuild_us(*planner);
  if (!before || !other || !rebuild_us) return false;
  const double gain_us = *now_us * (1 - other->plan.predicted_us / before->plan.predicted_us);
  const double cost_us = weights_us(other->plan, set) + *rebuild_us;
  if (!memory_review_.is_worth(gain_us, cost_us * patience_, memory_review_.runs())) return false;
  pays_after_ = cost_us / gain_us;
  const std::string news = device_pool_.memory_news();
  device_pool_.tell((news.empty() ? "there is room again" : news) + change_of(before->plan, other->plan));
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
