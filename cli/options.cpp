#include "options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <random>
#include <ranges>
#include <vector>

#include "base/nearest.h"
#include "base/system/thread_pool.h"
#include "base/system/whole_file.h"
#include "devices/faults.h"
#include "devices/sim/machine.h"
#include "models/gguf/gguf.h"
#include "models/quantize/mixture.h"
#include "ops/op.h"
#include "output.h"
#include "run/opened_devices.h"
#include "run/strategy.h"

namespace shunt::cli {
namespace {

// Parses a finite number; nullopt if the text is not one.
std::optional<double> decimal(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc() && end == text.data() + text.size() && std::isfinite(number);
  return is_number ? std::optional(number) : std::nullopt;
}

// Adds an option that takes a finite number from `least` to `most`.
Option add_decimal(CommandLine& line, const char* name, const std::function<void(double)>& take,
                   const std::string& meaning, double least, double most) {
  const auto check = [=](const std::string& text) -> std::string {
    const auto number = decimal(text);
    if (!number) return fmt::format("\"{}\" is not a number", text);
    if (*number >= least && *number <= most) return {};
    return fmt::format("\"{}\" is not a number from {} to {}", text, least, most);
  };
  return line.option(name, [take](const std::string& text) { take(decimal(text).value_or(0)); }, meaning).check(check);
}

std::vector<std::string_view> names_of_cache_dtypes() {
  std::vector<std::string_view> names;
  for (const DType dtype : cache_dtypes()) names.push_back(name_of(dtype));
  return names;
}

DType parse_cache_dtype(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
  const std::vector<std::string_view> names = names_of_cache_dtypes();
  const auto dtype = dtype_from_name(text);
  if (dtype && std::ranges::find(names, text) != names.end()) return *dtype;
  refuse(
      fmt::format("--cache-type: \"{}\"{} is not one of {}", text, did_you_mean(text, names), fmt::join(names, ", ")));
}

// Parses texts of the form "DEVICE=SIZE", "DEVICE=auto" and "auto".
std::map<std::string, std::uint64_t> parse_budgets(const std::vector<std::string>& texts) {
  // An empty text is refused too.
  std::string all = fmt::format("{}", fmt::join(texts, ","));
  if (all.empty() && !texts.empty()) all = ",";
  const auto budgets = budgets_from_text(all);
  if (!budgets) refuse(fmt::format("--budget: {}", budgets.error().message));
  return *budgets;
}

// "only:NAME" selects the devices of that name and no others.
void parse_strategy(const std::string& text, Strategy& strategy, RuntimeOptions& runtime, bool with_layers) {
  constexpr std::string_view kOnly = "only:";
  if (text.starts_with(kOnly) && text.size() > kOnly.size()) {
    runtime.devices = text.substr(kOnly.size());
    return;
  }
  const auto known = strategy_from_name(text);
  if (!known) refuse(fmt::format("--strategy: {} only:NAME", known.error().message));
  if (*known == Strategy::layers && !with_layers)
    refuse("--strategy: layers is for language models, and a graph has no layers; choose auto, gpu or cpu");
  strategy = *known;
}

void parse_devices(const std::string& list, RuntimeOptions& runtime) {
  if (!runtime.devices.empty()) refuse("--devices: --strategy only:NAME names devices too; leave one of them out");
  runtime.devices = list;
}

Numerics parse_numerics(const std::string& text) {
  const auto known = numerics_from_name(text);
  if (!known) refuse(fmt::format("--numerics: {}", known.error().message));
  return *known;
}

template <class Options>
void add_placing(CommandLine& line, Options& options, RuntimeOptions& runtime, bool with_layers) {
  Strategy& strategy = options.strategy;
  line.option(
          "--strategy",
          [&strategy, &runtime, with_layers](const std::string& text) {
            parse_strategy(text, strategy, runtime, with_layers);
          },
          fmt::format("How to place ops. {}; only:NAME: on that device or API alone [{}]",
                      describe_strategies(with_layers), name_of(strategy)))
      .value_name("NAME");
  add_decimal(
      line, "--margin", [&options](double part) { options.margin = part; },
      "How much faster other devices must be than the first one, as a share of their own time [0.05, or 1 while "
      "devices are not measured]",
      0, 1e6)
      .value_name("SHARE");
  add_numerics(line, options.numerics);
}

}  // namespace

void add_numerics(CommandLine& line, Numerics& numerics) {
  line.option(
          "--numerics", [&numerics](const std::string& text) { numerics = parse_numerics(text); },
          fmt::format("How exactly products are computed. {} [{}]", describe_numerics(), name_of(numerics)))
      .value_name("NAME");
}

Option add_model_file(CommandLine& line, const std::string& name, std::string& path, const std::string& meaning) {
  line.files.add_input(name, [&path] { return models::files_of_model(path); });
  return line.option(name, path, meaning);
}

void add_model(CommandLine& line, std::string& path) {
  add_model_file(line, "MODEL", path, "GGUF file, or any part of a split model").required();
}

Option add_json(CommandLine& line, bool& json) { return line.flag("--json", json, "Print the result as JSON"); }

void add_threads(CommandLine& line, std::uint32_t& threads) {
  add_number(line, "--threads", threads, "CPU threads [one per core]", 1U, kMostThreads);
}

std::string with_types(std::string_view what) {
  std::vector<std::string_view> names;
  for (const models::Mixture& mixture : models::mixtures()) names.push_back(mixture.name);
  return fmt::format("{} {}", what, fmt::join(names, ", "));
}

void add_ops(CommandLine& line, std::vector<std::string>& names, std::string_view what_for) {
  line.option("OP", names, fmt::format("{} [all]", what_for));
}

std::vector<Op> chosen_ops(const std::vector<std::string>& names) {
  std::vector<Op> computing;
  for (std::size_t op = 0; op < ops().size(); ++op)
    if (ops()[op].can_be_sampled()) computing.push_back(static_cast<Op>(op));
  if (names.empty()) return computing;
  std::vector<Op> chosen;
  for (const std::string& name : names) {
    const auto known = std::ranges::find(computing, name, [](Op op) { return name_of(op); });
    if (known == computing.end()) {
      const auto known_names = computing | std::views::transform([](Op op) { return name_of(op); });
      refuse(fmt::format("OP: no op that computes is named {}{}; choose from {}", in_quotes(name),
                         did_you_mean(name, known_names), fmt::join(known_names, ", ")));
    }
    if (std::ranges::find(chosen, *known) == chosen.end()) chosen.push_back(*known);
  }
  return chosen;
}

void add_runtime(CommandLine& line, RuntimeOptions& options, bool only_plans) {
  add_threads(line, options.threads);
  line.option(
          "--devices", [&options](const std::string& list) { parse_devices(list, options); },
          fmt::format("Devices to use, in order of preference, such as cpu:simd,cpu:scalar [{}]", kAllDevices))
      .value_name("LIST");
  line.option(
          "--budget", [&options](const std::vector<std::string>& texts) { options.budgets = parse_budgets(texts); },
          "Memory to use at most on a device, such as vulkan:0=4GiB; repeat it for other devices. auto: what is free, "
          "also when other programs take or give back memory [auto]")
      .value_name("DEVICE=SIZE");
  line.flag(
      "--strict", options.strict,
      "Allow no fallback: report an error if a device fails, or if the preferred one is absent or cannot run an op");
  options.on_notice = [](const std::string& text) { note(text); };
  add_machine(line, options.machine);
  if (only_plans) return;
  add_decimal(
      line, "--timeout",
      [&options](double seconds) {
        options.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(seconds * 1e3)));
      },
      "Time after which a program on a device counts as hung [30, plus 100 times its predicted time]", 0.001, 1e6)
      .value_name("SECONDS");
  line.flag(
          "--audit", 16, [&options](std::int64_t each) { options.audit = static_cast<std::uint32_t>(each); },
          "Check one op against the reference in every 16th run of a plan, or with --audit=N in every Nth")
      .check(in_range(1U, 1U << 30U));
}

