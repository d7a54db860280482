#include "plan_summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "ops/op.h"
#include "plan/plan.h"

namespace shunt::cli {
namespace {

// The device or link that is busy for the longest part of a step.
struct Bottleneck {
  std::string name;
  double share = 0;     // of the step's time
  std::string largest;  // for a device: the op that takes most of its time
  double largest_share = 0;
};

double part_of(double part, double whole) { return whole > 0 ? part / whole : 0; }

std::vector<double> busy_us(const Plan& plan) {
  std::vector<double> busy(plan.devices.size(), 0);
  for (const Step& step : plan.steps)
    if (step.kind == Step::Kind::compute) busy[step.device] += step.end_us - step.start_us;
  return busy;
}

Bottleneck bottleneck_of(const Plan& plan) {
  Bottleneck found;
  const std::vector<double> busy = busy_us(plan);
  const auto most = std::ranges::max_element(busy);
  const auto device = static_cast<std::uint32_t>(most - busy.begin());
  found.name = plan.devices[device].id;
  found.share = part_of(*most, plan.predicted_us);
  std::map<std::string_view, double> ops;
  double all = 0;
  for (std::size_t unit = 0; unit < plan.units.size(); ++unit) {
    const Decision& decision = plan.decisions[unit];
    if (decision.device != device) continue;
    const double us = decision.candidates[device].compute_us;
    ops[name_of(plan.units[unit].op)] += us;
    all += us;
  }
  for (const auto& [op, us] : ops)
    if (part_of(us, all) > found.largest_share) {
      found.largest = op;
      found.largest_share = part_of(us, all);
    }
  std::map<std::pair<std::uint32_t, std::uint32_t>, double> links;
  for (const Step& step : plan.steps)
    if (step.kind == Step::Kind::transfer) links[{step.transfer.from, step.transfer.to}] += step.end_us - step.start_us;
  for (const auto& [ends, us] : links)
    if (part_of(us, plan.predicted_us) > found.share)
      found = {.name = fmt::format("copies from {} to {}", plan.devices[ends.first].id, plan.devices[ends.second].id),
               .share = part_of(us, plan.predicted_us),
               .largest = {}};
  return found;
}

std::optional<std::uint32_t> layer_of(std::string_view node) {
  constexpr std::string_view kPrefix = "blk.";
  if (!node.starts_with(kPrefix)) return std::nullopt;
  std::uint32_t layer = 0;
  const auto [end, error] = std::from_chars(node.data() + kPrefix.size(), node.data() + node.size(), layer);
  if (error != std::errc()) return std::nullopt;
  return layer;
}

// "0-3, 5"
std::string ranges_of(const std::set<std::uint32_t>& numbers) {
  std::vector<std::string> ranges;
  for (auto at = numbers.begin(); at != numbers.end();) {
    const std::uint32_t first = *at;
    std::uint32_t last = first;
    for (++at; at != numbers.end() && *at == last + 1; ++at) last = *at;
    ranges.push_back(first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last));
  }
  return fmt::format("{}", fmt::join(ranges, ", "));
}

// A device's share of a step: whole layers, parts of layers, and ops outside of layers.
struct Work {
  std::set<std::uint32_t> whole;
  std::set<std::uint32_t> parts;
  std::vector<std::string> others;
};

std::vector<Work> work_of(const PlannedGraph& step) {
  std::vector<Work> work(step.plan.devices.size());
  std::map<std::uint32_t, std::set<std::uint32_t>> devices_of;  // of each layer
  for (std::size_t unit = 0; unit < step.plan.units.size(); ++unit) {
    const std::string& node = step.graph.nodes()[step.plan.units[unit].nodes.back()].name;
    const std::uint32_t device = step.plan.decisions[unit].device;
    if (const auto layer = layer_of(node))
      devices_of[*layer].insert(device);
    else
      work[device].others.push_back(node);
  }
  for (const auto& [layer, devices] : devices_of)
    for (const std::uint32_t device : devices)
      (devices.size() == 1 ? work[device].whole : work[device].parts).insert(layer);
  return work;
}

std::string describe(const Work& work) {
  constexpr std::size_t kMostOthers = 3;
  std::vector<std::string> words;
  const auto layers = [&](const std::set<std::uint32_t>& numbers, std::string_view before) {
    if (!numbers.empty())
      words.push_back(fmt::format("{}layer{} {}", before, numbers.size() == 1 ? "" : "s", ranges_of(numbers)));
  };
  layers(work.whole, "");
  layers(work.parts, "parts of ");
  const std::size_t shown = work.others.size() > kMostOthers ? kMostOthers - 1 : work.others.size();
  for (std::size_t i = 0; i < shown; ++i) words.push_back(work.others[i]);
  if (shown < work.others.size()) words.push_back(in_words(work.others.size() - shown, "other op"));
  return words.empty() ? "nothing" : fmt::format("{}", fmt::join(words, "; "));
}

// The peak bytes of each memory pool over the two steps. Their scratch memory adds up.
std::map<std::string, std::uint64_t, std::less<>> memory_of(const PlannedSteps& steps) {
  std::map<std::string, std::uint64_t, std::less<>> bytes;
  const std::vector<MemoryUse> others = memory_by_place(steps.prompt.plan);
  for (const MemoryUse& one : memory_by_place(steps.generation.plan)) {
    MemoryUse most = one;
    for (const MemoryUse& other : others) {
      if (other.pool != one.pool) continue;
      most.weight_bytes = std::max(most.weight_bytes, other.weight_bytes);
      most.state_bytes = std::max(most.state_bytes, other.state_bytes);
      most.value_bytes = std::max(most.value_bytes, other.value_bytes);
      most.scratch_bytes += other.scratch_bytes;
    }
    bytes[one.pool] = most.total();
  }
  return bytes;
}

// If there are many devices, lists only those that run something.
std::string devices_table(const PlannedSteps& steps) {
  constexpr std::size_t kManyDevices = 10;
  const Plan& plan = steps.generation.plan;
  const std::vector<Work> work = work_of(steps.generation);
  const std::vector<double> generation = busy_us(plan);
  const std::vector<double> prompt = busy_us(steps.prompt.plan);
  const auto memory = memory_of(steps);
  Rows rows = {{"device", "of a token", "of the prompt", "memory", "runs, in a step of generation"}};
  std::map<std::string_view, std::string_view> first_of;  // the device whose row shows the bytes of a pool
  std::size_t idle = 0;
  for (std::size_t device = 0; device < plan.devices.size(); ++device) {
    const Plan::PlannedDevice& one = plan.devices[device];
    if (plan.devices.size() > kManyDevices && generation[device] + prompt[device] <= 0) {
      ++idle;
      continue;
    }
    const auto [place, is_first] = first_of.emplace(one.pool, one.id);
    const auto bytes = memory.find(one.pool);
    rows.push_back(
        {one.id, in_percent(part_of(generation[device], plan.predicted_us)),
         in_percent(part_of(prompt[device], steps.prompt.plan.predicted_us)),
         is_first ? in_units(bytes == memory.end() ? 0 : bytes->second) : fmt::format("with {}", place->second),
         describe(work[device])});
  }
  return in_columns(rows) + (idle == 0 ? "" : fmt::format("{} more run nothing\n", in_words(idle, "device")));
}

double tokens_per_s(std::uint32_t tokens, const Plan& plan) { return part_of(tokens * 1e6, plan.predicted_us); }

std::string speed_line(std::string_view what, std::uint32_t tokens, const PlannedGraph& step) {
  const Plan& plan = step.plan;
  return fmt::format("{:<11} {:.1f} tokens/s, {} in {}{}{}\n", what, tokens_per_s(tokens, plan),
                     in_words(tokens, "token"), in_time(plan.predicted_us),
                     plan.bound_us > 0 ? fmt::format(", at least {} in any placement", in_time(plan.bound_us)) : "",
                     doubt_in_words(plan, step.graph));
}

}  // namespace

