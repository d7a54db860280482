#include "origin.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "attached.h"
#include "base/field_json.h"
#include "devices/device.h"

namespace shunt::cli {

void visit_fields(field_json::FieldsOf<Origin::DeviceName> auto& device, const auto& visit) {
  visit("id", device.id);
  visit("name", device.name);
  visit("type", device.type);
  visit("is_host_cpu", device.is_host_cpu);
}

void visit_fields(field_json::FieldsOf<Origin> auto& origin, const auto& visit) {
  visit("command", origin.command);
  visit("version", origin.version);
  visit("model", origin.model);
  visit("machine", origin.machine);
  visit("devices", origin.devices);
  visit("named", origin.named);
  visit("threads", origin.threads);
  visit("budgets", origin.budgets);
  visit("shapes", origin.shapes);
  visit("context", origin.context);
  visit("sequences", origin.sequences);
  visit("batch", origin.batch);
  visit("fuse", origin.fuse);
  visit("cache_type", origin.cache_type);
  visit("strategy", origin.strategy);
  visit("numerics", origin.numerics);
  visit("margin", origin.margin);
}

void visit_fields(field_json::FieldsOf<Speeds> auto& speeds, const auto& visit) {
  visit("prompt_tokens", speeds.prompt_tokens);
  visit("prompt_tokens_per_s", speeds.prompt_tokens_per_s);
  visit("generated_tokens", speeds.generated_tokens);
  visit("generated_tokens_per_s", speeds.generated_tokens_per_s);
}

namespace {

constexpr std::string_view kOrigin = "origin";
constexpr std::string_view kSpeeds = "speeds";

std::string absolute(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path whole = std::filesystem::absolute(path, failed);
  return failed || path.empty() ? path : whole.lexically_normal().string();
}

Origin common_of(std::string_view command, const std::string& model, const Runtime& runtime,
                 const RuntimeOptions& options) {
  Origin origin;
  origin.command = command;
  origin.version = SHUNT_VERSION;
  origin.model = absolute(model);
  origin.machine = absolute(options.machine);
  origin.threads = options.threads;
  origin.budgets = options.budgets;
  origin.named = runtime.options().devices;
  for (const DeviceInfo& device : runtime.devices())
    origin.devices.push_back({device.id, device.name, std::string(name_of(device.type)), device.is_host_cpu()});
  return origin;
}

}  // namespace

Result<SessionOptions> Origin::session() const {
  SessionOptions options{.context = context, .max_sequences = sequences, .max_batch_tokens = batch, .fuse = fuse};
  SHUNT_TRY_ASSIGN(options.strategy, strategy_from_name(strategy));
  SHUNT_TRY_ASSIGN(options.numerics, numerics_from_name(numerics));
  if (!is_graph()) {
    SHUNT_TRY_ASSIGN(options.cache_dtype, dtype_from_name(cache_type));
  }
  if (!margin.empty()) options.margin = margin.front();
  return options;
}

RuntimeOptions Origin::runtime() const { return {.threads = threads, .machine = machine, .budgets = budgets}; }

Origin origin_of(std::string_view command, const std::string& model, const models::Session& session,
                 const Runtime& runtime, const RuntimeOptions& options) {
  const SessionOptions& asked = session.options();
  Origin origin = common_of(command, model, runtime, options);
  origin.context = session.context();
  origin.sequences = asked.max_sequences;
  origin.batch = asked.max_batch_tokens;
  origin.fuse = asked.fuse;
  origin.cache_type = name_of(asked.cache_dtype);
  origin.strategy = name_of(asked.strategy);
  origin.numerics = name_of(asked.numerics);
  if (asked.margin) origin.margin.push_back(*asked.margin);
  return origin;
}

Origin origin_of(std::string_view command, const std::string& model, const std::map<std::string, Shape>& shapes,
                 const ComputationOptions& asked, const Runtime& runtime, const RuntimeOptions& options) {
  Origin origin = common_of(command, model, runtime, options);
  for (const auto& [name, shape] : shapes) {
    std::vector<std::int64_t>& extents = origin.shapes[name];
    for (std::uint32_t axis = 0; axis < shape.rank(); ++axis) extents.push_back(shape[axis]);
  }
  origin.strategy = name_of(asked.strategy);
  origin.numerics = name_of(asked.numerics);
  if (asked.margin) origin.margin.push_back(*asked.margin);
  return origin;
}

Json to_json(const Origin& origin) { return field_json::json_of(origin); }
Json to_json(const Speeds& speeds) { return field_json::json_of(speeds); }

void attach(trace::Recorder& recorder, const Origin& origin) { attach_as(recorder, kOrigin, origin); }
void attach(trace::Recorder& recorder, const Speeds& speeds) { attach_as(recorder, kSpeeds, speeds); }

Result<Origin> origin_in(const trace::Recording& recording) {
  auto origin = find_attached<Origin>(recording, kOrigin);
  if (origin) return *std::move(origin);
  return fail(
      Code::invalid,
      "the trace does not say which model and options it comes from; record it again with this version of shunt "
      "and --trace of run, eval, bench model, bench hybrid or run-graph");
}

std::optional<Speeds> speeds_in(const trace::Recording& recording) { return find_attached<Speeds>(recording, kSpeeds); }

}  // namespace shunt::cli
