// Options that several commands share, each described once. One thread.
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

// Parses a whole number; nullopt if the text is not one, or does not fit into T.
template <class T>
[[nodiscard]] std::optional<T> whole_number(const std::string& text) {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}
// Checks that a text is a whole number from `least` to `most`.
template <class T>
[[nodiscard]] Check in_range(T least, T most) {
  return [=](const std::string& text) -> std::string {
    const std::optional<T> number = whole_number<T>(text);
    if (number && *number >= least && *number <= most) return {};
    return fmt::format("\"{}\" is not a number from {} to {}", text, least, most);
  };
}
// Adds an option that takes such a number. T can be assigned from Number.
template <class T, class Number>
Option add_number(CommandLine& line, const char* name, T& value, const std::string& meaning, Number least,
                  Number most) {
  const auto take = [&value](const std::string& text) {
    value = whole_number<Number>(text).value_or(Number{});  // it was checked
  };
  return line.option(name, take, meaning).value_name("N").check(in_range(least, most));
}

// Adds a GGUF file to read; of a split model all parts count as inputs.
Option add_model_file(CommandLine& line, const std::string& name, std::string& path, const std::string& meaning);
// MODEL, required.
void add_model(CommandLine& line, std::string& path);
Option add_json(CommandLine& line, bool& json);
void add_threads(CommandLine& line, std::uint32_t& threads);
// Returns "what F16, Q8_0, ...", with the types that quantize and make-model write.
[[nodiscard]] std::string with_types(std::string_view what);

// Adds OP: names of ops that compute, which excludes those that only make views.
void add_ops(CommandLine& line, std::vector<std::string>& names, std::string_view what_for);
// Returns the named ops, or all if none is named. Unknown names are wrong usage.
[[nodiscard]] std::vector<Op> chosen_ops(const std::vector<std::string>& names);

// The default of --devices.
inline constexpr std::string_view kAllDevices =
    "all but emulated ones, which must be named by id; each GPU through the API or APIs predicted to be fastest";
// Adds --machine.
void add_machine(CommandLine& line, std::string& path);
// Adds --threads, --devices, --budget, --strict, --machine and, unless `only_plans`, --timeout and --audit. Notices go
// to stderr.
void add_runtime(CommandLine& line, RuntimeOptions& options, bool only_plans = false);
// Unknown names of devices are wrong usage of `option`. Errors: all others of Runtime::create().
[[nodiscard]] Result<std::unique_ptr<Runtime>> open_runtime(const RuntimeOptions& options,
                                                            std::string_view option = "--devices");

// Adds --numerics.
void add_numerics(CommandLine& line, Numerics& numerics);
// Adds -c, --cache-type, --strategy, --margin and --numerics.
void add_session(CommandLine& line, SessionOptions& options, RuntimeOptions& runtime);
// Adds --strategy, which may also name the devices of the runtime, --margin and --numerics.
void add_strategy(CommandLine& line, SessionOptions& options, RuntimeOptions& runtime);
void add_strategy(CommandLine& line, ComputationOptions& options, RuntimeOptions& runtime);
// Says where a session's context comes from: "-c", "the model's", "the default" or "what fits in memory".
[[nodiscard]] std::string_view context_origin(const SessionOptions& asked, const models::ModelConfig& config,
                                              std::uint32_t context);

// Adds --trace.
void add_trace(CommandLine& line, std::string& path);
// If a trace was asked for, lets the runtime record steps, and sets `profile` to record each op. Call it before the
// runtime is opened. Errors: those of check_writable().
[[nodiscard]] Status prepare_trace(const std::string& path, RuntimeOptions& runtime, bool& profile);
// Writes the trace, if one was asked for, with its origin and speeds. Prints a notice if events were overwritten.
[[nodiscard]] Status write_trace(const Runtime& runtime, const std::string& path, const Origin& origin,
                                 const std::optional<Speeds>& speeds = std::nullopt);

// The values of --greedy, --temperature, --top-k, --top-p, --min-p, --repeat-penalty and --seed.
struct SamplingArguments {
  SamplingOptions options;
  std::optional<std::uint64_t> seed;
  std::optional<Option> temperature;
};
void add_sampling(CommandLine& line, SamplingArguments& arguments);
// Picks a random seed if none was given. Values out of range are wrong usage.
[[nodiscard]] SamplingOptions sampling_options(const SamplingArguments& arguments);

}  // namespace shunt::cli
