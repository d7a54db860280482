// What a command is, and the options and words that commands share. One thread.
//
// Data goes to stdout; words for people go to stderr through the functions below.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "models/session.h"
#include "shunt/runtime.h"

namespace shunt::cli {

using Json = nlohmann::ordered_json;

// Runs the command once its options are parsed.
using Action = std::function<Status()>;

// Options that several commands take, each described once.
void add_model(CLI::App& command, std::string& path);
void add_json(CLI::App& command, bool& json);
void add_runtime(CLI::App& command, RuntimeOptions& options);
struct SessionArguments {
  models::SessionOptions options;
  std::string cache_type = "F16";
};
void add_session(CLI::App& command, SessionArguments& arguments);
[[nodiscard]] Result<models::SessionOptions> session_options(const SessionArguments& arguments);

// Writes the whole text to stdout. Errors: io, a closed pipe say.
[[nodiscard]] Status print(std::string_view text);
[[nodiscard]] Status print(const Json& json);

// A line for people on stderr.
void say(std::string_view line);
// Bold, dim: only where stderr is a terminal and NO_COLOR is not set.
[[nodiscard]] std::string dim(std::string_view text);
[[nodiscard]] bool stderr_is_terminal();

// One line on a terminal's stderr that is written over again and removed at the end; nothing elsewhere.
class ProgressLine {
 public:
  ~ProgressLine() { clear(); }
  void show(std::string_view text);
  void clear();

 private:
  bool shown_ = false;
};

// Loads a model; large files with a progress line.
[[nodiscard]] Result<std::unique_ptr<models::Model>> load_model(const std::string& path);

// "cpu:simd (AMD EPYC, 2 threads)" for each device that got work in a plan.
[[nodiscard]] std::vector<std::string> used_devices(const Plan& plan);

[[nodiscard]] std::string in_units(std::uint64_t bytes);

}  // namespace shunt::cli
