// Chooses where weights and state of a session are if they do not all fit a GPU.
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/system/task_queue.h"
#include "base/system/thread_pool.h"
#include "devices/device.h"
#include "models/step_planner.h"
#include "plan/problem.h"
#include "plan/timeline.h"

namespace shunt::models {
namespace {

// The weight of long prompts: if they take half the time, all else may take 1.15 times as long.
constexpr double kLongPrompts = 0.2;
// How much better it must be to have all state in the host's memory: tokens cross between devices in each layer then,
// which takes longer than predicted.
constexpr double kStateOnHost = 1.1;
// Shares of a device's memory that may be left free for weights that are copied, and parts of the weights there whose
// memory may be lent to prompts.
constexpr double kRooms[] = {0.0625, 0.125, 0.1875, 0.25, 0.375};
constexpr double kFewRooms[] = {0.125, 0.25};
constexpr double kNothing[] = {0};
// Budgets that are tried where GPUs divide everything in proportion to theirs, relative to what is needed.
constexpr double kSpreads[] = {1.02, 1.06, 1.1, 1.14, 1.2};
constexpr double kParts[] = {0.125, 0.25, 0.5};
constexpr double kUsualPart[] = {0.25};

// Returns whether host memory and that of devices both hold weights.
bool is_divided(const Plan& plan) {
  const auto holds_weights = [&](bool host) {
    return std::ranges::any_of(
        plan.memory, [&](const MemoryUse& use) { return use.weight_bytes != 0 && (use.pool == kHostPool) == host; });
  };
  return holds_weights(true) && holds_weights(false);
}

// Returns how many memories other than the host's hold weights.
std::ptrdiff_t gpus_with_weights(const Plan& plan) {
  return std::ranges::count_if(plan.memory,
                               [](const MemoryUse& use) { return use.weight_bytes != 0 && use.pool != kHostPool; });
}

// Returns shares of the devices' budgets that just hold what the plan has in their memory, so that all have some of it;
// none if there are no two such devices.
std::vector<double> spreading_shares(const Plan& plan, const DeviceSet& set) {
  std::map<std::string_view, std::uint64_t> budgets;  // by memory
  for (std::size_t device = 0; device < set.devices.size(); ++device)
    if (const DeviceInfo& info = set.devices[device]->info(); info.memory_pool != kHostPool)
      budgets.emplace(memory_of(info), set.budgets[device]);
  double has = 0;
  for (const auto& [memory, bytes] : budgets) has += bytes == kNoBudget ? 0 : static_cast<double>(bytes);
  double needs = 0;
  for (const MemoryUse& use : plan.memory) needs += use.pool == kHostPool ? 0 : static_cast<double>(use.total());
  std::vector<double> shares;
  for (const double more : kSpreads)
    if (budgets.size() > 1 && needs * more < has) shares.push_back(needs * more / has);
  return shares;
}

// Returns the id of the device with most of the weights, which waits for others most. REQUIRES: is_divided(plan).
std::string waiting_device(const Plan& plan) {
  const auto most_weights = std::ranges::max_element(
      plan.memory, {}, [](const MemoryUse& use) { return use.pool == kHostPool ? 0 : use.weight_bytes; });
  return std::ranges::find(plan.devices, most_weights->pool, &Plan::PlannedDevice::pool)->id;
}

}  // namespace

// Leaves a planner as if it had tried no choice.
class StepPlanner::Restored {
 public:
  explicit Restored(StepPlanner& planner) : planner_(planner) {}
  ~Restored() {
    planner_.state_on_.reset();
    planner_.lent_.reset();
  }
  Restored(const Restored&) = delete;
  Restored& operator=(const Restored&) = delete;

 private:
  StepPlanner& planner_;
};

// Planners for tasks at the same time, each of which plans as the first would.
class StepPlanner::Team {
 public:
  // REQUIRES: most_tasks > 0.
  Team(StepPlanner& first, std::size_t most_tasks)
      : queue_(static_cast<std::uint32_t>(std::min<std::size_t>(usable_cores(), most_tasks) - 1)) {
    idle_.push_back(&first);
    while (idle_.size() < size()) {
      others_.push_back(std::unique_ptr<StepPlanner>(new StepPlanner(first)));
      idle_.push_back(others_.back().get());
    }
  }

