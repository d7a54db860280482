// shunt bench model: measures the speed of a model's prefill and decode.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "answers.h"
#include "base/system/event_counter.h"
#include "bench_steps.h"
#include "command.h"
#include "devices/cpu/limits.h"
#include "interrupt.h"
#include "loading.h"
#include "models/step_planner.h"
#include "options.h"
#include "output.h"
#include "run/opened_devices.h"
#include "samples.h"

namespace shunt::cli {
namespace {

using models::Session;

struct BenchModelOptions {
  std::string model;
  std::uint32_t prompt = 512;
  std::uint32_t generate = 64;
  std::uint32_t depth = 0;  // tokens in each sequence before those that are generated
  std::uint32_t sequences = 1;
  std::uint32_t repetitions = 5;
  SessionOptions session;
  RuntimeOptions runtime;
  std::string trace;
  bool json = false;
};

struct Measured {
  Samples prompt, generate;                            // tokens/s
  Samples prompt_instructions, generate_instructions;  // per cycle; empty: the system does not count them
  Samples bandwidth;                                   // bytes/s
  std::uint32_t threads = 0;                           // those that read memory
};

// The bytes of weights that a step of generation reads.
std::uint64_t bytes_per_step(const models::Model& model) {
  std::uint64_t bytes = 0;
  for (const WeightInfo& weight : model.weights().weights())
    if (is_read_whole(model, weight)) bytes += weight.bytes;
  return bytes;
}

// Makes a sequence have the first `depth` tokens of a text of which it has some.
Status set_depth(Session& session, std::uint32_t sequence, std::span<const Token> text, std::uint32_t depth) {
  session.truncate(sequence, depth);
  const std::size_t has = session.tokens(sequence).size();
  if (has == depth) return {};
  return session.prefill(sequence, text.first(depth).subspan(has), {}, Session::Results::candidates);
}

struct CountedRate {
  double tokens_per_s = 0;
  std::optional<double> instructions_per_cycle;  // of all threads meanwhile
};

template <class Work>
Result<CountedRate> counted(const Work& work) {
  const auto counter = count_instructions();
  SHUNT_TRY_ASSIGN(const double rate, work());
  return CountedRate{.tokens_per_s = rate, .instructions_per_cycle = instructions_per_cycle(counter)};
}

void add_rate(const CountedRate& rate, Samples& tokens_per_s, Samples& instructions) {
  tokens_per_s.add(rate.tokens_per_s);
  if (rate.instructions_per_cycle) instructions.add(*rate.instructions_per_cycle);
}

// Does all measurements in each repetition, so that a slow moment of the machine affects them alike.
Result<Measured> measure(Session& session, const BenchModelOptions& options) {
  const std::uint32_t vocabulary = session.model().config().vocabulary;
  const std::vector<Token> text = random_tokens(std::max(options.prompt, options.depth), vocabulary);
  const std::vector<Token> generated = random_tokens(options.generate, vocabulary);
  SHUNT_TRY_ASSIGN(const auto limits, cpu::Limits::create(options.runtime.threads));
  const std::atomic<bool>& ending = catch_interrupts();
  Measured measured{.threads = limits->threads()};
  ProgressLine line;
  // Repetition 0 warms up: it prepares programs and wakes threads.
  for (std::uint32_t repetition = 0; repetition <= options.repetitions; ++repetition) {
    if (ending.load()) return fail(Code::interrupted, "interrupted");
    line.show(repetition == 0 ? "warming up" : fmt::format("repetition {} of {}", repetition, options.repetitions));
    const double bytes_per_s = limits->read_bytes_per_s();
    SHUNT_TRY_ASSIGN(const CountedRate prompt,
                     counted([&] { return time_prompt(session, std::span(text).first(options.prompt)); }));
    for (std::uint32_t i = 0; i < options.sequences; ++i) SHUNT_TRY(set_depth(session, i, text, options.depth));
    SHUNT_TRY_ASSIGN(const CountedRate generation,
                     counted([&] { return time_generation(session, generated, options.sequences); }));
    if (repetition == 0) continue;
    measured.bandwidth.add(bytes_per_s);
    add_rate(prompt, measured.prompt, measured.prompt_instructions);
    add_rate(generation, measured.generate, measured.generate_instructions);
  }
  return measured;
}

// Predicts the tokens per second of generation by `plan`, which is for the middle of the context. On one device a step
// at another depth is another plan only in its times.
Result<double> predict_generation(const models::Model& model, const Runtime& runtime, const BenchModelOptions& options,
                                  const Plan& plan) {
  if (working_devices(std::array{&plan}).size() > 1) return options.sequences * 1e6 / plan.predicted_us;
  DevicePool device_pool(runtime);
  const auto planner =
      models::StepPlanner::choosing_apis(model, device_pool, options.session, options.depth + options.generate);
  SHUNT_TRY_ASSIGN(const PlannedGraph step, planner->plan(options.sequences, options.sequences));
  return options.sequences * 1e6 / step.plan.predicted_us;
}

// Returns the bytes per second that the memory of a plan's only device gives: of the processor those that it read
// beside, of others what their drivers tell. 0: unknown, or there are several devices.
double bandwidth_of(const Plan& plan, const Runtime& runtime, double read_bytes_per_s) {
  const std::vector<std::string> devices = working_devices(std::array{&plan});
  if (devices.size() != 1) return 0;
  for (const Device* device : opened(runtime).handles())
    if (device->info().id == devices.front())
      return device->info().type == DeviceType::cpu ? read_bytes_per_s : device->peak().bytes_per_s;
  return 0;
}

// Returns whether the processor alone runs these plans.
bool are_on_processor(std::span<const Plan* const> plans, const Runtime& runtime) {
  const std::vector<std::string> ids = working_devices(plans);
  return std::ranges::all_of(opened(runtime).handles(), [&](const Device* device) {
    return device->info().type == DeviceType::cpu || std::ranges::find(ids, device->info().id) == ids.end();
  });
}

std::string line_of(std::string_view what, const Samples& samples, std::string_view unit, double scale) {
  return fmt::format("{:<15} {:>9.2f} {}  ({:.2f} .. {:.2f})\n", what, samples.median() / scale, unit,
                     samples.least() / scale, samples.most() / scale);
}

Status execute(BenchModelOptions& options) {
  SHUNT_TRY(prepare_trace(options.trace, options.runtime, options.session.profile));
  options.session.max_sequences = options.sequences;
  const std::uint32_t needed = std::max(options.prompt, options.depth + options.generate);
  if (options.session.context == 0) options.session.context = needed;
  if (options.session.context < needed)
    refuse(
        fmt::format("-c {} is less than --prompt {} or --depth {} and --generate {}; choose a larger context, or "
                    "fewer tokens",
                    options.session.context, options.prompt, options.depth, options.generate));
  SHUNT_TRY_ASSIGN(const auto runtime, open_runtime(options.runtime));
  SHUNT_TRY_ASSIGN(const auto model, models::Model::load(options.model));
  SHUNT_TRY_ASSIGN(const auto session, Session::create(*model, *runtime, options.session));
  SHUNT_TRY_ASSIGN(const Measured measured, measure(*session, options));
  SHUNT_TRY(write_trace(*runtime, options.trace,
                        origin_of("bench model", options.model, *session, *runtime, options.runtime),
                        Speeds{.prompt_tokens = options.prompt,
                               .prompt_tokens_per_s = measured.prompt.median(),
                               .generated_tokens = options.generate,
                               .generated_tokens_per_s = measured.generate.median()}));
  const std::uint32_t step = session->prompt_step(options.prompt);
  SHUNT_TRY_ASSIGN(const Plan* prompt, session->plan_for(step, 1));
  SHUNT_TRY_ASSIGN(const Plan* generation, session->plan_for(options.sequences, options.sequences));
  const Plan* plans[] = {prompt, generation};
  const double predicted_prompt = step / prompt->predicted_us * 1e6;
  SHUNT_TRY_ASSIGN(const double predicted_generate, predict_generation(*model, *runtime, options, *generation));
  const WeightLoader::Loaded& loaded = session->loaded_weights();
  const double load_rate = loaded.bytes == 0 ? 0 : static_cast<double>(loaded.bytes) / loaded.seconds;
  const std::uint64_t bytes = bytes_per_step(*model) / options.sequences;
  const double bandwidth = bandwidth_of(*generation, *runtime, measured.bandwidth.median());
  const double share = bandwidth > 0 ? static_cast<double>(bytes) * measured.generate.median() / bandwidth : 0;
  const bool has_instructions = are_on_processor(plans, *runtime) && !measured.prompt_instructions.empty() &&
                                !measured.generate_instructions.empty();
  if (options.json) {
    Json json = {{"model", options.model},
                 {"devices", working_devices(plans)},
                 {"threads", measured.threads},
                 {"prompt_tokens", options.prompt},
                 {"generate_tokens", options.generate},
                 {"depth", options.depth},
                 {"sequences", options.sequences},
                 {"repetitions", options.repetitions},
                 {"prompt_tokens_per_s", json_of(measured.prompt)},
                 {"generate_tokens_per_s", json_of(measured.generate)},
                 {"predicted_prompt_tokens_per_s", predicted_prompt},
                 {"predicted_generate_tokens_per_s", predicted_generate},
                 {"read_bytes_per_s", json_of(measured.bandwidth)},
                 {"loaded_bytes", loaded.bytes},
                 {"load_s", loaded.seconds},
                 {"load_bytes_per_s", load_rate},
                 {"bytes_per_token", bytes}};
    if (share > 0) json["share_of_bandwidth"] = share;
    if (has_instructions)
      json.update({{"prompt_instructions_per_cycle", json_of(measured.prompt_instructions)},
                   {"generate_instructions_per_cycle", json_of(measured.generate_instructions)}});
    return print_json(json);
  }
  std::string text =
      fmt::format("{}, {} with {}, median of {} (least .. most)\n", options.model,
                  fmt::join(working_devices(plans), ", "), in_words(measured.threads, "thread"), options.repetitions);
  text += line_of(fmt::format("prompt {}", options.prompt), measured.prompt, "tokens/s", 1);
  const std::string each = options.sequences == 1 ? "" : fmt::format("{}x", options.sequences);
  text += line_of(fmt::format("generate {}{}", each, options.generate), measured.generate, "tokens/s", 1);
  text += fmt::format("predicted       {:>9.2f} tokens/s for the prompt, {:.2f} for generation\n", predicted_prompt,
                      predicted_generate);
  if (has_instructions)
    text += fmt::format("instructions    {:>9.2f} per cycle for the prompt, {:.2f} for generation\n",
                        measured.prompt_instructions.median(), measured.generate_instructions.median());
  if (loaded.bytes != 0)
    text += fmt::format("{:<15} {:>9.2f} GB/s      ({} copied to devices in {})\n", "weights", load_rate / 1e9,
                        in_units(loaded.bytes), in_time(loaded.seconds * 1e6));
  text += line_of("memory read", measured.bandwidth, "GB/s    ", 1e9);
  text += fmt::format("generation reads {} of weights per token", in_units(bytes));
  text += share > 0 ? fmt::format(": {} of {:.2f} GB/s\n", in_percent(share), bandwidth / 1e9) : "\n";
  return print(text);
}

}  // namespace

Action bench_model(CommandLine& line) {
  auto options = std::make_shared<BenchModelOptions>();
  add_model(line, options->model);
  const auto count = [&](const char* name, std::uint32_t& value, const char* meaning, std::uint32_t least = 1) {
    add_number(line, name, value, fmt::format("{} [{}]", meaning, value), least, 1U << 20U);
  };
  count("--prompt", options->prompt, "Tokens in the prompt");
  count("--generate", options->generate, "Tokens to generate for each sequence");
  count("--depth", options->depth, "Tokens in each sequence before those that are generated", 0);
  count("--sequences", options->sequences, "Sequences to generate at once");
  count("--repetitions", options->repetitions, "Number of times to measure each, in turn");
  add_session(line, options->session, options->runtime);
  add_runtime(line, options->runtime);
  add_trace(line, options->trace);
  add_json(line, options->json);
  return [options] { return execute(*options); };
}

}  // namespace shunt::cli
