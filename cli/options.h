// Options that several commands take: each is described once, here. One thread.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "command_line.h"
#include "models/sampling.h"
#include "models/session.h"
#include "origin.h"
#include "shunt/computation.h"
#include "shunt/runtime.h"

namespace shunt::cli {

// The whole number that a text is; nothing where it is none, or does not fit.
template <class T>
[[nodiscard]] std::optional<T> whole_number(const std::string& text) {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}
// A check that a text is a whole number from `least` to `most`.
template <class T>
[[nodiscard]] Check in_range(T least, T most) {
  return [=](const std::string& text) -> std::string {
    const std::optional<T> number = whole_number<T>(text);
    if (number && *number >= least && *number <= most) return {};
    return fmt::format("\"{}\" is not a number from {} to {}", text, least, most);
  };
}
// An option that takes such a number. T is made from one.
template <class T, class Number>
Option add_number(CommandLine& line, const char* name, T& value, const std::string& meaning, Number least,
                  Number most) {
  const auto take = [&value](const std::string& text) {
    value = whole_number<Number>(text).value_or(Number{});  // it was checked
  };
  return line.option(name, take, meaning).value_name("N").check(in_range(least, most));
}

// A GGUF file to read: with all parts of a split model.
Option add_model_file(CommandLine& line, const std::string& name, std::string& path, const std::string& meaning);
// MODEL, required
void add_model(CommandLine& line, std::string& path);
Option add_json(CommandLine& line, bool& json);
void add_threads(CommandLine& line, std::uint32_t& threads);
// "what F16, Q8_0, ...": the types that quantize and make-model write.
[[nodiscard]] std::string with_types(std::string_view what);

// Names of ops that compute, not of those that only make views.
void add_ops(CommandLine& line, std::vector<std::string>& names, std::string_view what_for);
// Those named, or all. Wrong names are wrong usage.
[[nodiscard]] std::vector<Op> chosen_ops(const std::vector<std::string>& names);

// What --devices means where nobody names any.
inline constexpr std::string_view kAllDevices =
    "all; emulated ones only where their id is named, and each GPU through the API predicted to be fastest";
// --machine
void add_machine(CommandLine& line, std::string& path);
// --threads, --devices, --budget, --strict, --machine and, unless nothing is to run, --timeout and --audit; notices go
// to stderr.
void add_runtime(CommandLine& line, RuntimeOptions& options, bool only_plans = false);
// Wrong names of devices are wrong usage of `option`. Errors: else those of Runtime::create().
[[nodiscard]] Result<std::unique_ptr<Runtime>> open_runtime(const RuntimeOptions& options,
                                                            std::string_view option = "--devices");

// -c, --cache-type, --strategy, --margin
void add_session(CommandLine& line, SessionOptions& options, RuntimeOptions& runtime);
// --strategy, which may name the devices of the runtime, and --margin
void add_strategy(CommandLine& line, SessionOptions& options, RuntimeOptions& runtime);
void add_strategy(CommandLine& line, ComputationOptions& options, RuntimeOptions& runtime);
// Where a session's context comes from: "-c", "the model's", "the default" or "what fits in memory".
[[nodiscard]] std::string_view context_origin(const SessionOptions& asked, const models::ModelConfig& config,
                                              std::uint32_t context);

// --trace
void add_trace(CommandLine& line, std::string& path);
// Before the runtime is opened: if a trace was asked for, has it record the steps, and sets `profile`, for each op.
// Errors: those of check_writable().
[[nodiscard]] Status prepare_trace(const std::string& path, RuntimeOptions& runtime, bool& profile);
// Writes the trace if one was asked for, with where it comes from and how fast that was, and notes what it could not
// keep.
[[nodiscard]] Status write_trace(const Runtime& runtime, const std::string& path, const Origin& origin,
                                 const std::optional<Speeds>& speeds = std::nullopt);

// --greedy, --temperature, --top-k, --top-p, --min-p, --repeat-penalty, --seed
struct SamplingArguments {
  SamplingOptions options;
  std::optional<std::uint64_t> seed;
  std::optional<Option> temperature;
};
void add_sampling(CommandLine& line, SamplingArguments& arguments);
// With a random seed where none was given. Values out of range are wrong usage.
[[nodiscard]] SamplingOptions sampling_options(const SamplingArguments& arguments);

}  // namespace shunt::cli