void add_machine(CommandLine& line, std::string& path) {
  line.input("--machine", path, "Use simulated devices of the machine that this file describes (docs/machines.md)");
}

Result<std::unique_ptr<Runtime>> open_runtime(const RuntimeOptions& options, std::string_view option) {
  // A mistake in the file is an error, not wrong usage.
  if (!options.machine.empty()) SHUNT_TRY(sim::read_machine(options.machine));
  if (const char* faults = std::getenv("SHUNT_FAULTS"); faults != nullptr)
    if (const auto understood = faults_from_text(faults); !understood)
      refuse(fmt::format("SHUNT_FAULTS: {}", understood.error().message));
  auto runtime = Runtime::create(options);
  if (!runtime && runtime.error().code == Code::invalid) refuse(fmt::format("{}: {}", option, runtime.error().message));
  if (runtime)
    for (const std::string& warning : (*runtime)->warnings()) note(warning);
  return runtime;
}

void add_session(CommandLine& line, SessionOptions& options, RuntimeOptions& runtime) {
  add_number(line, "-c,--context", options.context,
             fmt::format("Context in tokens [the model's, but at most {} and what fits in memory]", kDefaultContext),
             1U, 1U << 24U);
  line.option(
          "--cache-type", [&options](const std::string& text) { options.cache_dtype = parse_cache_dtype(text); },
          fmt::format("Dtype of the KV cache: {} [{}]", fmt::join(names_of_cache_dtypes(), ", "),
                      name_of(options.cache_dtype)))
      .value_name("TYPE");
  add_strategy(line, options, runtime);
}

