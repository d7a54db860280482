#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "base/json.h"
#include "base/units.h"
#include "ops/op.h"
#include "plan/plan.h"
#include "plan/record.h"

namespace shunt {
namespace {

std::string describe(const Plan& plan, const Graph& graph, const Step& step) {
  if (step.kind == Step::Kind::transfer)
    return fmt::format("copy {} ({}) from {} to {}{}", graph.tensor(step.transfer.tensor).name,
                       in_units(step.transfer.bytes), plan.devices[step.transfer.from].id,
                       plan.devices[step.transfer.to].id,
                       step.transfer.stays ? ", if others used its memory since the last run" : "");
  return fmt::format("{} ops on {}", step.unit_count, plan.devices[step.device].id);
}

CandidateRecord record_of(const Plan& plan, const Candidate& candidate) {
  return {.device = plan.devices[candidate.device].id,
          .reason = std::string(name_of(candidate.reason)),
          .detail = candidate.detail,
          .compute_us = candidate.compute_us,
          .uncertainty_us = candidate.uncertainty_us,
          .measured = candidate.measured,
          .arithmetic = std::string(info_of(candidate.arithmetic).name),
          .kernel = candidate.kernel,
          .kernel_measured = candidate.kernel_measured,
          .added_us = candidate.added_us};
}

DecisionRecord record_of(const Plan& plan, const Graph& graph, std::size_t index) {
  const Unit& unit = plan.units[index];
  const Decision& decision = plan.decisions[index];
  DecisionRecord record{.op = std::string(name_of(unit.op)),
                        .call = to_string(UnitCall(graph, unit).call()),
                        .nodes = {},
                        .device = plan.devices[decision.device].id,
                        .reason = std::string(name_of(decision.reason)),
                        .group = decision.group,
                        .candidates = {}};
  for (const NodeId node : unit.nodes) record.nodes.push_back(graph.nodes()[node].name);
  for (const Candidate& candidate : decision.candidates) record.candidates.push_back(record_of(plan, candidate));
  for (const Quarantined& device : plan.quarantined)
    record.candidates.push_back(
        {.device = device.id, .reason = std::string(name_of(Reason::quarantined)), .detail = device.why});
  return record;
}

PlanRecord record_of(const Plan& plan, const Graph& graph) {
  PlanRecord record{.predicted_us = plan.predicted_us,
                    .best_us = plan.best_us,
                    .measured = plan.is_measured,
                    .inputs = {},
                    .units = {}};
  for (const TensorInfo& tensor : graph.tensors()) {
    const Operand& operand = tensor.operand;
    if (operand.kind != TensorKind::input || tensor.producer != kNone) continue;
    record.inputs.push_back({tensor.name, std::string(name_of(operand.dtype)), {}});
    for (std::size_t axis = 0; axis < operand.shape.rank(); ++axis)
      record.inputs.back().shape.push_back(operand.shape[axis]);
  }
  for (std::size_t index = 0; index < plan.units.size(); ++index) record.units.push_back(record_of(plan, graph, index));
  return record;
}

Json to_json(const Plan& plan, const Graph& graph, const Residence& residence) {
  return json_object({{"tensor", graph.tensor(residence.tensor).name},
                      {"device", plan.devices[residence.device].id},
                      {"kind", name_of(residence.kind)},
                      {"offset", residence.offset},
                      {"bytes", residence.bytes},
                      {"first_unit", residence.first},
                      {"last_unit", residence.last}});
}

Json step_to_json(const Plan& plan, const Graph& graph, const Step& step) {
  Json json = json_object({{"kind", step.kind == Step::Kind::compute ? "compute" : "transfer"},
                           {"after", step.after},
                           {"start_us", step.start_us},
                           {"end_us", step.end_us}});
  if (step.kind == Step::Kind::compute) {
    json["device"] = plan.devices[step.device].id;
    json["first_unit"] = step.first_unit;
    json["units"] = step.unit_count;
  } else {
    json["tensor"] = graph.tensor(step.transfer.tensor).name;
    json["from"] = plan.devices[step.transfer.from].id;
    json["to"] = plan.devices[step.transfer.to].id;
    json["bytes"] = step.transfer.bytes;
    json["stays"] = step.transfer.stays;
  }
  return json;
}

}  // namespace

std::string doubt_in_words(const Plan& plan, const Graph& graph) {
  if (!plan.is_measured) return " (from priors; run shunt calibrate to measure)";
  const auto is_measured = [](const Decision& decision) { return decision.candidates[decision.device].measured; };
  if (std::ranges::all_of(plan.decisions, is_measured)) return "";
  return fmt::format(" (some ops are unlike those measured; run shunt calibrate MODEL --numerics {} to measure them)",
                     name_of(graph.numerics()));
}

std::string to_text(const OtherApi& api) {
  const std::string what = fmt::format("{} rather than {}", api.used, api.other);
  if (api.other_us == 0) return fmt::format("{}, which cannot do it: {}", what, api.why);
  std::string times =
      fmt::format("{}: predicted {} instead of {} for {}", what, in_time(api.used_us), in_time(api.other_us), api.work);
  if (api.other_us >= api.used_us) return times;
  return fmt::format("{}, but {} was not measured, and priors must promise half the time", times, api.other);
}

std::string to_text(const Plan& plan, const Graph& graph, bool explain) {
  std::string text = fmt::format(
      "predicted: {}{}{}{}\n", in_time(plan.predicted_us),
      plan.memory_wait_us > 0 ? fmt::format(", {} of that waiting for memory in use", in_time(plan.memory_wait_us))
                              : "",
      plan.bound_us > 0 ? fmt::format(", at least {} in any placement", in_time(plan.bound_us)) : "",
      doubt_in_words(plan, graph));
  for (const Quarantined& device : plan.quarantined)
    text += fmt::format("{} is quarantined after a failure: {}\n", device.id, device.why);
  for (const OtherApi& api : plan.other_apis) text += to_text(api) + '\n';
  std::set<std::string_view> split;
  for (const TensorInfo& tensor : graph.tensors())
    if (!tensor.rows_of.empty()) split.insert(tensor.rows_of);
  if (!split.empty()) text += fmt::format("weights split by rows among devices: {}\n", split.size());
  for (const MemoryUse& use : plan.memory)
    text += fmt::format("memory \"{}\": {} = {} weights + {} state + {} values + {} scratch\n", use.pool,
                        in_units(use.total()), in_units(use.weight_bytes), in_units(use.state_bytes),
                        in_units(use.value_bytes), in_units(use.scratch_bytes));
  for (std::size_t number = 0; number < plan.steps.size(); ++number) {
    const Step& step = plan.steps[number];
    text += fmt::format("step {}: {}, {} .. {}\n", number, describe(plan, graph, step), in_time(step.start_us),
                        in_time(step.end_us));
    if (step.kind == Step::Kind::transfer) continue;
    for (std::uint32_t index = step.first_unit; index < step.first_unit + step.unit_count; ++index) {
      const Unit& unit = plan.units[index];
      const Decision& decision = plan.decisions[index];
      const Candidate& chosen = decision.candidates[decision.device];
      text += fmt::format("  {:<28} {} on {}{}{}: {}\n", graph.nodes()[unit.nodes.back()].name,
                          to_string(UnitCall(graph, unit).call()), plan.devices[decision.device].id,
                          words_of(chosen.arithmetic), kernel_in_words(chosen.kernel, chosen.kernel_measured),
                          name_of(decision.reason));
      if (!explain) continue;
      for (const CandidateRecord& candidate : record_of(plan, graph, index).candidates)
        text += fmt::format("    {}\n", describe(candidate));
    }
  }
  return text;
}

std::string to_json(const Plan& plan, const Graph& graph) {
  Json json = field_json::json_of(record_of(plan, graph));
  json["numerics"] = name_of(graph.numerics());
  json["bound_us"] = plan.bound_us;
  json["memory_wait_us"] = plan.memory_wait_us;
  for (const char* list : {"other_apis", "devices", "memory", "residences", "steps"}) json[list] = Json::array();
  for (const OtherApi& api : plan.other_apis)
    json["other_apis"].push_back(json_object({{"used", api.used},
                                              {"other", api.other},
                                              {"work", api.work},
                                              {"used_us", api.used_us},
                                              {"other_us", api.other_us},
                                              {"why", api.why}}));
  for (const Plan::PlannedDevice& device : plan.devices)
    json["devices"].push_back(json_object({{"id", device.id},
                                           {"memory_pool", device.pool},
                                           {"compute_resource", device.resource},
                                           {"alignment_bytes", device.alignment_bytes},
                                           {"arena_bytes", device.arena_bytes},
                                           {"scratch_bytes", device.scratch_bytes}}));
  for (const MemoryUse& use : plan.memory)
    json["memory"].push_back(json_object({{"pool", use.pool},
                                          {"weight_bytes", use.weight_bytes},
                                          {"state_bytes", use.state_bytes},
                                          {"value_bytes", use.value_bytes},
                                          {"scratch_bytes", use.scratch_bytes},
                                          {"total_bytes", use.total()}}));
  for (const Residence& residence : plan.residences) json["residences"].push_back(to_json(plan, graph, residence));
  for (const Step& step : plan.steps) json["steps"].push_back(step_to_json(plan, graph, step));
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);  // names may be any bytes
}

}  // namespace shunt
