// shunt bench hybrid: what bounds a model that runs on the processor and a GPU together, what is reached, and where the
// rest of the time goes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>

#include "answers.h"
#include "base/system/text_file.h"
#include "bench_steps.h"
#include "command.h"
#include "devices/cpu/limits.h"
#include "interrupt.h"
#include "models/session.h"
#include "options.h"
#include "origin.h"
#include "output.h"
#include "plan/regret.h"
#include "run/measure/link_bench.h"
#include "run/opened_devices.h"
#include "step_limits.h"
#include "step_times.h"
#include "trace/chrome.h"
#include "trace/recording.h"

namespace shunt::cli {
namespace {

using models::Session;

struct BenchHybridOptions {
  std::string model;
  std::uint32_t prompt = 512;
  std::uint32_t generate = 32;
  std::uint32_t repetitions = 3;
  SessionOptions session;
  RuntimeOptions runtime;
  std::string trace;
  bool json = false;
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

Status add_rates(Device& gpu, StepLimits& limits) {
  constexpr std::uint64_t kCopyBytes = std::uint64_t{32} << 20U;
  limits.gpu_bytes_per_s = gpu.peak().bytes_per_s;
  limits.gpu_flops_per_s = gpu.peak().flops_per_s;
  SHUNT_TRY_ASSIGN(const auto bench, LinkBench::create(gpu, kCopyBytes, cpu::beyond_cache_bytes()));
  LinkBench::SideBySide host;
  if (bench->copies_weights()) {
    SHUNT_TRY_ASSIGN(host, bench->measure_side_by_side());
  } else {
    // Weights then go the way of values, through the thread that also computes.
    SHUNT_TRY_ASSIGN(const auto processor, cpu::Limits::create(0));
    SHUNT_TRY_ASSIGN(const double us, bench->measure_us(LinkBench::Direction::to_device, kCopyBytes));
    host.reads_alone = host.reads = processor->read_bytes_per_s();
    host.weights_alone = static_cast<double>(kCopyBytes) / us * 1e6;
  }
  limits.read_bytes_per_s = host.reads_alone;
  limits.read_bytes_per_s_beside_weights = host.reads;
  limits.link_bytes_per_s = host.weights_alone;
  limits.link_bytes_per_s_beside_reads = host.weights;
  return {};
}

void add_weights(const models::Model& model, const Plan& plan, const Device& gpu, std::uint64_t budget,
                 StepLimits& limits) {
  double all = 0;
  const auto& config = model.config();
  const double used = config.experts.count == 0 ? 1 : static_cast<double>(config.experts.used) / config.experts.count;
  for (const WeightInfo& weight : model.weights().weights()) {
    if (!is_read_whole(model, weight)) continue;
    const double share = weight.name.find("_exps.") != std::string::npos ? used : 1;
    all += share * static_cast<double>(weight.bytes);
    if (weight.shape.rank() > 1) limits.weight_elements += share * static_cast<double>(weight.shape.elements());
  }
  double held = 0;
  double others = 0;
  for (const MemoryUse& use : plan.memory) {
    if (use.pool != gpu.info().memory_pool) continue;
    held = static_cast<double>(use.weight_bytes);
    others = static_cast<double>(use.state_bytes);
  }
  const double on_host = std::max(all - held, 0.0);
  const double room = budget == kNoBudget ? held : static_cast<double>(budget) - others;
  limits.weight_bytes = static_cast<std::uint64_t>(all);
  limits.host_weight_bytes = static_cast<std::uint64_t>(on_host);
  limits.least_host_weight_bytes = static_cast<std::uint64_t>(std::clamp(all - room, 0.0, on_host));
}

class HybridBench {
 public:
  HybridBench(const BenchHybridOptions& options, Session& session, const Runtime& runtime)
      : options_(options),
        session_(session),
        runtime_(runtime),
        text_(random_tokens(std::max(options.prompt, options.generate), session.model().config().vocabulary)) {}

  // Records the steps of prompts or of generation, which were run once before.
  Status record(bool is_prompt) {
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
    return {};
  }