void add_strategy(CommandLine& line, SessionOptions& options, RuntimeOptions& runtime) {
  add_placing(line, options, runtime, true);
}

void add_strategy(CommandLine& line, ComputationOptions& options, RuntimeOptions& runtime) {
  add_placing(line, options, runtime, false);
}

std::string_view context_origin(const SessionOptions& asked, const models::ModelConfig& config, std::uint32_t context) {
  if (asked.context != 0) return "-c";
  if (context == config.context_length) return "the model's";
  return context == kDefaultContext ? "the default" : "what fits in memory";
}

void add_trace(CommandLine& line, std::string& path) {
  line.output("--trace", path,
              "Record what ran where, when and why, for shunt report, chrome://tracing or ui.perfetto.dev");
}

Status prepare_trace(const std::string& path, RuntimeOptions& runtime, bool& profile) {
  if (path.empty()) return {};
  runtime.trace = true;
  profile = true;
  // Found after the run, this would lose its trace.
  auto writable = check_writable(path);
  return writable ? writable : fail_at("--trace", std::move(writable).error());
}

Status write_trace(const Runtime& runtime, const std::string& path, const Origin& origin,
                   const std::optional<Speeds>& speeds) {
  if (path.empty()) return {};
  trace::Recorder& recorder = opened(runtime).recorder();
  attach(recorder, origin);
  // The time that passed here says nothing about a simulated machine.
  if (speeds && origin.machine.empty()) attach(recorder, *speeds);
  if (recorder.overwritten() != 0)
    note(fmt::format("The trace lacks the first {} of {} events: newer events overwrote them.", recorder.overwritten(),
                     recorder.recorded()));
  return runtime.write_trace(path);
}

void add_sampling(CommandLine& line, SamplingArguments& arguments) {
  SamplingOptions& options = arguments.options;
  const auto number = [&](const char* name, float& value, const char* meaning) {
    constexpr auto kMost = static_cast<double>(std::numeric_limits<float>::max());
    return add_decimal(
               line, name, [&value](double given) { value = static_cast<float>(given); },
               fmt::format("{} [{}]", meaning, value), -kMost, kMost)
        .value_name("X")
        .group("Sampling");
  };
  const Option greedy = line.flag("--greedy", options.greedy, "Always take the most likely token").group("Sampling");
  arguments.temperature = number("--temperature", options.temperature, "Randomness of the choice; 0: greedy");
  greedy.excludes(add_number(line, "--top-k", options.top_k,
                             fmt::format("Choose among the N most likely tokens; 0: all [{}]", options.top_k), 0U,
                             1U << 31U)
                      .group("Sampling"));
  greedy.excludes(number("--top-p", options.top_p,
                         "Choose among the most likely tokens that together have this probability; 1: all"));
  greedy.excludes(number("--min-p", options.min_p,
                         "Choose among tokens with at least this share of the highest probability; 0: all"));
  number("--repeat-penalty", options.repeat_penalty, "Make recent tokens less likely; 1: off");
  add_number(line, "--seed", arguments.seed, "Seed of the random choices [a random one, which is printed]",
             std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max())
      .group("Sampling");
}

SamplingOptions sampling_options(const SamplingArguments& arguments) {
  SamplingOptions options = arguments.options;
  if (options.greedy && options.temperature > 0 && arguments.temperature->was_given())
    refuse("--greedy excludes --temperature above 0; leave one of them out");
  options.seed = arguments.seed ? *arguments.seed : std::random_device{}();
  if (const Status status = models::validate(options); !status) {
    // "sampling: top_p is ..." becomes "--top-p is ..."
    std::string message = status.error().message;
    message.replace(0, message.find(' ') + 1, "--");
    std::ranges::replace(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(message.find(' ')), '_', '-');
    refuse(message);
  }
  return options;
}

}  // namespace shunt::cli