std::vector<MemoryUse> memory_by_place(const Plan& plan) {
  std::vector<MemoryUse> memory = plan.memory;
  for (const Step& step : plan.steps) {
    if (!step.transfer.stays) continue;
    MemoryUse& use = *std::ranges::find(memory, plan.devices[step.transfer.to].pool, &MemoryUse::pool);
    use.weight_bytes -= step.transfer.bytes;
    use.value_bytes += step.transfer.bytes;
  }
  return memory;
}

std::string summary_of(const PlannedSteps& steps) {
  const Plan& plan = steps.generation.plan;
  const Bottleneck bottleneck = bottleneck_of(plan);
  std::string text =
      speed_line("prompt", steps.prompt_tokens, steps.prompt) + speed_line("generation", 1, steps.generation);
  text +=
      fmt::format("bottleneck  {}, busy for {} of a token's time{}\n", bottleneck.name, in_percent(bottleneck.share),
                  bottleneck.largest.empty()
                      ? ""
                      : fmt::format("; {} takes {} of that", bottleneck.largest, in_percent(bottleneck.largest_share)));
  for (const Quarantined& device : plan.quarantined)
    text += fmt::format("quarantined {}, after a failure: {}\n", device.id, device.why);
  return fmt::format("{}\n{}", text, devices_table(steps));
}

Json to_json(const PlannedSteps& steps) {
  const Bottleneck bottleneck = bottleneck_of(steps.generation.plan);
  return {{"prompt_tokens_per_s", tokens_per_s(steps.prompt_tokens, steps.prompt.plan)},
          {"generation_tokens_per_s", tokens_per_s(1, steps.generation.plan)},
          {"bottleneck",
           {{"name", bottleneck.name},
            {"share", bottleneck.share},
            {"op", bottleneck.largest},
            {"op_share", bottleneck.largest_share}}}};
}

}  // namespace shunt::cli