 private:
  const BenchHybridOptions& options_;
  Session& session_;
  const Runtime& runtime_;
  const std::vector<Token> text_;
  ProgressLine line_;
};

Result<StepLimits> measure_limits(const Session& session, const Runtime& runtime, std::span<const Plan* const> plans) {
  StepLimits limits;
  SHUNT_TRY_ASSIGN(Device* const gpu, gpu_of(plans, runtime));
  SHUNT_TRY(add_rates(*gpu, limits));
  const auto handles = opened(runtime).handles();
  const auto place = static_cast<std::size_t>(std::ranges::find(handles, gpu) - handles.begin());
  add_weights(session.model(), *plans.front(), *gpu, opened(runtime).budgets()[place], limits);
  return limits;
}

// Returns the mean tokens of the steps of a prompt that have the plan of the first one. The last step may be shorter.
std::uint32_t mean_tokens(Session& session, std::uint32_t prompt) {
  const std::uint32_t first = session.prompt_step(prompt);
  std::uint32_t tokens = 0;
  std::uint32_t steps = 0;
  for (std::uint32_t done = 0; done < prompt;) {
    const std::uint32_t step = session.prompt_step(prompt - done);
    done += step;
    if (std::bit_ceil(step) != std::bit_ceil(first)) continue;
    tokens += step;
    ++steps;
  }
  return tokens / steps;
}

struct HybridResult {
  std::vector<std::string> devices;
  StepLimits limits;
  std::vector<StepTimes> steps;
};

Result<HybridResult> measure(const BenchHybridOptions& options, const Runtime& runtime, const models::Model& model) {
  SHUNT_TRY_ASSIGN(const auto session, Session::create(model, runtime, options.session));
  const std::uint32_t step = session->prompt_step(options.prompt);
  const auto plans_now = [&]() -> Result<std::array<const Plan*, 2>> {
    SHUNT_TRY_ASSIGN(const Plan* generation, session->plan_for(1, 1));
    SHUNT_TRY_ASSIGN(const Plan* prompt, session->plan_for(step, 1));
    return std::array{generation, prompt};
  };
  SHUNT_TRY_ASSIGN(const auto plans_before, plans_now());
  SHUNT_TRY(gpu_of(plans_before, runtime));  // before it takes time
  HybridBench bench(options, *session, runtime);
  SHUNT_TRY(bench.record(true));
  trace::Recording prompts = runtime.recording();
  SHUNT_TRY(bench.record(false));
  SHUNT_TRY_ASSIGN(const auto plans, plans_now());
  SHUNT_TRY_ASSIGN(StepLimits limits, measure_limits(*session, runtime, plans));
  limits.prompt_tokens = mean_tokens(*session, options.prompt);
  trace::Recorder& recorder = opened(runtime).recorder();
  attach(recorder, origin_of("bench hybrid", options.model, *session, runtime, options.runtime));
  attach(recorder, limits);
  const trace::Recording recording = trace::joined(std::move(prompts), runtime.recording());
  if (!options.trace.empty()) SHUNT_TRY(write_text_file(options.trace, to_chrome_json(recording)));
  SHUNT_TRY_ASSIGN(const auto reviewed, regrets_of(recording));
  return HybridResult{.devices = working_devices(plans), .limits = limits, .steps = step_times_of(recording, reviewed)};
}

// Finds the steps of generation, or of whole steps of a prompt.
Result<Json> steps_in(std::span<const StepTimes> all, bool is_generation) {
  for (const StepTimes& times : all)
    if (times.is_generation == is_generation && times.knows_tokens) return to_json(times);
  return fail(Code::unsupported, fmt::format("the recording holds no whole step of {}; choose fewer --repetitions",
                                             is_generation ? "generation" : "a prompt"));
}

Status show(const BenchHybridOptions& options, const HybridResult& result) {
  SHUNT_TRY_ASSIGN(Json generation, steps_in(result.steps, true));
  SHUNT_TRY_ASSIGN(Json prompt, steps_in(result.steps, false));
  if (options.json) {
    Json json = {{"model", options.model}, {"devices", result.devices}};
    json.update(to_json(result.limits));
    json.update({{"generation", std::move(generation)}, {"prompt", std::move(prompt)}});
    return print_json(json);
  }
  std::string text =
      fmt::format("{} on {}: {}", options.model, fmt::join(result.devices, ", "), to_text(result.limits));
  for (const StepTimes& times : result.steps) text += "\n" + to_text(times);
  return print(text);
}

Status execute(BenchHybridOptions& options) {
  bool times_each_op = false;  // ignored, as steps would take longer
  SHUNT_TRY(prepare_trace(options.trace, options.runtime, times_each_op));
  options.runtime.trace = true;
  if (options.session.context == 0) options.session.context = std::max(options.prompt, options.generate);
  SHUNT_TRY_ASSIGN(const auto runtime, open_runtime(options.runtime));
  SHUNT_TRY_ASSIGN(const auto model, models::Model::load(options.model));
  SHUNT_TRY_ASSIGN(const HybridResult result, measure(options, *runtime, *model));
  return show(options, result);
}

}  // namespace

Action bench_hybrid(CommandLine& line) {
  auto options = std::make_shared<BenchHybridOptions>();
  add_model(line, options->model);
  const auto count = [&](const char* name, std::uint32_t& value, const char* meaning, std::uint32_t least = 1) {
    add_number(line, name, value, fmt::format("{} [{}]", meaning, value), least, 1U << 20U);
  };
  count("--prompt", options->prompt, "Tokens in the prompt", 2);  // one would be a step of generation
  count("--generate", options->generate, "Tokens to generate");
  count("--repetitions", options->repetitions, "Number of times to measure each");
  add_session(line, options->session, options->runtime);
  add_runtime(line, options->runtime);
  add_trace(line, options->trace);
  add_json(line, options->json);
  return [options] { return execute(*options); };
}

}  // namespace shunt::cli
