#include "answers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "devices/discovery/device_json.h"
#include "run/verify/support_record.h"

namespace shunt::cli {
namespace {

Json to_json(std::span<const models::ScoredToken> top) {
  Json json = Json::array();
  for (const models::ScoredToken& entry : top) json.push_back({{"id", entry.token}, {"logit", entry.logit}});
  return json;
}

Json to_json(std::span<const KnownFailure> rows) {
  Json json = Json::array();
  for (const KnownFailure& row : rows)
    json.push_back({{"op", name_of(row.op)}, {"device", row.device}, {"dtype", row.dtype}, {"reason", row.reason}});
  return json;
}

// Null without a likelihood.
Json perplexity_of(std::optional<double> mean_nll) { return mean_nll ? Json(std::exp(*mean_nll)) : Json(); }

}  // namespace

std::vector<DeviceInfo> devices_of(std::span<const ApiReport> found) {
  std::vector<DeviceInfo> devices;
  for (const ApiReport& report : found) devices.insert(devices.end(), report.devices.begin(), report.devices.end());
  return devices;
}

std::optional<std::uint64_t> available_to(const DeviceInfo& device, const FreeMemory& free) {
  const auto found = free.find(device.memory_resource);
  if (found == free.end()) return std::nullopt;
  return device.memory_bytes == 0 ? found->second : std::min(found->second, device.memory_bytes);
}

Json to_json(std::span<const ApiReport> found) {
  const FreeMemory free = free_memory(devices_of(found));
  Json json = {{"devices", Json::array()}, {"absent", Json::array()}, {"apis", Json::array()}};
  for (const ApiReport& report : found) {
    json["apis"].push_back({{"api", report.api},
                            {"stage", name_of(report.stage)},
                            {"hint", report.hint},
                            {"start_ms", report.start_ms},
                            {"known", report.is_known}});
    for (const DeviceInfo& device : report.devices) {
      Json& described = json["devices"].emplace_back(shunt::to_json(device));
      const auto available = available_to(device, free);
      described["memory_available_bytes"] = available ? Json(*available) : Json();
    }
    if (report.devices.empty())
      json["absent"].push_back({{"api", report.api}, {"stage", name_of(report.stage)}, {"reason", report.reason}});
  }
  return json;
}

Json to_json(const Generation& generation, const GenerationContext& context) {
  return {{"prompt_tokens", context.prompt},
          {"tokens", generation.tokens},
          {"text", generation.text},
          {"stop", name_of(generation.stop)},
          {"seed", context.seed},
          {"context", context.context},
          {"timings",
           {{"load_s", context.load_s},
            {"prompt_s", generation.prompt_s},
            {"generate_s", generation.generate_s},
            {"prompt_tokens_per_s", rate(generation.prompt_tokens, generation.prompt_s)},
            {"generate_tokens_per_s", rate(generation.steps, generation.generate_s)}}},
          {"devices", context.devices}};
}

double rate(std::size_t count, double seconds) { return seconds > 0 ? static_cast<double>(count) / seconds : 0; }

std::vector<std::string> working_devices(std::span<const Plan* const> plans) {
  std::vector<std::string> ids;
  for (const Plan* plan : plans)
    for (std::size_t device = 0; device < plan->devices.size(); ++device)
      if (std::ranges::find(plan->decisions, device, &Decision::device) != plan->decisions.end() &&
          std::ranges::find(ids, plan->devices[device].id) == ids.end())
        ids.push_back(plan->devices[device].id);
  return ids;
}

Json to_json(const models::Agreement& agreement) {
  return {{"numerics", name_of(agreement.numerics)},
          {"tokens", agreement.tokens},
          {"nmse", agreement.nmse},
          {"mean_kl", agreement.mean_kl},
          {"largest_kl", agreement.largest_kl},
          {"perplexity", perplexity_of(agreement.mean_nll)},
          {"exact_perplexity", perplexity_of(agreement.exact_mean_nll)},
          {"same_best", agreement.same_best},
          {"decided", agreement.decided},
          {"same", agreement.same},
          {"ok", agreement.ok()}};
}

Json to_json(const models::Evaluation& evaluation, bool every) {
  Json json = {{"tokens", evaluation.tokens},
               {"top", Json::array()},
               {"mean_nll", nullptr},
               {"perplexity", perplexity_of(evaluation.mean_nll)}};
  if (every)
    for (const std::vector<models::ScoredToken>& top : evaluation.tops) json["top"].push_back(to_json(top));
  else
    json["top"] = to_json(evaluation.tops.back());
  if (evaluation.mean_nll) json["mean_nll"] = *evaluation.mean_nll;
  return json;
}

Json to_json(const ConformanceReport& report, const ConformanceOptions& options, std::span<Device* const> devices) {
  Json json = {{"ok", report.ok()},
               {"seed", options.seed},
               {"full", options.full},
               {"devices", Json::array()},
               {"tallies", Json::array()},
               {"failures", Json::array()},
               {"known_failures", to_json(report.known)},
               {"unexpected_passes", to_json(report.unexpected_passes)}};
  for (const Device* device : devices) json["devices"].push_back(shunt::to_json(support_record(report, *device)));
  for (const ConformanceTally& tally : report.tallies)
    json["tallies"].push_back({{"op", name_of(tally.op)},
                               {"device", tally.device},
                               {"sizes", sample_sizes()[static_cast<std::size_t>(tally.sizes)].name},
                               {"dtypes", tally.dtypes},
                               {"passed", tally.passed},
                               {"declined", tally.declined},
                               {"failed", tally.failed},
                               {"largest_error", tally.largest_error},
                               {"reason", tally.reason}});
  for (const ConformanceFailure& failure : report.failures)
    json["failures"].push_back({{"op", name_of(failure.op)},
                                {"device", failure.device},
                                {"case", to_string(failure.which)},
                                {"call", failure.call},
                                {"what", failure.words},
                                {"again", again(failure, options.seed)}});
  return json;
}

std::string again(const ConformanceFailure& failure, std::uint64_t seed) {
  return fmt::format("shunt verify {} --case {} --seed {} --devices {}", name_of(failure.op), to_string(failure.which),
                     seed, failure.device);
}

}  // namespace shunt::cli
