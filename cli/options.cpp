#include "options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <random>

#include "command.h"
#include "models/mixture.h"
#include "trace/chrome.h"

namespace shunt::cli {
namespace {

// The dtypes that a cache can have, by name.
std::map<std::string, DType> cache_dtypes() {
  std::map<std::string, DType> names;
  for (std::size_t index = 0; index < dtypes().size(); ++index)
    if (dtypes()[index].kind == DTypeKind::floating) names.emplace(dtypes()[index].name, static_cast<DType>(index));
  return names;
}

}  // namespace

void add_model(CLI::App& app, std::string& path) {
  app.add_option("MODEL", path, "GGUF file; of a split model any part")->required();
}

void add_json(CLI::App& app, bool& json) { app.add_flag("--json", json, "Print the result as JSON, on stdout"); }

void add_threads(CLI::App& app, std::uint32_t& threads) {
  app.add_option("--threads", threads, "Threads of the CPU (default: one per core)")
      ->type_name("N")
      ->check(CLI::Range(1U, 1024U));
}

std::string with_types(std::string_view what) {
  std::vector<std::string_view> names;
  for (const models::Mixture& mixture : models::mixtures()) names.push_back(mixture.name);
  return fmt::format("{}: {}", what, fmt::join(names, ", "));
}

void add_runtime(CLI::App& app, RuntimeOptions& options) {
  add_threads(app, options.threads);
  app.add_option("--devices", options.devices,
                 "Devices that may be used, best liked first, such as cpu:simd,cpu:scalar (default: all)")
      ->type_name("LIST");
}

Result<std::unique_ptr<Runtime>> open_runtime(const RuntimeOptions& options) {
  auto runtime = Runtime::create(options);
  if (!runtime && runtime.error().code == Code::invalid) refuse("--devices: " + runtime.error().message);
  return runtime;
}

void add_session(CLI::App& app, models::SessionOptions& options) {
  app.add_option("-c,--context", options.context,
                 fmt::format("Tokens of context (default: the model's, at most {}, at most what fits in memory)",
                             models::kDefaultContext))
      ->type_name("N")
      ->check(CLI::Range(1U, 1U << 24U));
  app.add_option("--cache-type", options.cache_dtype, "Dtype of the cache (default: F16)")
      ->type_name("TYPE")
      ->transform(CLI::CheckedTransformer(cache_dtypes(), CLI::ignore_case));
}

std::string_view context_origin(const models::SessionOptions& asked, const models::ModelConfig& config,
                                std::uint32_t context) {
  if (asked.context != 0) return "-c";
  if (context == config.context_length) return "the model's";
  return context == models::kDefaultContext ? "the default" : "what fits in memory";
}

void add_trace(CLI::App& app, std::string& path) {
  app.add_option("--trace", path, "Write what ran when to FILE, for chrome://tracing or ui.perfetto.dev")
      ->type_name("FILE");
}

Status write_trace(const Runtime& runtime, const std::string& path) {
  if (path.empty()) return {};
  return trace::write_chrome_trace(runtime.recorder(), path);
}

void add_sampling(CLI::App& app, SamplingArguments& arguments) {
  models::SamplingOptions& options = arguments.options;
  const auto number = [&](const char* name, auto& value, const char* meaning) {
    app.add_option(name, value, fmt::format("{} (default: {})", meaning, value))->type_name("X")->group("Sampling");
  };
  app.add_flag("--greedy", options.greedy, "Always take the likeliest token")->group("Sampling");
  number("--temperature", options.temperature, "Flattens the odds; 0: greedy");
  number("--top-k", options.top_k, "Only the X likeliest tokens; 0: all");
  number("--top-p", options.top_p, "Only the fewest likeliest tokens that together have this probability; 1: all");
  number("--min-p", options.min_p, "Only tokens at least this times as likely as the likeliest; 0: all");
  number("--repeat-penalty", options.repeat_penalty, "Makes recent tokens less likely; 1: off");
  app.add_option("--seed", arguments.seed, "Seed of the random choices (default: a new one each time, which is shown)")
      ->type_name("N")
      ->group("Sampling");
}

models::SamplingOptions sampling_options(const SamplingArguments& arguments) {
  models::SamplingOptions options = arguments.options;
  options.seed = arguments.seed ? *arguments.seed : std::random_device{}();
  if (const Status status = models::validate(options); !status) refuse(status.error().message);
  return options;
}

}  // namespace shunt::cli
