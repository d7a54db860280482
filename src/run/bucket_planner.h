// Plans the graphs of a runner's client, one for each bucket. One thread at a time.
#pragma once

#include <algorithm>
#include <bit>
#include <compare>
#include <cstdint>
#include <string>

#include "run/plan_graph.h"

namespace shunt {

// The largest step that an executable runs.
struct Bucket {
  std::uint32_t tokens = 1;
  std::uint32_t outputs = 1;  // result rows that are wanted
  std::uint32_t pieces = 1;   // more than one: it runs steps of exactly so many tokens, in so many pieces
  bool by_piece = false;      // these one after another, not layer by layer
  auto operator<=>(const Bucket&) const = default;
};
// The bucket of most runs: one token of a session, and the only bucket of a computation.
inline constexpr Bucket kRepeated{};

struct PredictedWork {
  double us = 0;
  std::string what;  // "a run"
};

// Plans the buckets of a client for one set of devices, so that they share weights and state.
class BucketPlanner {
 public:
  BucketPlanner() = default;
  BucketPlanner(const BucketPlanner&) = delete;
  BucketPlanner& operator=(const BucketPlanner&) = delete;
  virtual ~BucketPlanner() = default;
  // Returns the bucket for a step of these sizes: the next powers of two, unless another is better.
  [[nodiscard]] virtual Bucket bucket_for(Bucket sizes) {
    return {.tokens = std::bit_ceil(sizes.tokens), .outputs = std::bit_ceil(std::max(sizes.outputs, 1U))};
  }
  // Errors: those of make_plan().
  [[nodiscard]] virtual Result<PlannedGraph> plan(Bucket bucket) = 0;
  // Explains a plan made by plan(), as shunt::explain().
  virtual void explain(PlannedGraph& planned) = 0;
  // Predicts the work by which the devices of planners are compared. Errors: as plan().
  [[nodiscard]] virtual Result<PredictedWork> predicted_work() = 0;
  // Estimates plan(kRepeated) in less time, based on what `other`, a planner of the same client, did.
  [[nodiscard]] virtual Result<Plan> estimate(const BucketPlanner& other) = 0;
};

}  // namespace shunt
