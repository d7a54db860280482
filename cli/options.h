// Options that several commands take: each is described once, here. One thread.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "models/sampling.h"
#include "models/session.h"
#include "origin.h"
#include "shunt/computation.h"
#include "shunt/runtime.h"

namespace shunt::cli {

// A check that a text is a whole number from `least` to `most`. CLI11's own wraps negative ones around.
template <class T>
[[nodiscard]] auto in_range(T least, T most) {
  return [=](const std::string& text) -> std::string {
    T number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size() && number >= least && number <= most) return {};
    return fmt::format("\"{}\" is not a number from {} to {}", text, least, most);
  };
}
// An option that takes such a number.
template <class T>
CLI::Option* add_number(CLI::App& app, const char* name, T& value, const std::string& meaning, T least, T most) {
  return app.add_option(name, value, meaning)->type_name("N")->check(in_range(least, most));
}

// A GGUF file to read: with all parts of a split model. REQUIRES: as add_input() (files.h).
CLI::Option* add_model_file(CLI::App& app, const std::string& name, std::string& path, const std::string& meaning);
// MODEL, required
void add_model(CLI::App& app, std::string& path);
void add_json(CLI::App& app, bool& json);
void add_threads(CLI::App& app, std::uint32_t& threads);
// "what F16, Q8_0, ...": the types that quantize and make-model write.
[[nodiscard]] std::string with_types(std::string_view what);

// Names of ops that compute, not of those that only make views.
void add_ops(CLI::App& app, std::vector<std::string>& names, std::string_view what_for);
// Those named, or all. Wrong names are wrong usage.
[[nodiscard]] std::vector<Op> chosen_ops(const std::vector<std::string>& names);

// What --devices means where nobody names any.
inline constexpr std::string_view kAllDevices =
    "all; emulated ones only where their id is named, and each GPU through the API predicted to be fastest";
// --machine
void add_machine(CLI::App& app, std::string& path);
// --threads, --devices, --budget, --strict, --machine and, unless nothing is to run, --timeout and --audit; notices go
// to stderr.
void add_runtime(CLI::App& app, RuntimeOptions& options, bool only_plans = false);
// Wrong names of devices are wrong usage of `option`. Errors: else those of Runtime::create().
[[nodiscard]] Result<std::unique_ptr<Runtime>> open_runtime(const RuntimeOptions& options,
                                                            std::string_view option = "--devices");

// -c, --cache-type, --strategy, --margin
void add_session(CLI::App& app, SessionOptions& options, RuntimeOptions& runtime);
// --strategy, which may name the devices of the runtime, and --margin
void add_strategy(CLI::App& app, SessionOptions& options, RuntimeOptions& runtime);
void add_strategy(CLI::App& app, ComputationOptions& options, RuntimeOptions& runtime);
// Where a session's context comes from: "-c", "the model's", "the default" or "what fits in memory".
[[nodiscard]] std::string_view context_origin(const SessionOptions& asked, const models::ModelConfig& config,
                                              std::uint32_t context);

// --trace
void add_trace(CLI::App& app, std::string& path);
// Before the runtime is opened: if a trace was asked for, has it record the steps, and sets `profile`, for each op.
// Errors: those of trace::check_writable().
[[nodiscard]] Status prepare_trace(const std::string& path, RuntimeOptions& runtime, bool& profile);
// Writes the trace if one was asked for, with where it comes from and how fast that was, and notes what it could not
// keep.
[[nodiscard]] Status write_trace(const Runtime& runtime, const std::string& path, const Origin& origin,
                                 const std::optional<Speeds>& speeds = std::nullopt);

// --greedy, --temperature, --top-k, --top-p, --min-p, --repeat-penalty, --seed
struct SamplingArguments {
  SamplingOptions options;
  std::optional<std::uint64_t> seed;
  const CLI::Option* temperature = nullptr;
};
void add_sampling(CLI::App& app, SamplingArguments& arguments);
// With a random seed where none was given. Values out of range are wrong usage.
[[nodiscard]] SamplingOptions sampling_options(const SamplingArguments& arguments);

}  // namespace shunt::cli
