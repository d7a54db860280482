// shunt bench hybrid: what bounds a model that runs on the processor and a GPU together, what is reached, and where the
// rest of the time goes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "answers.h"
#include "bench_steps.h"
#include "command.h"
#include "devices/cpu/limits.h"
#include "interrupt.h"
#include "models/session.h"
#include "options.h"
#include "output.h"
#include "run/measure/link_bench.h"
#include "run/opened_devices.h"
#include "trace/run_times.h"

namespace shunt::cli {
namespace {

using models::Session;
using trace::Activity;

struct BenchHybridOptions {
  std::string model;
  std::uint32_t prompt = 512;
  std::uint32_t generate = 32;
  std::uint32_t repetitions = 3;
  SessionOptions session;
  RuntimeOptions runtime;
  bool json = false;
};

// Rates of the machine, measured just now or reported by drivers; 0: unknown.
struct Rates {
  LinkBench::SideBySide host;  // bytes/s of the processor's reads and of weights to the GPU
  double gpu_bytes_per_s = 0;  // of its memory
  double gpu_flops_per_s = 0;
};

// The weights that a step reads, in bytes, and where they are.
struct Weights {
  double all = 0;
  double on_host = 0;
  double fit_host = 0;  // those that would be there if weights took all of the GPU's budget
  double elements = 0;  // of matrices
};

struct Part {
  std::string what;
  double us = 0;
};

// One phase: its bound, and parts that add up to its time.
struct Phase {
  std::string name;
  std::uint64_t tokens = 0;  // of a step
  double us = 0;             // of a step
  double predicted_us = 0;
  std::vector<Part> parts;  // the first is the bound
};

// Returns the only other device than processors that these plans use.
Result<Device*> gpu_of(std::span<const Plan* const> plans, const Runtime& runtime) {
  std::vector<Device*> found;
  bool has_processor = false;
  for (const std::string& id : working_devices(plans))
    for (Device* device : opened(runtime).handles())
      if (device->info().id == id) {
        if (device->info().is_host_cpu())
          has_processor = true;
        else
          found.push_back(device);
      }
  if (found.size() == 1 && has_processor) return found.front();
  return fail(Code::unsupported,
              fmt::format("the plans run on {}, but bench hybrid compares one GPU and the processor; name both with "
                          "--devices, and give the GPU less than the model needs with --budget",
                          fmt::join(working_devices(plans), ", ")));
}

Result<Rates> measure_rates(Device& gpu) {
  constexpr std::uint64_t kCopyBytes = std::uint64_t{32} << 20U;
  Rates rates{.host = {}, .gpu_bytes_per_s = gpu.peak().bytes_per_s, .gpu_flops_per_s = gpu.peak().flops_per_s};
  SHUNT_TRY_ASSIGN(const auto bench, LinkBench::create(gpu, kCopyBytes, cpu::beyond_cache_bytes()));
  if (bench->copies_weights()) {
    SHUNT_TRY_ASSIGN(rates.host, bench->measure_side_by_side());
    return rates;
  }
  // Weights then go the way of values, through the thread that also computes.
  SHUNT_TRY_ASSIGN(const auto limits, cpu::Limits::create(0));
  SHUNT_TRY_ASSIGN(const double us, bench->measure_us(LinkBench::Direction::to_device, kCopyBytes));
  rates.host.reads_alone = rates.host.reads = limits->read_bytes_per_s();
  rates.host.weights_alone = static_cast<double>(kCopyBytes) / us * 1e6;
  return rates;
}

Weights weights_of(const models::Model& model, const Plan& plan, const Device& gpu, std::uint64_t budget) {
  Weights weights;
  const auto& config = model.config();
  const double used = config.experts.count == 0 ? 1 : static_cast<double>(config.experts.used) / config.experts.count;
  for (const WeightInfo& weight : model.weights().weights()) {
    if (!is_read_whole(model, weight)) continue;
    const double share = weight.name.find("_exps.") != std::string::npos ? used : 1;
    weights.all += share * static_cast<double>(weight.bytes);
    if (weight.shape.rank() > 1) weights.elements += share * static_cast<double>(weight.shape.elements());
  }
  double held = 0;
  double others = 0;
  for (const MemoryUse& use : plan.memory) {
    if (use.pool != gpu.info().memory_pool) continue;
    held = static_cast<double>(use.weight_bytes);
    others = static_cast<double>(use.state_bytes);
  }
  weights.on_host = std::max(weights.all - held, 0.0);
  const double room = budget == kNoBudget ? held : static_cast<double>(budget) - others;
  weights.fit_host = std::clamp(weights.all - room, 0.0, weights.on_host);
  return weights;
}

double us_for(double amount, double per_s) { return per_s <= 0 ? 0 : amount / per_s * 1e6; }

// A token: the processor reads weights while others travel.
std::vector<Part> parts_of_generation(const trace::RunTimes& times, const Weights& weights, const Rates& rates) {
  const double both = rates.host.reads + rates.host.weights;
  const double read_us = us_for(weights.on_host - times.weight_bytes(), rates.host.reads);
  const double computes_us = times.us_of(Activity::processor);
  return {{"host memory, by the processor and the link", us_for(weights.fit_host, both)},
          {"budget that holds no weights", us_for(weights.on_host - weights.fit_host, both)},
          {"more for the processor than its share", read_us - us_for(weights.on_host, both)},
          {"processor slower than it reads memory", computes_us - read_us},
          {"the GPU computes, the processor waits", times.us_of(Activity::device, {Activity::processor})},
          {"both wait for weights", times.us_of(Activity::weights, {Activity::processor, Activity::device})},
          {"both wait for values",
           times.us_of(Activity::values, {Activity::processor, Activity::device, Activity::weights})},
          {"starting work and noticing its end", times.idle_us()}};
}

// A prompt: the GPU computes while weights travel.
std::vector<Part> parts_of_prompt(const trace::RunTimes& times, const Weights& weights, const Rates& rates,
                                  std::uint64_t tokens) {
  const double link_us = us_for(weights.fit_host, rates.host.weights_alone);
  const double flops_us = us_for(2 * weights.elements * static_cast<double>(tokens), rates.gpu_flops_per_s);
  const double values_us = times.us_of(Activity::values, {Activity::processor, Activity::device, Activity::weights});
  if (flops_us > link_us)
    return {{"arithmetic of the GPU", flops_us},
            {"GPU slower than its peak", times.us_of(Activity::device) - flops_us},
            {"the processor computes, the GPU waits", times.us_of(Activity::processor, {Activity::device})},
            {"both wait for weights", times.us_of(Activity::weights, {Activity::processor, Activity::device})},
            {"both wait for values", values_us},
            {"starting work and noticing its end", times.idle_us()}};
  const double bytes_us = us_for(times.weight_bytes(), rates.host.weights_alone);
  return {
      {"the link", link_us},
      {"more or fewer weights on it than that", bytes_us - link_us},
      {"link slower than alone", times.us_of(Activity::weights) - bytes_us},
      {"the GPU computes, the link waits", times.us_of(Activity::device, {Activity::weights})},
      {"the processor computes, both wait", times.us_of(Activity::processor, {Activity::device, Activity::weights})},
      {"all wait for values", values_us},
      {"starting work and noticing its end", times.idle_us()}};
}

class HybridBench {
 public:
  HybridBench(const BenchHybridOptions& options, Session& session, const Runtime& runtime)
      : options_(options),
        session_(session),
        runtime_(runtime),
        text_(random_tokens(std::max(options.prompt, options.generate), session.model().config().vocabulary)) {
    for (const Device* device : opened(runtime).handles())
      if (device->info().is_host_cpu()) processors_.insert(device->info().id);
    for (const WeightInfo& weight : session.model().weights().weights()) weights_.insert(weight.name);
  }

