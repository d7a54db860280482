#include "report_verdict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/parse_json.h"
#include "base/units.h"

namespace shunt::cli {
namespace {

using trace::ExecutionEvent;
using trace::Kind;
using trace::Recording;
using trace::Tally;

constexpr std::string_view kTokens = "tokens";

// "96 % of the work ran on gpu:0, 4 % on cpu"
std::string what_ran_where(const trace::ExecutionSummary& summary) {
  double all = 0;
  for (const Tally& device : summary.devices) all += device.actual_us;
  if (all <= 0) return "nothing ran";
  std::vector<std::string> shares;
  for (const Tally& device : summary.devices)
    shares.push_back(fmt::format("{}{} on {}", in_percent(device.actual_us / all),
                                 shares.empty() ? " of the work ran" : "", device.name));
  return fmt::format("{}", fmt::join(shares, ", "));
}

std::string what_was_lost(const std::vector<std::string>& failures) {
  if (failures.empty()) return "nothing failed";
  return fmt::format("{} (below)", in_words(failures.size(), "failure"));
}

// The regret of all runs of all plans.
double regret_us(const std::vector<PlanRegret>& plans) {
  double sum = 0;
  for (const PlanRegret& plan : plans) sum += plan.regret_us() * static_cast<double>(plan.actual.times);
  return sum;
}

// Names the op and the device that would have saved most.
std::string largest_regret(const std::vector<PlanRegret>& plans) {
  std::map<std::pair<std::string, std::string>, double> regrets;
  for (const PlanRegret& plan : plans)
    for (const DecisionRegret& judged : plan.decisions)
      if (judged.regret_us > 0)
        regrets[{judged.decision.op, judged.best_other}] += judged.regret_us * static_cast<double>(plan.actual.times);
  const auto most = std::ranges::max_element(regrets, {}, [](const auto& each) { return each.second; });
  return most == regrets.end() ? "" : fmt::format("most by running {} on {}", most->first.first, most->first.second);
}

std::string what_would_be_better(const trace::ExecutionSummary& summary, const std::vector<PlanRegret>& plans) {
  constexpr double kWorth = 0.05;  // of the time of all runs
  if (plans.empty()) return "the trace has no plans to judge";
  const bool measured = std::ranges::all_of(plans, [](const PlanRegret& plan) { return plan.plan.measured; });
  const std::string advice = measured ? "" : "; run shunt calibrate to measure these devices instead of using priors";
  // A placement by hand has no predictions for other devices.
  const auto is_alone = [](const DecisionRegret& judged) { return judged.best_other.empty(); };
  if (std::ranges::all_of(plans, [&](const PlanRegret& plan) {
        return plan.regret_of_hand_us() == 0 && std::ranges::all_of(plan.decisions, is_alone);
      }))
    return "no other placement was predicted for comparison" + advice;
  const double regret = regret_us(plans);
  const double whole = summary.runs.actual_us;
  if (whole <= 0 || regret < kWorth * whole) return "no other placement is predicted to be much faster" + advice;
  const std::string most = largest_regret(plans);
  return fmt::format("other devices were predicted to save {} ({}), {}{}", in_time(regret), in_percent(regret / whole),
                     most.empty() ? "with --strategy auto" : most, advice);
}

std::vector<std::string> failures_of(const Recording& recording, const trace::ExecutionSummary& summary) {
  // The notices of a device pool.
  std::vector<std::string> failures;
  std::ranges::copy_if(summary.notices, std::back_inserter(failures), [](const std::string& notice) {
    return notice.contains(" failed, ") || notice.ends_with("; it gets less to do");
  });
  // Failed events of devices that no notice mentions.
  std::map<std::string, std::uint64_t> counts;
  for (const ExecutionEvent& event : recording.events)
    if (event.failed && event.kind != Kind::run)
      ++counts[fmt::format("{}: {} ({})", recording.text_of(event.device), recording.text_of(event.what),
                           trace::outcome_of(event))];
  for (const auto& [text, times] : counts) {
    const std::string device = text.substr(0, text.find(": "));
    const auto tells = [&](const std::string& notice) { return notice.starts_with(device); };
    if (std::ranges::none_of(failures, tells))
      failures.push_back(times == 1 ? text : fmt::format("{}, {} times", text, times));
  }
  return failures;
}

// Takes the largest plan, because the plans of a session share their memory.
std::vector<MemoryOfDevices> memory_of(const Recording& recording) {
  std::vector<std::pair<std::string, MemoryOfDevices>> pools;
  const auto attached = recording.attachments.find(trace::kPlans);
  if (attached == recording.attachments.end()) return {};
  for (const std::string& text : attached->second) {
    const Json plan = parse_json(text);
    if (!plan.is_object() || !plan.contains("memory") || !plan["memory"].is_array()) continue;
    for (const Json& use : plan["memory"]) {
      if (!use.is_object()) continue;
      const auto number = [&](const char* key) {
        return use.contains(key) && use[key].is_number_unsigned() ? use[key].get<std::uint64_t>() : 0;
      };
      const std::string pool = use.contains("pool") && use["pool"].is_string() ? use["pool"].get<std::string>() : "";
      auto place = std::ranges::find(pools, pool, &std::pair<std::string, MemoryOfDevices>::first);
      if (place == pools.end()) {
        std::vector<std::string> ids;
        if (plan.contains("devices") && plan["devices"].is_array())
          for (const Json& device : plan["devices"])
            if (device.is_object() && device.value("memory_pool", Json()) == Json(pool) && device.contains("id") &&
                device["id"].is_string())
              ids.push_back(device["id"].get<std::string>());
        pools.push_back({pool, {.devices = ids.empty() ? pool : fmt::format("{}", fmt::join(ids, ", "))}});
        place = pools.end() - 1;
      }
      MemoryOfDevices& most = place->second;
      most.weight_bytes = std::max(most.weight_bytes, number("weight_bytes"));
      most.state_bytes = std::max(most.state_bytes, number("state_bytes"));
      most.value_bytes = std::max(most.value_bytes, number("value_bytes"));
      most.scratch_bytes = std::max(most.scratch_bytes, number("scratch_bytes"));
    }
  }
  std::vector<MemoryOfDevices> memory;
  for (auto& [pool, most] : pools) memory.push_back(std::move(most));
  return memory;
}

Latency latency_of(const Recording& recording, const std::vector<PlanRegret>& plans) {
  std::vector<const ExecutionEvent*> runs;
  std::uint64_t first_ns = ~std::uint64_t{0};
  for (const ExecutionEvent& event : recording.events) {
    first_ns = std::min(first_ns, event.start_ns);
    if (event.kind == Kind::run && !event.failed) runs.push_back(&event);
  }
  std::ranges::sort(runs, {}, [](const ExecutionEvent* run) { return run->start_ns; });
  const auto tokens_of = [&](const ExecutionEvent& run) {
    const auto plan = std::ranges::find(plans, run.plan, &PlanRegret::number);
    return plan == plans.end() ? 0U : plan->plan.rows_of(kTokens);
  };
  Latency latency;
  const ExecutionEvent* before = nullptr;
  bool in_prompt = true;  // the first step belongs to the prompt, even if it has one token
  for (const ExecutionEvent* run : runs) {
    const std::uint32_t tokens = tokens_of(*run);
    if (tokens == 0) return {};  // not a language model
    const std::uint64_t end_ns = run->start_ns + run->duration_ns;
    const bool of_prompt = tokens > 1 || before == nullptr;
    if (of_prompt && in_prompt)
      latency.first_token_us = trace::us_of(end_ns - first_ns);
    else
      in_prompt = false;
    if (!of_prompt) latency.token_us.push_back(trace::us_of(end_ns - (before->start_ns + before->duration_ns)));
    before = run;
  }
  if (recording.overwritten > 0) latency.first_token_us = 0;
  std::ranges::sort(latency.token_us);
  return latency;
}

}  // namespace

double Latency::percentile(double part) const {
  if (token_us.empty()) return 0;
  const double place = std::ceil(part * static_cast<double>(token_us.size())) - 1;
  return token_us[static_cast<std::size_t>(std::max(0.0, place))];
}

Verdict verdict_of(const Recording& recording, const trace::ExecutionSummary& summary,
                   const std::vector<PlanRegret>& plans) {
  Verdict verdict;
  verdict.failures = failures_of(recording, summary);
  verdict.sentence = fmt::format("{}; {}; {}.", what_ran_where(summary), what_was_lost(verdict.failures),
                                 what_would_be_better(summary, plans));
  verdict.memory = memory_of(recording);
  verdict.latency = latency_of(recording, plans);
  return verdict;
}

Json to_json(const Verdict& verdict) {
  Json json = {{"sentence", verdict.sentence},
               {"failures", verdict.failures},
               {"memory", Json::array()},
               {"first_token_us", verdict.latency.first_token_us},
               {"tokens", verdict.latency.token_us.size()},
               {"token_p50_us", verdict.latency.percentile(0.5)},
               {"token_p90_us", verdict.latency.percentile(0.9)},
               {"token_p99_us", verdict.latency.percentile(0.99)},
               {"token_most_us", verdict.latency.percentile(1)}};
  for (const MemoryOfDevices& memory : verdict.memory)
    json["memory"].push_back({{"devices", memory.devices},
                              {"weight_bytes", memory.weight_bytes},
                              {"state_bytes", memory.state_bytes},
                              {"value_bytes", memory.value_bytes},
                              {"scratch_bytes", memory.scratch_bytes},
                              {"total_bytes", memory.total()}});
  return json;
}

std::string to_text(const Verdict& verdict) {
  std::string text = verdict.sentence + "\n";
  const Latency& latency = verdict.latency;
  if (latency.first_token_us > 0) text += fmt::format("time to first token: {}\n", in_time(latency.first_token_us));
  if (!latency.token_us.empty())
    text += fmt::format("time per token: half within {}, 90 % within {}, 99 % within {}, all within {}\n",
                        in_time(latency.percentile(0.5)), in_time(latency.percentile(0.9)),
                        in_time(latency.percentile(0.99)), in_time(latency.percentile(1)));
  if (!verdict.memory.empty()) {
    Rows rows = {{"memory of", "sum", "weights", "state", "values", "scratch"}};
    for (const MemoryOfDevices& memory : verdict.memory)
      rows.push_back({memory.devices, in_units(memory.total()), in_units(memory.weight_bytes),
                      in_units(memory.state_bytes), in_units(memory.value_bytes), in_units(memory.scratch_bytes)});
    text += "\n" + in_columns(rows);
  }
  return text + "\n";
}

}  // namespace shunt::cli
