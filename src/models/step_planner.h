// Plans the steps of a session so that all share its weights and state.
//
// Weights are placed for a step of one token, and split by rows where that pays off. That step is planned with less and
// less device memory until the largest step fits too. The model must outlive the planner. One thread at a time.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/context.h"
#include "models/model.h"
#include "plan/planner.h"
#include "plan/tensor_split.h"
#include "run/bucket_planner.h"
#include "run/pool/device_pool.h"
#include "shunt/model.h"

namespace shunt::models {

// Tokens per page of the cache.
inline constexpr std::uint32_t kPageTokens = 32;
// Tokens of a piece of a longer step: enough for the rates of matrix units. The fewer, the less memory.
inline constexpr std::uint32_t kPieceTokens = 512;
// The longest that a step of a long prompt may take, for the sake of progress.
inline constexpr double kLongestPromptStepUs = 4e6;

// Pages for one sequence of that many tokens.
[[nodiscard]] constexpr std::uint32_t pages_of(std::uint32_t tokens) {
  return tokens / kPageTokens + (tokens % kPageTokens != 0 ? 1U : 0U);
}
// Pages of the whole cache. Errors: invalid for more pages than 32-bit numbers can tell apart.
[[nodiscard]] Result<std::uint32_t> cache_pages(std::uint32_t context, std::uint32_t sequences);

class StepPlanner final : public BucketPlanner {
 public:
  // Plans for these devices, which must outlive the planner, at their current costs and budgets.
  StepPlanner(const Model& model, const DeviceSet& set, const SessionOptions& options, std::uint32_t context)
      : model_(model),
        devices_(set),
        set_(devices_.set()),
        cost_cache_(set_.devices, set_.costs),
        options_(options),
        context_(context) {}
  // Plans for the devices of a pool, and chooses the APIs of its GPUs (choose_apis()).
  [[nodiscard]] static std::unique_ptr<StepPlanner> choosing_apis(const Model& model, DevicePool& device_pool,
                                                                  const SessionOptions& options, std::uint32_t context);

  // Plans a step of up to `tokens` tokens and `outputs` rows of logits; loads nothing. Errors: those of make_plan().
  [[nodiscard]] Result<PlannedGraph> plan(std::uint32_t tokens, std::uint32_t outputs) {
    return plan(bucket_for({.tokens = tokens, .outputs = outputs}));
  }
  // REQUIRES: bucket_for() returned it, or it has one piece.
  [[nodiscard]] Result<PlannedGraph> plan(Bucket bucket) override;
  [[nodiscard]] Bucket bucket_for(Bucket sizes) override;
  // Returns how many of the next `left` tokens of a prompt to read in one step: usual_step(), or more if the options
  // allow it, there is memory for it beside the weights, and a token is predicted to take less time.
  [[nodiscard]] std::uint32_t prompt_step(std::uint64_t left);
  // Predicts a prompt of one usual step, and an answer of a quarter of its length.
  [[nodiscard]] Result<PredictedWork> predicted_work() override;
  // Plans a step of one token with the row splits and the share of memory that `other`, a StepPlanner, found best.
  [[nodiscard]] Result<Plan> estimate(const BucketPlanner& other) override;
  void explain(PlannedGraph& step) override;
  // Builds only the graph of a step, in one piece. Errors: those of build_step().
  [[nodiscard]] Result<Graph> graph_of(std::uint32_t tokens, std::uint32_t outputs) const {
    return graph_of({.tokens = std::bit_ceil(tokens), .outputs = std::bit_ceil(std::max(outputs, 1U))});
  }