  // Returns the times of the steps of prompts and of generation, which were run once before.
  Result<trace::RunTimes> time(bool is_prompt) {
    for (std::uint32_t repetition = 0; repetition <= options_.repetitions; ++repetition) {
      if (catch_interrupts().load()) return fail(Code::interrupted, "interrupted");
      line_.show(fmt::format(
          "{}, {}", is_prompt ? "prompt" : "generation",
          repetition == 0 ? "warming up" : fmt::format("repetition {} of {}", repetition, options_.repetitions)));
      if (repetition == 1) runtime_.clear_recording();
      if (is_prompt) {
        SHUNT_TRY(time_prompt(session_, std::span(text_).first(options_.prompt)));
      } else {
        session_.truncate(0, 0);
        SHUNT_TRY(time_generation(session_, std::span(text_).first(options_.generate), 1));
      }
    }
    return trace::RunTimes(runtime_.recording(), processors_, weights_);
  }

 private:
  const BenchHybridOptions& options_;
  Session& session_;
  const Runtime& runtime_;
  const std::vector<Token> text_;
  std::set<std::string, std::less<>> processors_;
  std::set<std::string, std::less<>> weights_;
  ProgressLine line_;
};

Phase phase_of(std::string name, std::uint64_t tokens, const Plan& plan, const trace::RunTimes& times,
               std::vector<Part> parts) {
  return {.name = std::move(name),
          .tokens = tokens,
          .us = times.us(),
          .predicted_us = plan.predicted_us,
          .parts = std::move(parts)};
}

std::string to_text(const Phase& phase) {
  std::string text = fmt::format("\n{:<46} {:>9}  {:>6}\n", phase.name, "ms", "share");
  for (const Part& part : phase.parts)
    text += fmt::format("{:<46} {:>9.3f}  {:>6}\n", part.what, part.us / 1e3, in_percent(part.us / phase.us));
  text += fmt::format("{:<46} {:>9.3f}  {:>6.1f} tokens/s; {} of the bound, predicted {:.3f} ms\n", "all",
                      phase.us / 1e3, static_cast<double>(phase.tokens) * 1e6 / phase.us,
                      in_percent(phase.parts.front().us / phase.us), phase.predicted_us / 1e3);
  return text;
}

Json to_json(const Phase& phase) {
  Json parts = Json::array();
  for (const Part& part : phase.parts) parts.push_back({{"what", part.what}, {"us", part.us}});
  return {{"tokens", phase.tokens},
          {"us", phase.us},
          {"predicted_us", phase.predicted_us},
          {"bound_us", phase.parts.front().us},
          {"tokens_per_s", static_cast<double>(phase.tokens) * 1e6 / phase.us},
          {"parts", std::move(parts)}};
}

Status execute(BenchHybridOptions& options) {
  options.runtime.trace = true;
  if (options.session.context == 0) options.session.context = std::max(options.prompt, options.generate);
  SHUNT_TRY_ASSIGN(const auto runtime, open_runtime(options.runtime));
  SHUNT_TRY_ASSIGN(const auto model, models::Model::load(options.model));
  SHUNT_TRY_ASSIGN(const auto session, Session::create(*model, *runtime, options.session));
  const std::uint32_t step = session->prompt_step(options.prompt);
  const auto plans_now = [&]() -> Result<std::array<const Plan*, 2>> {
    SHUNT_TRY_ASSIGN(const Plan* generation, session->plan_for(1, 1));
    SHUNT_TRY_ASSIGN(const Plan* prompt, session->plan_for(step, 1));
    return std::array{generation, prompt};
  };
  SHUNT_TRY_ASSIGN(const auto plans_before, plans_now());
  SHUNT_TRY(gpu_of(plans_before, *runtime));  // before it takes time
  HybridBench bench(options, *session, *runtime);
  SHUNT_TRY_ASSIGN(const trace::RunTimes prompts, bench.time(true));
  SHUNT_TRY_ASSIGN(const trace::RunTimes tokens, bench.time(false));
  SHUNT_TRY_ASSIGN(const auto plans, plans_now());
  const auto& [generation, prompt] = plans;
  SHUNT_TRY_ASSIGN(Device* const gpu, gpu_of(plans, *runtime));
  SHUNT_TRY_ASSIGN(const Rates rates, measure_rates(*gpu));
  const auto handles = opened(*runtime).handles();
  const auto place = static_cast<std::size_t>(std::ranges::find(handles, gpu) - handles.begin());
  const Weights weights = weights_of(*model, *generation, *gpu, opened(*runtime).budgets()[place]);
  const Phase phases[] = {
      phase_of("generation, a token", 1, *generation, tokens, parts_of_generation(tokens, weights, rates)),
      phase_of(fmt::format("prompt, {} tokens", step), step, *prompt, prompts,
               parts_of_prompt(prompts, weights, rates, step))};
  if (options.json)
    return print_json({{"model", options.model},
                       {"devices", working_devices(plans)},
                       {"weight_bytes", weights.all},
                       {"host_weight_bytes", weights.on_host},
                       {"read_bytes_per_s", rates.host.reads_alone},
                       {"read_bytes_per_s_beside_weights", rates.host.reads},
                       {"link_bytes_per_s", rates.host.weights_alone},
                       {"link_bytes_per_s_beside_reads", rates.host.weights},
                       {"gpu_bytes_per_s", rates.gpu_bytes_per_s},
                       {"gpu_flops_per_s", rates.gpu_flops_per_s},
                       {"generation", to_json(phases[0])},
                       {"prompt", to_json(phases[1])}});
  std::string text = fmt::format(
      "{} on {}: {} of {} of weights stay in host memory\n", options.model, fmt::join(working_devices(plans), ", "),
      in_units(static_cast<std::uint64_t>(weights.on_host)), in_units(static_cast<std::uint64_t>(weights.all)));
  text += fmt::format(
      "the processor reads {:.1f} GB/s, {:.1f} while weights travel; these come at {:.1f} GB/s, {:.1f} "
      "while it reads\n",
      rates.host.reads_alone / 1e9, rates.host.reads / 1e9, rates.host.weights_alone / 1e9, rates.host.weights / 1e9);
  for (const Phase& phase : phases) text += to_text(phase);
  return print(text);
}

}  // namespace

Action bench_hybrid(CommandLine& line) {
  auto options = std::make_shared<BenchHybridOptions>();
  add_model(line, options->model);
  const auto count = [&](const char* name, std::uint32_t& value, const char* meaning) {
    add_number(line, name, value, fmt::format("{} [{}]", meaning, value), 1U, 1U << 20U);
  };
  count("--prompt", options->prompt, "Tokens in the prompt");
  count("--generate", options->generate, "Tokens to generate");
  count("--repetitions", options->repetitions, "Number of times to measure each");
  add_session(line, options->session, options->runtime);
  add_runtime(line, options->runtime);
  add_json(line, options->json);
  return [options] { return execute(*options); };
}

}  // namespace shunt::cli
