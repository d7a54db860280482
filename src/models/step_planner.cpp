#include "models/step_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "devices/device.h"

namespace shunt::models {
namespace {

// With how much less of the devices' memory the step of one token is planned again, and how often.
constexpr int kAttempts = 10;
constexpr double kLess = 0.8;

// That of the first device of the kind that a strategy likes; kNone where it likes none.
// Errors: invalid where there is no such device.
Result<std::uint32_t> preferred_device(Strategy strategy, std::span<Device* const> devices) {
  if (strategy != Strategy::gpu && strategy != Strategy::cpu) return kNone;
  const auto is_liked = [&](const Device* device) {
    return device->info().is_host_cpu() == (strategy == Strategy::cpu);
  };
  const auto liked = std::ranges::find_if(devices, is_liked);
  if (liked != devices.end()) return static_cast<std::uint32_t>(liked - devices.begin());
  std::string names;
  for (const Device* device : devices) names += " " + device->info().id;
  return fail(Code::invalid,
              fmt::format("strategy {}: there is no such device among those in use:{}", name_of(strategy), names));
}

}  // namespace

Result<PlannedStep> StepPlanner::plan(std::uint32_t tokens, std::uint32_t outputs) {
  SHUNT_TRY_ASSIGN(Graph graph, graph_of(tokens, outputs));
  if (options_.strategy == Strategy::layers || runtime_.devices().size() == 1) return finish(std::move(graph), nullptr);
  if (!one_token_) {
    SHUNT_TRY_ASSIGN(one_token_, plan_one_token());
  }
  if (tokens == 1 && outputs <= 1) return *one_token_;
  return finish(std::move(graph), &*one_token_);
}

Result<Graph> StepPlanner::graph_of(std::uint32_t tokens, std::uint32_t outputs) const {
  const std::uint32_t pages = (context_ + kPageTokens - 1) / kPageTokens;
  return build_step(model_.config(), model_.weights(),
                    {.tokens = std::bit_ceil(tokens),
                     .outputs = std::bit_ceil(std::max(outputs, 1U)),
                     .sequences = options_.sequences,
                     .pages_per_sequence = pages,
                     .pages = pages * options_.sequences,
                     .page_tokens = kPageTokens,
                     .cache_dtype = options_.cache_dtype});
}

Result<PlanRequest> StepPlanner::request_for(const Graph& graph) const {
  SHUNT_TRY_ASSIGN(const std::uint32_t preferred, preferred_device(options_.strategy, runtime_.devices()));
  return PlanRequest{.graph = &graph,
                     .devices = runtime_.devices(),
                     .costs = runtime_.costs(),
                     .device_of_node = place_nodes(options_.strategy, graph, runtime_.devices().size()),
                     .preferred = preferred,
                     .fuse = options_.fuse,
                     .budget_bytes = {runtime_.budgets().begin(), runtime_.budgets().end()},
                     .margin = options_.margin};
}

// Where another step has the weights, if it has the same nodes.
Result<PlannedStep> StepPlanner::finish(Graph graph, const PlannedStep* other) const {
  SHUNT_TRY_ASSIGN(PlanRequest request, request_for(graph));
  if (other != nullptr && other->graph.nodes().size() == graph.nodes().size()) {
    request.device_of_node = devices_of_nodes(other->plan, other->graph);
    request.reason = Reason::where_weights_are;
  }
  SHUNT_TRY_ASSIGN(Plan plan, make_plan(request));
  return PlannedStep{std::move(graph), std::move(plan)};
}

Result<PlannedStep> StepPlanner::plan_one_token() const {
  const bool is_bounded =
      std::ranges::any_of(runtime_.budgets(), [](std::uint64_t bytes) { return bytes != kNoBudget; });
  double share = 1;
  for (int attempt = 1;; ++attempt) {
    SHUNT_TRY_ASSIGN(Graph graph, graph_of(1, 1));
    SHUNT_TRY_ASSIGN(PlanRequest request, request_for(graph));
    for (std::size_t device = 0; device < request.budget_bytes.size(); ++device)
      if (request.devices[device]->info().memory_pool != kHostPool && share < 1)
        request.budget_bytes[device] =
            static_cast<std::uint64_t>(static_cast<double>(request.budget_bytes[device]) * share);
    SHUNT_TRY_ASSIGN(Plan plan, make_plan(request));
    PlannedStep one{std::move(graph), std::move(plan)};
    if (!is_bounded) return one;
    SHUNT_TRY_ASSIGN(Graph largest, graph_of(std::min(options_.batch, context_), 1));
    const auto fits = finish(std::move(largest), &one);
    if (fits || fits.error().code != Code::out_of_memory || attempt == kAttempts) return one;
    share = attempt + 1 == kAttempts ? 0 : share * kLess;
  }
}

}  // namespace shunt::models