 private:
  [[nodiscard]] PlanRequest request_for(const Graph& graph, std::vector<std::uint32_t> homes = {});
  // For a thread of its own: with the same devices, options and row splits.
  StepPlanner(const StepPlanner& other)
      : model_(other.model_),
        devices_(other.devices_),
        set_(devices_.set()),
        cost_cache_(set_.devices, set_.costs),
        options_(other.options_),
        context_(other.context_),
        splits_(other.splits_) {}
  [[nodiscard]] Result<PlannedGraph> finish(Graph graph, const PlannedGraph* other);
  // Whether steps of one token are planned first, and where their weights are decides about all others.
  [[nodiscard]] bool has_choice() const { return options_.strategy != Strategy::layers && set_.devices.size() != 1; }
  [[nodiscard]] Result<Graph> graph_of(Bucket bucket) const;
  [[nodiscard]] Result<PlannedGraph> with_weights_of(const PlannedGraph& one, Bucket bucket, Graph graph);
  [[nodiscard]] PlannedGraph copying_weights(PlannedGraph step, std::vector<std::uint32_t> homes);
  [[nodiscard]] Result<PlannedGraph> as_repeated(const PlannedGraph& one);
  [[nodiscard]] bool has_places();
  void choose_long_step();
  [[nodiscard]] std::optional<double> step_us(std::uint32_t tokens);
  [[nodiscard]] Result<PlannedGraph> plan_one_token(double share);
  [[nodiscard]] std::vector<std::uint32_t> homes_of_state(const Graph& graph) const;
  [[nodiscard]] Result<PlannedGraph> plan_one_token();
  [[nodiscard]] Result<PlannedGraph> within_memory(PlannedGraph one);
  struct Step {
    Bucket bucket{.tokens = 0};  // no tokens: not planned
    PlannedGraph planned;
  };
  // A prompt of the usual step, the tokens of the answer after it, and the time of both.
  struct Predicted {
    Step prompt;
    PlannedGraph repeated;
    double us = 0;
  };
  [[nodiscard]] Result<Predicted> predict(const PlannedGraph& one);
  // Weights of GPUs whose memory steps of prompts use, as PlanRequest describes them.
  struct Lent {
    std::vector<std::uint32_t> homes;  // in those steps: of all weights and state
    std::vector<std::uint32_t> from;
    std::vector<std::uint64_t> arena_bytes;
    double return_us = 0;  // to copy them to the GPUs again
  };
  [[nodiscard]] std::optional<Lent> lend(const PlannedGraph& one, double part) const;
  // A way to share a device's memory between weights, state and what steps need besides.
  struct Choice {
    PlannedGraph one;
    double share = 1;
    std::optional<std::string> state_on;
    std::optional<Lent> lent;
    double estimate = 0;          // of the score
    std::optional<double> score;  // the least is the best; nothing: long_step is not planned
    Predicted predicted;
    Step long_step;
  };
  // Choices that keep weights of one token's step in a share of the memory.
  struct Trial {
    std::optional<std::string> state_on;
    double share = 1;
    std::span<const double> lent_parts;
  };
  class Restored;
  class Team;
  [[nodiscard]] Result<Step> prompt_with(const PlannedGraph& one, Bucket bucket);
  // Works in step_choices.cpp.
  [[nodiscard]] PlannedGraph balanced(PlannedGraph one);
  [[nodiscard]] std::vector<Trial> trials_beside(const Plan& one) const;
  [[nodiscard]] std::vector<Choice> choices_of(const Trial& trial);
  [[nodiscard]] static Choice* best_of(std::vector<Choice>& choices, Team& team);
  [[nodiscard]] double score_of(const std::optional<std::string>& state_on, double us, double us_per_token) const;
  [[nodiscard]] std::optional<Choice> choice_of(PlannedGraph one, double share);
  void add_long_step(Choice& choice);
  [[nodiscard]] std::uint32_t longest_step() const;
  [[nodiscard]] double link_us(const PlannedGraph& one) const;
  [[nodiscard]] std::optional<std::uint32_t> host_device() const;
  [[nodiscard]] const std::string& id_of(std::uint32_t device) const { return set_.devices[device]->info().id; }
  [[nodiscard]] bool take_arenas(Plan& plan) const;
  void set_arenas(const Plan& long_step, const Predicted& predicted);

  const Model& model_;
  const DeviceSnapshot devices_;
  const DeviceSet set_;  // a view of devices_
  CostCache cost_cache_;
  SessionOptions options_;
  std::uint32_t context_;
  std::optional<PlannedGraph> one_token_;  // says where the weights are
  std::optional<PlannedGraph> repeated_;   // the same step, which may copy some of them
  std::optional<Lent> lent_;
  double share_ = 1;                     // share of the devices' budgets that one_token_ was planned with
  std::optional<std::string> state_on_;  // the device that it was to keep all state on
  std::vector<RowSplit> splits_;
  std::vector<Step> chosen_;       // those planned when places were chosen, except of one token
  Bucket long_step_{.tokens = 0};  // of long prompts; no tokens: not chosen yet
};

}  // namespace shunt::models
