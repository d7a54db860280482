// The decisions in the JSON of a plan, as values: to_json(plan) writes them, and reviews of plans that ran read them.
// Devices, ops and dtypes are names, so that neither graph nor devices are needed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/field_json.h"

namespace shunt {

struct CandidateRecord {
  std::string device;
  std::string reason;
  std::string detail;     // why it could not run the op
  double compute_us = 0;  // of the op alone; 0: it could not run
  double uncertainty_us = 0;
  bool measured = true;            // the prediction rests on measurements of alike ops on the device
  std::string arithmetic = "f32";  // of its products (arithmetics.def)
  std::string kernel;              // that would run it, if the device has several for it
  bool kernel_measured = false;    // it was measured to be the fastest; otherwise the device's rule takes it
  std::optional<double> added_us;  // time that it was predicted to add to the whole
};

struct DecisionRecord {
  std::string op;
  std::string call;                // the op with its operands
  std::vector<std::string> nodes;  // those that it computes; the last gives it its name
  std::string device;
  std::string reason;
  std::uint32_t group = 0;  // units of one group move together
  std::vector<CandidateRecord> candidates;

  [[nodiscard]] const CandidateRecord* find(std::string_view id) const;
};

struct InputRecord {
  std::string name;
  std::string dtype;
  std::vector<std::uint32_t> shape;
};

struct PlanRecord {
  double predicted_us = 0;
  double best_us = 0;  // predicted time of the planner's own choice; predicted_us unless made by hand
  bool measured = false;
  std::vector<InputRecord> inputs;
  std::vector<DecisionRecord> units;

  // Returns the first extent of an input and of its pieces, named INPUT.1 and so on, together; 0: no such input.
  [[nodiscard]] std::uint32_t rows_of(std::string_view input) const;
};

// " by attention_tile (measured)", or nothing if the device has one kernel for the op.
[[nodiscard]] std::string kernel_in_words(const std::string& kernel, bool is_measured);

// "cpu:simd: higher predicted cost: the whole would take 2.3 us longer; the op alone 12.0 us +- 1.2 us"
[[nodiscard]] std::string describe(const CandidateRecord& candidate);

void visit_fields(field_json::FieldsOf<CandidateRecord> auto& candidate, const auto& visit) {
  visit("device", candidate.device);
  visit("reason", candidate.reason);
  visit("detail", candidate.detail);
  visit("compute_us", candidate.compute_us);
  visit("uncertainty_us", candidate.uncertainty_us);
  visit("measured", candidate.measured);
  visit("arithmetic", candidate.arithmetic);
  visit("kernel", candidate.kernel);
  visit("kernel_measured", candidate.kernel_measured);
  visit("added_us", candidate.added_us);
}

void visit_fields(field_json::FieldsOf<DecisionRecord> auto& decision, const auto& visit) {
  visit("op", decision.op);
  visit("call", decision.call);
  visit("nodes", decision.nodes);
  visit("device", decision.device);
  visit("reason", decision.reason);
  visit("group", decision.group);
  visit("candidates", decision.candidates);
}

void visit_fields(field_json::FieldsOf<InputRecord> auto& input, const auto& visit) {
  visit("name", input.name);
  visit("dtype", input.dtype);
  visit("shape", input.shape);
}

void visit_fields(field_json::FieldsOf<PlanRecord> auto& plan, const auto& visit) {
  visit("predicted_us", plan.predicted_us);
  visit("best_us", plan.best_us);
  visit("measured", plan.measured);
  visit("inputs", plan.inputs);
  visit("units", plan.units);
}

}  // namespace shunt
