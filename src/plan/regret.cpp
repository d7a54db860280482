#include "plan/regret.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/parse_json.h"
#include "base/units.h"
#include "devices/cpu/device.h"
#include "devices/discovery/registry.h"

namespace shunt {
namespace {

using trace::Kind;

// Returns the name of an op's events, as ProgramTrace gives it.
std::string name_of(const DecisionRecord& decision) {
  return fmt::format("{} {}", decision.op, decision.nodes.empty() ? "" : decision.nodes.back());
}

// Returns whether the device would have been used, and its speed is not just a guess.
bool counts(const CandidateRecord& other, std::string_view named) {
  if (!other.added_us || !other.measured) return false;
  const std::vector<std::string_view> names = names_in(named);
  // The reference runs nothing that another device could run as well, unless the user names it.
  return other.device != cpu::kScalarId || std::ranges::find(names, cpu::kScalarId) != names.end();
}

void judge(DecisionRegret& judged, std::string_view named) {
  const DecisionRecord& decision = judged.decision;
  const CandidateRecord* best = nullptr;
  for (const CandidateRecord& other : decision.candidates)
    if (other.device != decision.device && counts(other, named) &&
        (best == nullptr || *other.added_us < *best->added_us))
      best = &other;
  const CandidateRecord* chosen = decision.find(decision.device);
  if (best == nullptr || chosen == nullptr || judged.actual.times == 0) return;
  judged.best_other = best->device;
  judged.regret_us = std::max(0.0, judged.actual.mean_us - chosen->compute_us - *best->added_us);
}

std::string describe(const Actual& actual) {
  return fmt::format("took {} ({} .. {}, {} time{})", in_time(actual.mean_us), in_time(actual.least_us),
                     in_time(actual.most_us), actual.times, actual.times == 1 ? "" : "s");
}

}  // namespace

void visit_fields(field_json::FieldsOf<Actual> auto& actual, const auto& visit) {
  visit("times", actual.times);
  visit("mean_us", actual.mean_us);
  visit("least_us", actual.least_us);
  visit("most_us", actual.most_us);
}

void visit_fields(field_json::FieldsOf<DecisionRegret> auto& judged, const auto& visit) {
  visit_fields(judged.decision, visit);
  visit("actual", judged.actual);
  visit("regret_us", judged.regret_us);
  visit("best_other", judged.best_other);
}

void Actual::add(double us) {
  least_us = times == 0 ? us : std::min(least_us, us);
  most_us = std::max(most_us, us);
  ++times;
  mean_us += (us - mean_us) / static_cast<double>(times);
}

double DecisionRegret::predicted_us() const {
  const CandidateRecord* chosen = decision.find(decision.device);
  return chosen == nullptr ? 0 : chosen->compute_us;
}

double PlanRegret::regret_us() const {
  std::map<std::uint32_t, double> of_groups;
  for (const DecisionRegret& judged : decisions) {
    double& most = of_groups[judged.decision.group];
    most = std::max(most, judged.regret_us);
  }
  double sum_us = 0;
  for (const auto& [group, us] : of_groups) sum_us += us;
  return std::max(sum_us, regret_of_hand_us());
}

double PlanRegret::regret_of_hand_us() const {
  if (actual.times == 0 || !plan.measured || plan.best_us >= plan.predicted_us) return 0;
  return std::max(0.0, actual.mean_us - plan.best_us);
}

std::string PlanRegret::title() const {
  if (const std::uint32_t tokens = plan.rows_of("tokens"); tokens != 0)
    return fmt::format("a step of {} token{}", tokens, tokens == 1 ? "" : "s");
  std::string title = "a graph of";
  for (const InputRecord& input : plan.inputs)
    title += fmt::format(" {} {}[{}]", input.name, input.dtype, fmt::join(input.shape, ","));
  return title;
}

Result<std::vector<PlanRegret>> regrets_of(const trace::Recording& recording, std::string_view named) {
  std::vector<PlanRegret> plans;
  const auto attached = recording.attachments.find(trace::kPlans);
  if (attached == recording.attachments.end()) return plans;
  std::map<std::pair<std::uint32_t, std::string>, Actual> ops;
  std::map<std::uint32_t, Actual> runs;
  std::map<std::uint32_t, Actual> slowed_down;
  for (const trace::ExecutionEvent& event : recording.events) {
    if (event.failed) continue;
    if (event.kind == Kind::op)
      ops[{event.plan, recording.text_of(event.what)}].add(trace::us_of(event.duration_ns));
    else if (event.kind == Kind::run)
      (event.predicted_us > 0 ? runs : slowed_down)[event.plan].add(trace::us_of(event.duration_ns));
  }
  for (const std::string& text : attached->second) {
    PlanRegret& judged = plans.emplace_back();
    judged.number = static_cast<std::uint32_t>(plans.size());
    if (!field_json::from_json(parse_json(text), judged.plan))
      return fail(Code::invalid, fmt::format("plan {} of the trace is damaged or from another version of shunt; "
                                             "record the trace again",
                                             judged.number));
    judged.actual = (runs.contains(judged.number) ? runs : slowed_down)[judged.number];
    for (DecisionRecord& decision : judged.plan.units) {
      const Actual& actual = ops[{judged.number, name_of(decision)}];
      judge(judged.decisions.emplace_back(std::move(decision), actual), named);
    }
    judged.plan.units.clear();
  }
  return plans;
}

std::string to_text(const PlanRegret& plan) {
  std::string text =
      fmt::format("plan {}, {}: predicted {}", plan.number, plan.title(), in_time(plan.plan.predicted_us));
  if (plan.actual.times > 0) text += fmt::format(", {}", describe(plan.actual));
  text += fmt::format("; regret {}\n", in_time(plan.regret_us()));
  for (const DecisionRegret& judged : plan.decisions) {
    const DecisionRecord& decision = judged.decision;
    text += fmt::format("  {:<28} {} on {}: {}", decision.nodes.empty() ? "" : decision.nodes.back(), decision.call,
                        decision.device, decision.reason);
    if (judged.actual.times > 0)
      text += fmt::format("; predicted {}, {}", in_time(judged.predicted_us()), describe(judged.actual));
    if (judged.regret_us > 0)
      text += fmt::format("; regret {} against {}", in_time(judged.regret_us), judged.best_other);
    text += '\n';
    for (const CandidateRecord& candidate : decision.candidates) text += fmt::format("    {}\n", describe(candidate));
  }
  return text;
}

std::string to_json(const PlanRegret& plan) {
  Json json = {{"number", plan.number},
               {"title", plan.title()},
               {"predicted_us", plan.plan.predicted_us},
               {"best_us", plan.plan.best_us},
               {"measured", plan.plan.measured},
               {"inputs", field_json::json_of(plan.plan.inputs)},
               {"actual", field_json::json_of(plan.actual)},
               {"regret_us", plan.regret_us()},
               {"units", field_json::json_of(plan.decisions)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace shunt