  [[nodiscard]] std::size_t size() const { return queue_.threads() + 1; }

  // Runs task(planner, 0) to task(planner, count - 1), and returns when all have ended.
  void run(std::size_t count, const std::function<void(StepPlanner&, std::size_t)>& task) {
    TaskQueue::Batch batch(count, [&](std::size_t number) {
      const auto put_back = [this](StepPlanner* planner) {
        const std::scoped_lock lock(mutex_);
        idle_.push_back(planner);
      };
      const std::unique_ptr<StepPlanner, decltype(put_back)> planner(take(), put_back);
      task(*planner, number);
    });
    queue_.start(batch);
    queue_.wait(batch);
  }

 private:
  StepPlanner* take() {
    const std::scoped_lock lock(mutex_);
    StepPlanner* const planner = idle_.back();
    idle_.pop_back();
    return planner;
  }

  std::vector<std::unique_ptr<StepPlanner>> others_;
  std::mutex mutex_;
  std::vector<StepPlanner*> idle_;  // no fewer than threads
  TaskQueue queue_;
};

// Returns the CPU device that uses the host's memory pool, if there is one.
std::optional<std::uint32_t> StepPlanner::host_device() const {
  const auto host = std::ranges::find_if(set_.devices, [](const Device* each) {
    return each->info().type == DeviceType::cpu && each->info().memory_pool == kHostPool;
  });
  if (host == set_.devices.end()) return std::nullopt;
  return static_cast<std::uint32_t>(host - set_.devices.begin());
}

// Returns what a plan lends if it lends a part of the weights that each GPU holds: some of each layer, so that a prompt
// finds others while it copies them.
std::optional<StepPlanner::Lent> StepPlanner::lend(const PlannedGraph& one, double part) const {
  const auto pool_of = [](const Device* device) -> std::string_view { return device->info().memory_pool; };
  const std::optional<std::uint32_t> host = host_device();
  if (!host) return std::nullopt;
  const std::uint32_t from = *host;
  Lent lent{.homes = homes_of(one.plan, one.graph),
            .from = std::vector<std::uint32_t>(one.graph.tensors().size(), shunt::kNone)};
  std::vector<const Residence*> held;
  for (const Residence& residence : one.plan.residences)
    if (residence.kind == StorageKind::weight && pool_of(set_.devices[residence.device]) != kHostPool &&
        set_.budgets[residence.device] != kNoBudget)
      held.push_back(&residence);
  std::ranges::stable_sort(held, {}, &Residence::first);
  const std::vector<Lane> lanes = lanes_of(set_.devices, set_.costs);
  std::vector<double> owed(set_.devices.size(), 0);  // bytes
  for (auto next = held.begin(); next != held.end();) {
    // A unit finds all of its weights, or none.
    const auto end = std::find_if(next, held.end(), [&](const Residence* each) {
      return each->first != (*next)->first || each->device != (*next)->device;
    });
    const std::uint32_t device = (*next)->device;
    double bytes = 0;
    for (auto each = next; each != end; ++each) bytes += static_cast<double>((*each)->bytes);
    owed[device] += part * bytes;
    const bool lends = 2 * owed[device] >= bytes;
    if (lends) owed[device] -= bytes;
    for (; next != end; ++next) {
      if (!lends) continue;
      lent.homes[(*next)->tensor] = from;
      lent.from[(*next)->tensor] = from;
      lent.return_us += predict_copy(lanes[from], lanes[device], (*next)->bytes, Copied::weight).us;
    }
  }
  return lent;
}

// Returns what to try besides a plan. Devices may keep fewer weights, which leaves room for those that steps copy there
// temporarily, and all state or none, so that they need not wait for others in between; or lend the memory of some
// weights to prompts. Several GPUs may divide all weights, so that they compute different pieces of a prompt at the
// same time.
std::vector<StepPlanner::Trial> StepPlanner::trials_beside(const Plan& one) const {
  const double most = share_;
  std::vector<Trial> trials;
  for (const double share : spreading_shares(one, set_))
    if (share < most) trials.push_back({.state_on = std::nullopt, .share = share, .lent_parts = kNothing});
  if (!is_divided(one)) return trials;
  const bool lends = options_.max_sequences == 1;
  const std::string waiting = waiting_device(one);
  const std::optional<std::uint32_t> host = host_device();
  for (const double room : kFewRooms)
    trials.push_back({.state_on = std::nullopt, .share = most * (1 - room), .lent_parts = kNothing});
  for (const double room : kRooms) {
    trials.push_back({.state_on = waiting, .share = most * (1 - room), .lent_parts = kNothing});
    if (lends) trials.push_back({.state_on = waiting, .share = 1 - room, .lent_parts = kParts});
    if (host && lends) trials.push_back({.state_on = id_of(*host), .share = 1 - room, .lent_parts = kUsualPart});
    if (host && !lends)
      trials.push_back({.state_on = id_of(*host), .share = most * (1 - room), .lent_parts = kNothing});
  }
  return trials;
}

// Weighs the time of a prompt and an answer, and that of long prompts.
PlannedGraph StepPlanner::balanced(PlannedGraph one) {
  if (options_.strategy != Strategy::automatic) return one;
  std::vector<Trial> trials = trials_beside(one.plan);
  if (trials.empty()) return one;
  trials.insert(trials.begin(), {.state_on = std::nullopt, .share = share_, .lent_parts = kNothing});
  Team team(*this, trials.size());
  std::vector<std::vector<Choice>> of_trials(trials.size());
  team.run(trials.size(),
           [&](StepPlanner& planner, std::size_t number) { of_trials[number] = planner.choices_of(trials[number]); });
  std::vector<Choice> choices;
  for (std::vector<Choice>& each : of_trials) std::ranges::move(each, std::back_inserter(choices));
  Choice* const best = best_of(choices, team);
  if (best == nullptr) return one;
  share_ = best->share;
  state_on_ = std::move(best->state_on);
  lent_ = std::move(best->lent);
  long_step_ = best->long_step.bucket;
  // Planned again, with arenas that are given now, they might become others.
  repeated_ = std::move(best->predicted.repeated);
  chosen_.push_back(std::move(best->predicted.prompt));
  chosen_.push_back(std::move(best->long_step));
  return std::move(best->one);
}

// Leaves out what does not fit.
std::vector<StepPlanner::Choice> StepPlanner::choices_of(const Trial& trial) {
  std::vector<Choice> choices;
  const Restored restored(*this);
  state_on_ = trial.state_on;
  const Result<PlannedGraph> one = plan_one_token(trial.share);
  if (!one) return choices;
  for (const double part : trial.lent_parts) {
    if (part > 0) lent_ = lend(*one, part);
    if (auto choice = choice_of(*one, trial.share)) choices.push_back(*std::move(choice));
    lent_.reset();
  }
  return choices;
}

// Returns the choice with the least score; null if no long step has memory. Planning long steps takes longest, so only
// those of choices are planned that might be the best by their estimates, and as many at once as there are planners.
StepPlanner::Choice* StepPlanner::best_of(std::vector<Choice>& choices, Team& team) {
  std::ranges::stable_sort(choices, {}, &Choice::estimate);
  Choice* best = nullptr;
  for (std::size_t number = 0; number < choices.size(); ++number) {
    Choice& choice = choices[number];
    if (best != nullptr && choice.estimate >= *best->score) break;
    if (!choice.score)
      team.run(std::min(team.size(), choices.size() - number),
               [&](StepPlanner& planner, std::size_t later) { planner.add_long_step(choices[number + later]); });
    if (choice.long_step.bucket.tokens != 0 && (best == nullptr || *choice.score < *best->score)) best = &choice;
  }
  return best;
}

double StepPlanner::score_of(const std::optional<std::string>& state_on, double us, double us_per_token) const {
  const std::optional<std::uint32_t> host = host_device();
  return us * std::pow(us_per_token, kLongPrompts) * (host && state_on == id_of(*host) ? kStateOnHost : 1);
}

// Scores what `one` makes of the usual step of a prompt and of an answer, as if long prompts took no longer than their
// arithmetic on all GPUs at the same time, and the link for their weights, need. Returns nothing if there is no memory.
std::optional<StepPlanner::Choice> StepPlanner::choice_of(PlannedGraph one, double share) {
  Result<Predicted> predicted = predict(one);
  if (!predicted) return std::nullopt;
  const double usual = std::min(usual_step(options_), context_);
  const Plan& prompt = predicted->prompt.planned.plan;
  const double compute_us =
      std::min(prompt.bound_us,
               prompt.predicted_us / static_cast<double>(std::max(gpus_with_weights(one.plan), std::ptrdiff_t{1})));
  const double least_us =
      std::min(std::max(compute_us / usual, link_us(one) / longest_step()), prompt.predicted_us / usual);
  return Choice{.one = std::move(one),
                .share = share,
                .state_on = state_on_,
                .lent = lent_,
                .estimate = score_of(state_on_, predicted->us, least_us),
                .score = std::nullopt,
                .predicted = *std::move(predicted),
                .long_step = {}};
}

// Tries steps of several sizes for long prompts: of as many tokens as the context allows, and fewer. If there is no
// memory for the values of all those tokens beside travelling weights, also one in pieces; and if several devices have
// memory of their own with weights, one whose pieces they compute at the same time. Leaves no step if there is no
// memory for any.
void StepPlanner::add_long_step(Choice& choice) {
  const Restored restored(*this);
  lent_ = choice.lent;
  std::vector<Step> steps;  // each faster than those before
  const auto us_per_token = [](const Step& step) { return step.planned.plan.predicted_us / step.bucket.tokens; };
  // Returns whether to go on with fewer tokens.
  const auto attempt = [&](Result<Step> step) {
    const bool is_too_long = step && step->planned.plan.predicted_us > kLongestPromptStepUs;
    if (!step || (is_too_long && step->bucket.tokens > std::bit_ceil(usual_step(options_)))) return true;
    if (!steps.empty() && us_per_token(*step) > us_per_token(steps.back())) return false;
    steps.push_back(*std::move(step));
    return true;
  };
  const std::uint32_t usual = std::min(usual_step(options_), context_);
  const std::uint32_t most = longest_step();
  const auto planned = [&](std::uint32_t tokens) {
    return tokens == usual ? choice.predicted.prompt : prompt_with(choice.one, {.tokens = tokens});
  };
  std::uint32_t tokens = most;
  while (attempt(planned(tokens)) && tokens / 2 >= usual) tokens /= 2;
  const bool is_largest = !steps.empty() && steps.back().bucket.tokens >= most;
  const auto attempt_in_pieces = [&](bool by_piece) {
    if (most > kPieceTokens && most % kPieceTokens == 0)
      attempt(prompt_with(choice.one, {.tokens = most, .pieces = most / kPieceTokens, .by_piece = by_piece}));
  };
  if (!is_largest && is_divided(choice.one.plan)) attempt_in_pieces(false);
  if (gpus_with_weights(choice.one.plan) > 1) attempt_in_pieces(true);
  choice.score = std::numeric_limits<double>::infinity();
  for (; !steps.empty() && choice.long_step.bucket.tokens == 0; steps.pop_back()) {
    Step& step = steps.back();
    Predicted predicted = choice.predicted;
    if (lent_) {
      set_arenas(step.planned.plan, predicted);
      if (!take_arenas(step.planned.plan)) {
        Result<Step> within = prompt_with(choice.one, step.bucket);
        if (!within) continue;
        step = *std::move(within);
      }
      if (!take_arenas(predicted.prompt.planned.plan) || !take_arenas(predicted.repeated.plan)) {
        Result<Predicted> again = predict(choice.one);
        if (!again) continue;
        predicted = *std::move(again);
      }
    }
    choice.score = score_of(choice.state_on, predicted.us, us_per_token(step));
    choice.predicted = std::move(predicted);
    choice.long_step = std::move(step);
  }
  choice.lent = std::move(lent_);
}

// The tokens of the longest step that is tried for long prompts.
std::uint32_t StepPlanner::longest_step() const {
  std::uint32_t most = std::min(usual_step(options_), context_);
  while (options_.max_batch_tokens == 0 && most < kMostStepTokens && 2 * most <= context_) most *= 2;
  return most;
}

// Predicts how long the fastest link takes for all weights in the host's memory.
double StepPlanner::link_us(const PlannedGraph& one) const {
  const std::vector<std::uint32_t> homes = lent_ ? lent_->homes : homes_of(one.plan, one.graph);
  double bytes_per_s = 0;
  for (const Lane& lane : lanes_of(set_.devices, set_.costs))
    bytes_per_s = std::max(bytes_per_s, lane.weights_from_host.bytes_per_s);
  double bytes = 0;
  for (TensorId tensor = 0; tensor < homes.size(); ++tensor)
    if (homes[tensor] != shunt::kNone && one.graph.tensor(tensor).operand.kind == TensorKind::weight &&
        set_.devices[homes[tensor]]->info().memory_pool == kHostPool)
      bytes += static_cast<double>(one.graph.tensor(tensor).operand.span_bytes());
  return bytes_per_s > 0 ? 1e6 * bytes / bytes_per_s : 0;
}

// Gives a plan the arenas that its steps share. Returns false, and changes nothing, if it does not fit them.
bool StepPlanner::take_arenas(Plan& plan) const {
  const auto use_of = [&](std::size_t device) {
    return std::ranges::find(plan.memory, plan.devices[device].pool, &MemoryUse::pool);
  };
  for (std::size_t device = 0; device < plan.devices.size(); ++device) {
    const std::uint64_t arena = lent_->arena_bytes[device];
    const std::uint64_t own = plan.devices[device].arena_bytes;
    if (arena != 0 && (own > arena || use_of(device)->total() - own + arena > set_.budgets[device])) return false;
  }
  for (std::size_t device = 0; device < plan.devices.size(); ++device) {
    const std::uint64_t arena = lent_->arena_bytes[device];
    if (arena == 0) continue;
    use_of(device)->value_bytes += arena - plan.devices[device].arena_bytes;
    plan.devices[device].arena_bytes = arena;
  }
  return true;
}

// Gives the arenas of devices with budgets all memory that weights, state and scratch of three steps leave them.
void StepPlanner::set_arenas(const Plan& long_step, const Predicted& predicted) {
  const Graph& graph = predicted.repeated.graph;
  lent_->arena_bytes.assign(set_.devices.size(), 0);
  for (std::uint32_t device = 0; device < set_.devices.size(); ++device) {
    const DeviceInfo& info = set_.devices[device]->info();
    if (info.memory_pool == kHostPool || set_.budgets[device] == kNoBudget) continue;
    std::uint64_t others = 0;
    for (const Plan* plan : {&long_step, &predicted.prompt.planned.plan, &predicted.repeated.plan})
      others = std::max(others, plan->devices[device].scratch_bytes);
    for (TensorId tensor = 0; tensor < lent_->homes.size(); ++tensor) {
      const Operand& operand = graph.tensor(tensor).operand;
      if (lent_->homes[tensor] == device || (lent_->homes[tensor] != shunt::kNone && is_small_weight(operand)))
        others += operand.span_bytes();
    }
    const std::uint64_t left =
        std::min(set_.budgets[device] - std::min(set_.budgets[device], others), info.largest_binding_bytes);
    lent_->arena_bytes[device] = std::max(left / info.alignment_bytes, std::uint64_t{1}) * info.alignment_bytes;
  }
}

}  // namespace shunt::models
