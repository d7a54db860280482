#include "models/step_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/checked.h"
#include "devices/device.h"
#include "models/gguf/gguf_parse.h"
#include "plan/problem.h"
#include "plan/timeline.h"
#include "run/choose_apis.h"
#include "run/strategy.h"

namespace shunt::models {
namespace {

// While the largest step does not fit, the step of one token is planned again with kLess times the memory, or with less
// of a reduction if it does not fit that, in at most kAttempts attempts. Then kRefinements bisections give some of the
// memory back.
constexpr int kAttempts = 10;
constexpr double kLess = 0.8;
constexpr int kRefinements = 3;
// Generated tokens per prompt token, as prompts are usually longer than answers.
constexpr double kAnswer = 0.25;
// The gain, relative to a step's time, that justifies copying weights in each step.
constexpr double kLeastGain = 0.1;
// A step has twice as many tokens if that saves this share of their time.
constexpr double kLeastSaved = 0.005;

// Returns the device of each node, for Strategy::layers. The nodes of layer N are named "blk.N.*". Nodes before the
// first layer go with it, and nodes after the last layer go with that. REQUIRES: devices > 0.
std::vector<std::uint32_t> place_layers(const Graph& graph, std::size_t devices) {
  std::vector<std::uint32_t> device_of_node;
  device_of_node.reserve(graph.nodes().size());
  std::uint32_t device = 0;
  for (const Node& node : graph.nodes()) {
    if (const auto layer = layer_of(node.name)) device = static_cast<std::uint32_t>(*layer % devices);
    device_of_node.push_back(device);
  }
  return device_of_node;
}

// Returns whether a step has several tokens.
bool is_of_prompts(const Graph& graph) {
  return graph.tensor(*graph.find(input_of_piece("tokens", 0))).operand.shape.elements() > 1;
}

// Reduces the budgets of devices with memory of their own to `share`.
void take_share(PlanRequest& request, double share) {
  for (std::size_t device = 0; device < request.budget_bytes.size(); ++device)
    if (request.devices[device]->info().memory_pool != kHostPool && request.budget_bytes[device] != kNoBudget)
      request.budget_bytes[device] =
          static_cast<std::uint64_t>(static_cast<double>(request.budget_bytes[device]) * share);
}

// Returns the places of the weights and state of `other`, one per tensor, for the tensors of `graph`.
std::vector<std::uint32_t> places_in(const Graph& graph, const Graph& other, std::span<const std::uint32_t> places) {
  std::map<std::string_view, std::uint32_t> place_of;
  for (TensorId tensor = 0; tensor < places.size(); ++tensor)
    if (places[tensor] != shunt::kNone) place_of.emplace(other.tensor(tensor).name, places[tensor]);
  std::vector<std::uint32_t> result(graph.tensors().size(), shunt::kNone);
  for (TensorId tensor = 0; tensor < result.size(); ++tensor)
    if (const auto place = place_of.find(graph.tensor(tensor).name); place != place_of.end())
      result[tensor] = place->second;
  return result;
}

}  // namespace

Result<std::uint32_t> cache_pages(std::uint32_t context, std::uint32_t sequences) {
  constexpr std::uint32_t kMost = std::numeric_limits<std::int32_t>::max();
  const auto pages = checked_product<std::uint32_t>(pages_of(context), sequences);
  if (!pages || *pages > kMost)
    return fail(
        Code::invalid,
        fmt::format("a context of {} tokens in {} sequences: the cache has {} pages of {} tokens at most; choose a "
                    "smaller context or fewer sequences",
                    context, sequences, kMost, kPageTokens));
  return *pages;
}

std::unique_ptr<StepPlanner> StepPlanner::choosing_apis(const Model& model, DevicePool& device_pool,
                                                        const SessionOptions& options, std::uint32_t context) {
  auto chosen = choose_apis(device_pool, options.margin, [&](const DeviceSet& set) {
    return std::make_unique<StepPlanner>(model, set, options, context);
  });
  return std::unique_ptr<StepPlanner>(static_cast<StepPlanner*>(chosen.release()));
}

// Chooses where the weights are, on which all steps depend, if there is a choice. False: they fit nowhere.
bool StepPlanner::has_places() { return one_token_ || !has_choice() || plan(kRepeated).has_value(); }

// If long steps are computed in pieces, so are others of several whole pieces.
Bucket StepPlanner::bucket_for(Bucket sizes) {
  const bool is_whole = sizes.tokens > kPieceTokens && sizes.tokens % kPieceTokens == 0 && sizes.outputs <= 1;
  const bool in_pieces = is_whole && has_places() && long_step_.pieces > 1;
  return in_pieces ? Bucket{.tokens = sizes.tokens,
                            .outputs = 1,
                            .pieces = sizes.tokens / kPieceTokens,
                            .by_piece = long_step_.by_piece}
                   : BucketPlanner::bucket_for(sizes);
}

Result<PlannedGraph> StepPlanner::plan(Bucket bucket) {
  if (!one_token_ && has_choice()) {
    SHUNT_TRY_ASSIGN(one_token_, plan_one_token());
    if (!repeated_) {
      SHUNT_TRY_ASSIGN(repeated_, as_repeated(*one_token_));
    }
  }
  if (repeated_ && bucket.tokens == 1 && bucket.outputs <= 1) return *repeated_;
  const auto chosen = std::ranges::find(chosen_, bucket, &Step::bucket);
  if (chosen != chosen_.end()) return chosen->planned;
  SHUNT_TRY_ASSIGN(Graph graph, graph_of(bucket));
  return one_token_ ? with_weights_of(*one_token_, bucket, std::move(graph)) : finish(std::move(graph), nullptr);
}

std::uint32_t StepPlanner::prompt_step(std::uint64_t left) {
  std::uint32_t most = usual_step(options_);
  if (options_.max_batch_tokens == 0 && left > most) {
    if (long_step_.tokens == 0) choose_long_step();
    most = long_step_.tokens;
  }
  const auto tokens = static_cast<std::uint32_t>(std::min<std::uint64_t>({left, most, context_}));
  const bool in_pieces = long_step_.pieces > 1 && tokens > kPieceTokens;
  return in_pieces ? std::bit_floor(tokens / kPieceTokens) * kPieceTokens : tokens;
}

void StepPlanner::choose_long_step() {
  if (has_places() && long_step_.tokens != 0) return;  // chosen with the places of the weights
  std::uint32_t tokens = kUsualStepTokens;
  std::optional<double> us = step_us(tokens);
  while (us && tokens < kMostStepTokens && tokens < context_) {
    const std::optional<double> twice_us = step_us(2 * tokens);
    if (!twice_us || *twice_us > kLongestPromptStepUs || *twice_us > 2 * *us * (1 - kLeastSaved)) break;
    tokens *= 2;
    us = twice_us;
  }
  long_step_ = {.tokens = tokens};
}

// Predicts the time of a step, or returns nothing if it cannot be planned.
std::optional<double> StepPlanner::step_us(std::uint32_t tokens) {
  const Result<PlannedGraph> step = plan(tokens, 1);
  return step ? std::optional(step->plan.predicted_us) : std::nullopt;
}

Result<Plan> StepPlanner::estimate(const BucketPlanner& other) {
  const auto& its = static_cast<const StepPlanner&>(other);
  splits_ = its.splits_;
  state_on_ = its.state_on_;
  SHUNT_TRY_ASSIGN(const PlannedGraph one, plan_one_token(its.share_));
  SHUNT_TRY_ASSIGN(PlannedGraph repeated, as_repeated(one));
  return std::move(repeated.plan);
}

Result<PredictedWork> StepPlanner::predicted_work() {
  const std::uint32_t prompt = std::min(usual_step(options_), context_);
  const double answer = kAnswer * prompt;
  SHUNT_TRY_ASSIGN(const PlannedGraph one, plan(1, 1));
  SHUNT_TRY_ASSIGN(const PlannedGraph many, plan(prompt, 1));
  return PredictedWork{.us = many.plan.predicted_us + answer * one.plan.predicted_us,
                       .what = fmt::format("a prompt of {} tokens and an answer of {:g}", prompt, answer)};
}

// Plans a step that holds its weights and state as `one` does. Units run where their weights are, unless copying some
// gains enough.
Result<PlannedGraph> StepPlanner::with_weights_of(const PlannedGraph& one, Bucket bucket, Graph graph) {
  const bool has_same_tensors = graph.tensors().size() == one.graph.tensors().size();
  if (bucket.pieces > 1 || (lent_ && has_same_tensors)) {
    std::vector<std::uint32_t> homes = lent_ ? lent_->homes : homes_of(one.plan, one.graph);
    if (bucket.pieces > 1) homes = places_in(graph, one.graph, homes);
    PlanRequest request = request_for(graph, homes);
    request.lent_from.clear();  // this is who it is lent to
    Result<Plan> plan = make_plan(request);
    if (!plan && plan.error().code == Code::out_of_memory) {
      request.arena_bytes.clear();  // it takes more memory than the steps which arenas were made for
      plan = make_plan(request);
    }
    if (!plan) return std::unexpected(std::move(plan).error());
    return PlannedGraph{.graph = std::move(graph), .plan = *std::move(plan), .homes = std::move(homes)};
  }
  SHUNT_TRY_ASSIGN(PlannedGraph step, finish(std::move(graph), &one));
  if (!has_same_tensors) return step;
  std::vector<std::uint32_t> homes = homes_of(one.plan, one.graph);
  step.homes = homes;
  return copying_weights(std::move(step), std::move(homes));
}

// Has a step copy weights from where they are, for its duration, if that gains enough.
PlannedGraph StepPlanner::copying_weights(PlannedGraph step, std::vector<std::uint32_t> homes) {
  if (options_.strategy != Strategy::automatic) return step;
  auto other = make_plan(request_for(step.graph, homes));
  if (!other) return step;
  step.plan.bound_us = other->bound_us;  // the bound of both plans
  if (other->predicted_us * (1 + kLeastGain) >= step.plan.predicted_us) return step;
  step.plan = std::move(*other);
  step.homes = std::move(homes);
  return step;
}

// The links are idle while one token's step reads weights where they are.
Result<PlannedGraph> StepPlanner::as_repeated(const PlannedGraph& one) {
  if (lent_) {
    SHUNT_TRY_ASSIGN(PlannedGraph step, finish(one.graph, &one));
    const bool is_same =
        step.plan.units == one.plan.units &&
        std::ranges::equal(step.plan.decisions, one.plan.decisions, {}, &Decision::device, &Decision::device);
    if (is_same) step.plan.decisions = one.plan.decisions;  // with their reasons
    return copying_weights(std::move(step), homes_of(one.plan, one.graph));
  }
  const auto has_weights = [](const MemoryUse& use) { return use.weight_bytes != 0; };
  if (std::ranges::count_if(one.plan.memory, has_weights) < 2) return one;  // nothing to copy
  return copying_weights(one, homes_of(one.plan, one.graph));
}

Result<Graph> StepPlanner::graph_of(Bucket bucket) const {
  SHUNT_TRY_ASSIGN(const std::uint32_t pages, cache_pages(context_, options_.max_sequences));
  SHUNT_TRY_ASSIGN(Graph graph, build_step(model_.config(), model_.weights(),
                                           {.tokens = bucket.tokens,
                                            .outputs = bucket.outputs,
                                            .sequences = options_.max_sequences,
                                            .pages_per_sequence = pages_of(context_),
                                            .pages = pages,
                                            .page_tokens = kPageTokens,
                                            .cache_dtype = options_.cache_dtype,
                                            .pieces = bucket.pieces,
                                            .by_piece = bucket.by_piece}));
  graph.set_numerics(options_.numerics);
  return splits_.empty() ? std::move(graph) : split_rows(graph, splits_);
}

void StepPlanner::explain(PlannedGraph& step) {
  const bool places_weights = one_token_ && step.homes.empty();
  PlanRequest request = request_for(step.graph, places_weights ? homes_of_state(step.graph) : step.homes);
  if (places_weights) take_share(request, share_);
  request.state_travels = request.state_travels && !step.homes.empty();
  shunt::explain(request, step.plan);
}

PlanRequest StepPlanner::request_for(const Graph& graph, std::vector<std::uint32_t> homes) {
  PlanRequest request{.graph = &graph,
                      .devices = set_.devices,
                      .costs = set_.costs,
                      .cost_cache = &cost_cache_,
                      .fuse = options_.fuse,
                      .budget_bytes = {set_.budgets.begin(), set_.budgets.end()},
                      .state_travels = !homes.empty() && is_of_prompts(graph),
                      .quarantined = set_.quarantined};
  if (lent_) {
    // Steps in pieces have other tensors, and are whom it is lent to.
    if (lent_->from.size() == graph.tensors().size()) request.lent_from = lent_->from;
    request.arena_bytes = lent_->arena_bytes;
  }
  if (options_.strategy == Strategy::layers)
    request.where = GivenPlaces{.device_of_node = place_layers(graph, set_.devices.size()), .compare = true};
  else
    request.where = Search{.preferred = preferred_device(options_.strategy, set_.devices),
                           .strict = set_.strict,
                           .margin = options_.margin,
                           .homes = std::move(homes),
                           .suggested = suggestions(graph, splits_)};
  return request;
}

// Plans `graph` with the weights where `other` has them, if both have the same nodes.
Result<PlannedGraph> StepPlanner::finish(Graph graph, const PlannedGraph* other) {
  PlanRequest request = request_for(graph);
  if (other != nullptr && other->graph.nodes().size() == graph.nodes().size())
    request.where = FollowWeights{devices_of_nodes(other->plan, other->graph)};
  SHUNT_TRY_ASSIGN(Plan plan, make_plan(request));
  return PlannedGraph{std::move(graph), std::move(plan)};
}

// Plans with `share` of the devices' budgets.
Result<PlannedGraph> StepPlanner::plan_one_token(double share) {
  SHUNT_TRY_ASSIGN(Graph graph, graph_of(1, 1));
  PlanRequest request = request_for(graph, homes_of_state(graph));
  take_share(request, share);
  SHUNT_TRY_ASSIGN(Plan plan, make_plan(request));
  return PlannedGraph{std::move(graph), std::move(plan)};
}

// Returns homes for the state alone, if it was given a device that is here.
std::vector<std::uint32_t> StepPlanner::homes_of_state(const Graph& graph) const {
  const auto device = std::ranges::find_if(
      set_.devices, [&](const Device* each) { return state_on_ && each->info().id == *state_on_; });
  if (device == set_.devices.end()) return {};
  std::vector<std::uint32_t> homes(graph.tensors().size(), shunt::kNone);
  for (TensorId tensor = 0; tensor < homes.size(); ++tensor)
    if (graph.tensor(tensor).base == tensor && graph.tensor(tensor).operand.kind == TensorKind::state)
      homes[tensor] = static_cast<std::uint32_t>(device - set_.devices.begin());
  return homes;
}

Result<PlannedGraph> StepPlanner::plan_one_token() {
  share_ = 1;
  SHUNT_TRY_ASSIGN(Graph whole, graph_of(1, 1));
  const PlanRequest request = request_for(whole);
  Result<Plan> plan = make_plan(request);
  const auto us_of = [&](std::span<const RowSplit> splits) -> Result<double> {
    splits_.assign(splits.begin(), splits.end());
    SHUNT_TRY_ASSIGN(const PlannedGraph one, plan_one_token(share_));
    SHUNT_TRY_ASSIGN(const Predicted predicted, predict(one));
    return predicted.us;
  };
  splits_ = choose_splits(request, plan ? &*plan : nullptr, us_of);
  if (splits_.empty()) {
    if (!plan) return std::unexpected(std::move(plan).error());
    return within_memory({std::move(whole), *std::move(plan)});
  }
  SHUNT_TRY_ASSIGN(PlannedGraph one, plan_one_token(share_));
  return within_memory(std::move(one));
}

Result<PlannedGraph> StepPlanner::within_memory(PlannedGraph one) {
  const bool is_bounded = std::ranges::any_of(set_.budgets, [](std::uint64_t bytes) { return bytes != kNoBudget; });
  double too_much = 1;    // the share that leaves no room for that step
  double too_little = 0;  // and one with which not even one token has memory
  if (!is_bounded) return one;
  SHUNT_TRY_ASSIGN(const Graph largest, graph_of(std::min(usual_step(options_), context_), 1));
  const auto leaves_room = [&](const PlannedGraph& planned) {
    const auto beside = finish(largest, &planned);
    return beside || beside.error().code != Code::out_of_memory;
  };
  for (int attempt = 1; !leaves_room(one); ++attempt) {
    if (attempt == kAttempts) return one;
    const double less = too_little > 0             ? std::midpoint(too_little, share_)
                        : attempt + 1 == kAttempts ? 0
                                                   : share_ * kLess;
    Result<PlannedGraph> smaller = plan_one_token(less);
    if (smaller) {
      too_much = std::exchange(share_, less);
      one = *std::move(smaller);
    } else {
      too_little = less;
    }
  }
  for (int i = 0; i < kRefinements && share_ != too_much; ++i) {
    const double more = (share_ + too_much) / 2;
    Result<PlannedGraph> larger = plan_one_token(more);
    const bool fits = larger && leaves_room(*larger);
    (fits ? share_ : too_much) = more;
    if (fits) one = *std::move(larger);
  }
  return balanced(std::move(one));
}

// Predicts the time to read a prompt and generate an answer with the weights placed as in `one`.
Result<StepPlanner::Predicted> StepPlanner::predict(const PlannedGraph& one) {
  const std::uint32_t batch = std::min(usual_step(options_), context_);
  SHUNT_TRY_ASSIGN(Step prompt, prompt_with(one, {.tokens = batch}));
  SHUNT_TRY_ASSIGN(PlannedGraph repeated, as_repeated(one));
  const double us =
      prompt.planned.plan.predicted_us + (lent_ ? lent_->return_us : 0) + kAnswer * batch * repeated.plan.predicted_us;
  return Predicted{.prompt = std::move(prompt), .repeated = std::move(repeated), .us = us};
}

// Plans a step of a prompt with the weights placed as in `one`.
Result<StepPlanner::Step> StepPlanner::prompt_with(const PlannedGraph& one, Bucket bucket) {
  if (bucket.pieces == 1) bucket = BucketPlanner::bucket_for(bucket);
  SHUNT_TRY_ASSIGN(Graph graph, graph_of(bucket));
  SHUNT_TRY_ASSIGN(PlannedGraph step, with_weights_of(one, bucket, std::move(graph)));
  return Step{.bucket = bucket, .planned = std::move(step)};
}

}  // namespace shunt::models
