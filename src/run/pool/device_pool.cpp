#include "run/pool/device_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "base/units.h"
#include "devices/device.h"
#include "plan/timeline.h"
#include "run/opened_devices.h"
#include "trace/recorder.h"

namespace shunt {
namespace {

// The number of times that the budget of a device that ran out of memory is reduced.
constexpr int kMostShortages = 4;

// The least time between looks at free memory, in times of a look.
constexpr std::uint64_t kTimesOfALook = 1000;

// The factor by which predictions may be off before it is time to plan again.
constexpr double kOff = 1.5;
// The factor by which runs contradict what was measured, beyond what other work on the machine explains.
constexpr double kContradicted = 4;

constexpr std::chrono::seconds kLeastTimeout{30};
constexpr double kTimesPredicted = 100;

std::string ids_of(std::span<Device* const> devices) {
  std::string ids;
  for (const Device* device : devices) ids += (ids.empty() ? "" : ", ") + device->info().id;
  return ids;
}

}  // namespace

DevicePool::DevicePool(const Runtime& runtime) : runtime_(runtime), audits_{.each = runtime.options().audit} {
  const OpenedDevices& its = opened(runtime);
  const auto gpu_of = [&](std::size_t index) { return its.infos()[index].compute_resource; };
  std::map<std::string, std::size_t, std::less<>> first_of_gpu;  // those with spares
  const std::size_t in_use = its.handles().size() - its.spares();
  for (std::size_t index = in_use; index < its.handles().size(); ++index) first_of_gpu.emplace(gpu_of(index), in_use);
  for (std::size_t index = 0; index < its.handles().size(); ++index) {
    const auto shared = first_of_gpu.find(gpu_of(index));
    members_.push_back({.index = index,
                        .device = opened(runtime).current(index),
                        .cost = its.costs()[index],
                        .budget = its.budget(index),
                        .gpu = shared == first_of_gpu.end() ? std::string() : shared->first});
    if (shared == first_of_gpu.end()) continue;
    shared->second = std::min(shared->second, index);
    chosen_apis_.try_emplace(shared->first, api_of(its.infos()[index].id));
  }
  std::ranges::stable_sort(members_, {}, [&](const Member& member) {
    return member.gpu.empty() ? member.index : first_of_gpu.at(member.gpu);
  });
  update();
}

// A device that is lost or hangs may still hold its GPU's memory, and numbers that are not finite may come from the GPU
// itself.
void DevicePool::quarantine(Member& member, const Error& why) {
  member.is_quarantined = true;
  member.rules_out_gpu = why.code == Code::device_lost || why.code == Code::timed_out ||
                         std::ranges::find(suspects_, member.device->info().id) != suspects_.end();
  member.backoff.add(why, steps_);
  update();
}

// Returns the API through which a GPU is used, if at all: the chosen one or, after it failed, another one.
std::string_view DevicePool::api_for(std::string_view gpu) const {
  const std::string_view chosen = chosen_apis_.find(gpu)->second;
  std::string_view other = chosen;
  for (const Member& member : members_) {
    if (member.gpu != gpu) continue;
    const std::string_view api = api_of(member.device->info().id);
    if ((member.is_quarantined && member.rules_out_gpu) || (api == chosen && !member.is_quarantined)) return chosen;
    if (other == chosen && !member.is_quarantined) other = api;
  }
  return other;
}

bool DevicePool::is_in_use(const Member& member) const {
  return !member.is_quarantined && (member.gpu.empty() || api_for(member.gpu) == api_of(member.device->info().id));
}

std::vector<SharedGpus> DevicePool::shared_gpus() const {
  std::vector<SharedGpus> all;
  for (const auto& [gpu, chosen] : chosen_apis_) {
    std::vector<std::string> apis;
    for (const bool in_use : {true, false})
      for (const Member& member : members_) {
        std::string api(api_of(member.device->info().id));
        if (member.gpu != gpu || member.is_quarantined || is_in_use(member) != in_use) continue;
        if (std::ranges::find(apis, api) == apis.end()) apis.push_back(std::move(api));
      }
    const bool is_out =
        std::ranges::none_of(members_, [&](const Member& member) { return member.gpu == gpu && is_in_use(member); });
    if (is_out || apis.size() < 2) continue;
    const auto same = std::ranges::find(all, apis, &SharedGpus::apis);
    if (same == all.end())
      all.push_back({.gpus = {gpu}, .apis = std::move(apis)});
    else
      same->gpus.push_back(gpu);
  }
  return all;
}

void DevicePool::use_api(const SharedGpus& gpus, std::string_view api) {
  for (const std::string& gpu : gpus.gpus) chosen_apis_[gpu] = api;
  update();
}

DevicePool::Offered DevicePool::offered(const SharedGpus& gpus, std::string_view api) const {
  Offered offered;
  for (const Member& member : members_) {
    const std::string& id = member.device->info().id;
    if (api_of(id) != api || std::ranges::find(gpus.gpus, member.gpu) == gpus.gpus.end()) continue;
    offered.ids += (offered.ids.empty() ? "" : ", ") + id;
    offered.are_measured = offered.are_measured && member.cost.is_measured();
  }
  return offered;
}

DeviceSet DevicePool::devices() const {
  DeviceSet set;
  set.devices = devices_;
  set.costs = costs_;
  set.budgets = budgets_;
  set.quarantined = quarantined_;
  set.strict = runtime_.options().strict;
  return set;
}

bool DevicePool::look(Member& member) const {
  if (!member.budget.follows()) return false;
  const auto available = member.device->memory_available();
  if (available) member.budget.look(held_on(*member.device).bytes, *available);
  return available.has_value();
}

bool DevicePool::follow_free_memory() {
  const Device& clock = *members_.front().device;
  const std::uint64_t begin_ns = clock.now_ns();
  if (begin_ns < next_look_ns_) return false;
  bool is_short = false;
  for (Member& member : members_) {
    if (member.is_quarantined || !look(member) || !is_in_use(member) || !member.budget.is_short()) continue;
    member.budget.give_up();
    is_short = true;
  }
  const std::uint64_t end_ns = clock.now_ns();
  next_look_ns_ = end_ns + kTimesOfALook * (end_ns - begin_ns);
  update_budgets();
  return is_short;
}

bool DevicePool::has_more_memory() const {
  return std::ranges::any_of(members_,
                             [&](const Member& member) { return is_in_use(member) && member.budget.has_grown(); });
}

void DevicePool::note_budgets() {
  for (Member& member : members_) member.budget.note_plan();
}

std::string DevicePool::memory_news() const {
  std::string news;
  for (const Member& member : members_) {
    if (!is_in_use(member) || !member.budget.follows()) continue;
    const std::uint64_t taken = member.budget.taken();
    const std::uint64_t bytes = std::max(taken, member.budget.given_back());
    if (bytes == 0) continue;
    news += fmt::format("{}others {} {} of {}", news.empty() ? "" : ", ", taken != 0 ? "took" : "gave back",
                        in_units(bytes), member.device->info().id);
  }
  return news;
}

Status DevicePool::note(const Plan& plan) {
  Status status;
  for (const MemoryUse& use : plan.memory)
    for (Member& member : members_) {
      if (member.device->info().memory_pool != use.pool) continue;
      member.planned = std::max(member.planned, use.total());
      if (!is_in_use(member) || !look(member) || !status) continue;
      const std::uint64_t shared = std::min(use.scratch_bytes, held_on(*member.device).shared_scratch_bytes);
      if (use.total() - shared <= member.budget.all()) continue;
      status = std::unexpected(Error{
          Code::out_of_memory,
          fmt::format("{} are needed, and others have left {}", in_units(use.total()), in_units(member.budget.all())),
          member.device->info().id});
    }
  update_budgets();
  return status;
}

Status DevicePool::recover(Error error) {
  // A plan may not fit the reduced budget of a device that ran out of memory.
  const bool is_of_a_plan = error.code == Code::out_of_memory && error.device.empty();
  const auto failed = std::ranges::find_if(members_, [&](const Member& member) {
    return is_in_use(member) && (member.device->info().id == error.device || (is_of_a_plan && member.has_less));
  });
  if (failed == members_.end() || runtime_.options().strict) return std::unexpected(std::move(error));
  const std::string id = failed->device->info().id;
  if (!is_of_a_plan && error.code == Code::out_of_memory)
    if (const auto why = shrink(*failed, error)) {
      update();
      tell(fmt::format("{}: {}; it gets less to do", id, *why));
      return {};
    }
  Member before = *failed;
  quarantine(*failed, error);
  if (devices_.empty()) {
    *failed = std::move(before);
    update();
    std::string others;
    for (const Member& member : members_)
      if (member.is_quarantined)
        others += fmt::format("; {} failed before: {}", member.device->info().id, member.backoff.why().message);
    error.message += others;
    return std::unexpected(std::move(error));
  }
  tell(fmt::format("{} failed, {}: {}; going on with {}", id, name_of(error.code), error.message, ids_of(devices_)));
  return {};
}

std::optional<std::string> DevicePool::shrink(Member& member, const Error& why) {
  const bool lives = member.device->health().status.has_value();
  if (!lives || member.budget.bytes() == kNoBudget || member.shortages >= kMostShortages) return std::nullopt;
  look(member);
  const std::uint64_t least = budget_of(member);  // that of another API of the GPU may be smaller
  const std::uint64_t planned = std::exchange(member.planned, 0);
  const bool is_taken = member.budget.reduce(planned == 0 ? least : std::min(planned, least));
  if (!is_taken) ++member.shortages;
  member.has_less = true;
  const std::uint64_t taken = member.budget.taken();
  return taken == 0 ? why.message : fmt::format("others took {} of its memory: {}", in_units(taken), why.message);
}

Status DevicePool::judge(std::string_view what, bool is_finite, const Plan& plan) {
  if (!finite_is_due_) return {};
  if (is_finite) {
    suspects_.clear();
    return {};
  }
  if (std::optional<Error> error = suspect(what, plan)) return std::unexpected(std::move(*error));
  finite_is_due_ = false;
  return {};
}

std::optional<Error> DevicePool::suspect(std::string_view what, const Plan& plan) {
  for (const Step& step : plan.steps) {
    const std::string& id = plan.devices[step.device].id;
    if (step.kind != Step::Kind::compute || std::ranges::find(suspects_, id) != suspects_.end()) continue;
    const bool has_other = !suspects_.empty() || devices_.size() > 1;
    if (!has_other) break;
    if (!suspects_.empty()) pardon(suspects_.back());
    suspects_.push_back(id);
    return Error{Code::internal, fmt::format("{} are not finite", what), id};
  }
  return std::nullopt;
}

void DevicePool::acquit() {
  if (!suspects_.empty()) pardon(suspects_.back());
  suspects_.clear();
}

void DevicePool::pardon(std::string_view device) {
  for (Member& member : members_)
    if (member.device->info().id == device) {
      member.is_quarantined = false;
      member.backoff.end();
    }
  update();
}

bool DevicePool::count_step() {
  ++steps_;
  bool changed = !finite_is_due_ && !suspects_.empty();
  if (changed) {
    pardon(suspects_.back());
    suspects_.clear();
  }
  for (Member& member : members_) {
    const bool is_wrong = std::ranges::find(audits_.wrong, member.device->info().id) != audits_.wrong.end();
    if (member.is_quarantined && !is_wrong && !member.backoff.holds(steps_)) changed = take_back(member) || changed;
    if (!member.is_quarantined && member.backoff.is_over(steps_)) member.backoff.end();
  }
  if (changed) update();
  return changed;
}

bool DevicePool::take_back(Member& member) {
  const std::string& id = member.device->info().id;
  auto revived = opened(runtime_).revive(member.index);
  if (!revived) {
    member.backoff.add(std::move(revived).error(), steps_);
    tell(fmt::format("{} cannot be used again yet: {}", id, member.backoff.why().message));
    return false;
  }
  member.device = *revived;
  member.is_quarantined = false;
  member.shortages = 0;
  member.has_less = false;
  member.budget = opened(runtime_).budget(member.index);
  look(member);
  tell(fmt::format("{} is used again", id));
  return true;
}

void DevicePool::update() {
  devices_.clear();
  costs_.clear();
  budgets_.clear();
  quarantined_.clear();
  for (const Member& member : members_) {
    if (member.is_quarantined) {
      quarantined_.push_back({.id = member.device->info().id, .why = member.backoff.why().message});
      continue;
    }
    if (!is_in_use(member)) continue;
    devices_.push_back(member.device);
    costs_.push_back(member.cost);
    costs_.back().correct(member.factor);
  }
  update_budgets();
}

void DevicePool::update_budgets() {
  budgets_.clear();
  for (const Member& member : members_)
    if (is_in_use(member)) budgets_.push_back(budget_of(member));
  share_least_budgets(devices_, budgets_);
}

// APIs of one GPU share its memory: after one ran out, all have the smaller budget.
std::uint64_t DevicePool::budget_of(const Member& member) const {
  std::uint64_t least = member.budget.bytes();
  for (const Member& other : members_)
    if (!member.gpu.empty() && other.gpu == member.gpu) least = std::min(least, other.budget.bytes());
  return least;
}

// Takes one sample per device and run: many short programs say no more about it than the long one next to them. A
// device with an unknown step gives no sample.
void DevicePool::observe(const Plan& plan, std::span<const double> actual_us) {
  if (actual_us.empty()) return;
  std::vector<double> predicted(plan.devices.size(), 0);
  std::vector<double> actual(plan.devices.size(), 0);
  for (std::size_t number = 0; number < plan.steps.size(); ++number) {
    const Step& step = plan.steps[number];
    if (step.kind != Step::Kind::compute) continue;
    predicted[step.device] += (step.end_us - step.start_us) / plan.devices[step.device].correction;
    actual[step.device] += actual_us[number] > 0 ? actual_us[number] : std::numeric_limits<double>::quiet_NaN();
  }
  for (std::size_t device = 0; device < plan.devices.size(); ++device)
    for (Member& member : members_)
      if (predicted[device] > 0 && !member.is_quarantined && member.device->info().id == plan.devices[device].id)
        member.ratio.add(actual[device] / predicted[device]);
}

bool DevicePool::is_off() const {
  return std::ranges::any_of(members_, [](const Member& member) {
    const double off = member.ratio.get().value_or(member.factor) / member.factor;
    return !member.is_quarantined && (off > kOff || off * kOff < 1);
  });
}

void DevicePool::correct() {
  // What slows a processor down slows all of its devices.
  std::map<std::string, double> factors;
  for (const Member& member : members_)
    if (const auto ratio = member.ratio.get()) factors[member.device->info().compute_resource] = *ratio;
  for (Member& member : members_) {
    const auto of_resource = factors.find(member.device->info().compute_resource);
    if (of_resource != factors.end()) member.factor = member.ratio.get().value_or(of_resource->second);
  }
  update();
}

std::vector<std::string> DevicePool::doubt_contradicted() {
  std::vector<std::string> ids;
  for (Member& member : members_) {
    const double ratio = member.ratio.get().value_or(1);
    const bool is_contradicted = ratio > kContradicted || ratio * kContradicted < 1;
    if (!is_contradicted || member.is_quarantined || !member.cost.has_profile() || member.cost.is_doubted()) continue;
    member.cost.doubt();
    ids.push_back(member.device->info().id);
  }
  if (!ids.empty()) update();
  return ids;
}

// Run times were compared with other costs: forget them.
void DevicePool::set_costs(std::span<const DeviceCost> costs) {
  std::size_t next = 0;
  for (Member& member : members_) {
    if (!is_in_use(member)) continue;
    member.cost = costs[next++];
    member.ratio = {};
    member.factor = 1;
  }
  update();
}

void DevicePool::tell(const std::string& text) const {
  trace::Recorder& recorder = opened(runtime_).recorder();
  recorder.record(
      {.start_ns = opened(runtime_).current(0)->now_ns(), .what = recorder.intern(text), .kind = trace::Kind::notice});
  if (runtime_.options().on_notice) runtime_.options().on_notice(text);
}

std::chrono::nanoseconds DevicePool::timeout(double predicted_us) const {
  if (runtime_.options().timeout) return *runtime_.options().timeout;
  return kLeastTimeout +
         std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(predicted_us * kTimesPredicted * 1e3, 1e17)));
}

}  // namespace shunt
