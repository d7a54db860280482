#include "command.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <set>

namespace shunt::cli {
namespace {

// Smaller files are read faster than anybody can read a progress line.
constexpr std::uint64_t kWarmBytes = 256U << 20U;

bool colours() {
  const char* no_color = std::getenv("NO_COLOR");
  return stderr_is_terminal() && (no_color == nullptr || *no_color == '\0');
}

}  // namespace

void add_model(CLI::App& command, std::string& path) {
  command.add_option("model", path, "GGUF model file")->required();
}

void add_json(CLI::App& command, bool& json) { command.add_flag("--json", json, "Print JSON to stdout"); }

void add_runtime(CLI::App& command, RuntimeOptions& options) {
  command.add_option("--threads", options.threads, "Threads of the CPU (default: one per core)")
      ->check(CLI::Range(1U, 1024U));
  command.add_option("--devices", options.devices, "Devices that may be used, best liked first: cpu:simd,cpu:scalar");
}

void add_session(CLI::App& command, SessionArguments& arguments) {
  command.add_option("-c,--context", arguments.options.context,
                     "Tokens of context (default: the model's, at most 8192, at most what fits)");
  command.add_option("--cache-type", arguments.cache_type, "Dtype of the cache: F32, F16 or BF16")->capture_default_str();
}

Result<models::SessionOptions> session_options(const SessionArguments& arguments) {
  models::SessionOptions options = arguments.options;
  SHUNT_TRY_ASSIGN(options.cache_dtype, dtype_from_name(arguments.cache_type));
  return options;
}

Status print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    return fail(Code::io, "stdout: nobody reads the output");
  return {};
}

Status print(const Json& json) { return print(json.dump() + "\n"); }

void say(std::string_view line) { fmt::print(stderr, "{}\n", line); }

bool stderr_is_terminal() { return isatty(STDERR_FILENO) != 0; }

std::string dim(std::string_view text) {
  return colours() ? fmt::format("\033[2m{}\033[0m", text) : std::string(text);
}

void ProgressLine::show(std::string_view text) {
  if (!stderr_is_terminal()) return;
  fmt::print(stderr, "\r\033[K{}", dim(text));
  static_cast<void>(std::fflush(stderr));
  shown_ = true;
}

void ProgressLine::clear() {
  if (!std::exchange(shown_, false)) return;
  fmt::print(stderr, "\r\033[K");
  static_cast<void>(std::fflush(stderr));
}

Result<std::unique_ptr<models::Model>> load_model(const std::string& path) {
  SHUNT_TRY_ASSIGN(std::unique_ptr<models::Model> model, models::Model::load(path));
  if (model->weight_bytes() < kWarmBytes) return model;
  ProgressLine line;
  SHUNT_TRY(model->warm([&](std::uint64_t done, std::uint64_t total) {
    line.show(fmt::format("reading {}: {} of {}", path, in_units(done), in_units(total)));
    return true;
  }));
  return model;
}

std::vector<std::string> used_devices(const Plan& plan) {
  std::set<std::uint32_t> used;
  for (const Decision& decision : plan.decisions) used.insert(decision.device);
  std::vector<std::string> names;
  for (const std::uint32_t device : used) names.push_back(plan.devices[device].id);
  return names;
}

std::string in_units(std::uint64_t bytes) {
  const double mib = static_cast<double>(bytes) / (1U << 20U);
  if (mib < 1) return fmt::format("{:.1f} KiB", mib * 1024);
  return mib < 1024 ? fmt::format("{:.1f} MiB", mib) : fmt::format("{:.2f} GiB", mib / 1024);
}

}  // namespace shunt::cli
