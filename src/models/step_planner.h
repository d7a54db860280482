// Plans the steps of a session, so that they share its weights and state.
//
// The weights lie where a step of one token has them, split by rows where that pays. That step is planned once, with
// ever less of the devices' memory, until the largest step fits there too. The model must outlive it. One thread at a
// time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/model.h"
#include "plan/planner.h"
#include "plan/tensor_split.h"
#include "run/plan_graph.h"
#include "run/pool/device_pool.h"
#include "shunt/model.h"

namespace shunt::models {

// Tokens of one page of the cache.
inline constexpr std::uint32_t kPageTokens = 32;

// Pages that one sequence of that many tokens takes.
[[nodiscard]] constexpr std::uint32_t pages_of(std::uint32_t tokens) {
  return tokens / kPageTokens + (tokens % kPageTokens != 0 ? 1U : 0U);
}
// Pages of the whole cache. Errors: invalid for more than the 32-bit numbers of pages can tell apart.
[[nodiscard]] Result<std::uint32_t> cache_pages(std::uint32_t context, std::uint32_t sequences);

class StepPlanner {
 public:
  // For these devices, which must outlive it too, at the costs and budgets that they have now.
  StepPlanner(const Model& model, const DeviceSet& set, const SessionOptions& options, std::uint32_t context)
      : model_(model),
        devices_(set),
        set_(devices_.set()),
        cost_cache_(set_.devices, set_.costs),
        options_(options),
        context_(context) {}
  StepPlanner(const StepPlanner&) = delete;
  StepPlanner& operator=(const StepPlanner&) = delete;

  // A step of up to `tokens` tokens and `outputs` rows of logits; loads nothing. Errors: those of make_plan().
  [[nodiscard]] Result<PlannedGraph> plan(std::uint32_t tokens, std::uint32_t outputs);
  // A step of one token, with as much of the memory left for larger ones as another planner found best. Errors: as
  // plan().
  [[nodiscard]] Result<Plan> one_token_as(const StepPlanner& other);
  // Explains a step that it planned, as shunt::explain().
  void explain(PlannedGraph& step);
  // Its graph alone. Errors: those of build_step().
  [[nodiscard]] Result<Graph> graph_of(std::uint32_t tokens, std::uint32_t outputs) const;

 private:
  [[nodiscard]] PlanRequest request_for(const Graph& graph, std::vector<std::uint32_t> homes = {});
  [[nodiscard]] Result<PlannedGraph> finish(Graph graph, const PlannedGraph* other);
  [[nodiscard]] Result<PlannedGraph> with_weights_of(const PlannedGraph& one, Graph graph);
  [[nodiscard]] Result<PlannedGraph> plan_one_token(double share);
  [[nodiscard]] Result<PlannedGraph> plan_one_token();
  [[nodiscard]] Result<PlannedGraph> within_memory(PlannedGraph one);
  [[nodiscard]] Result<PlannedGraph> with_room(PlannedGraph one);
  [[nodiscard]] Result<double> predicted_us(const PlannedGraph& one);

  const Model& model_;
  const DeviceSnapshot devices_;
  const DeviceSet set_;  // of that
  CostCache cost_cache_;
  SessionOptions options_;
  std::uint32_t context_;
  std::optional<PlannedGraph> one_token_;
  double share_ = 1;  // of the devices' budgets that one_token_ was planned with
  std::vector<RowSplit> splits_;
};

}  // namespace shunt::models
