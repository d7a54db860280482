// shunt plan: shows where each op would run, why, and how much memory a run would take. Loads no weights.
#include "plan/plan.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>

#include "base/parse_json.h"
#include "command.h"
#include "loading.h"
#include "models/context.h"
#include "models/step_planner.h"
#include "options.h"
#include "output.h"
#include "plan_summary.h"
#include "run/strategy.h"

namespace shunt::cli {
namespace {

struct PlanOptions {
  std::string model;
  bool explain = false;
  std::uint32_t prompt = 512;
  SessionOptions session;
  RuntimeOptions runtime;
  bool json = false;
};

// The peak memory of `run` with a full context, in bytes.
struct PeakMemory {
  std::uint64_t weights = 0;
  std::uint64_t cache = 0;
  std::uint64_t arena = 0;
  std::uint64_t scratch = 0;
  std::uint64_t logits = 0;
  std::uint64_t process = 0;
  [[nodiscard]] std::uint64_t total() const { return weights + cache + arena + scratch + logits + process; }
};

// The peak memory of this process so far, in bytes.
std::uint64_t own_peak() {
  rusage usage{};
  static_cast<void>(getrusage(RUSAGE_SELF, &usage));
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

// The steps share arenas, weights and cache; each keeps its own scratch memory. This process has opened the same file
// and made the same plans as a run would, so its own peak covers the rest.
PeakMemory predict_memory(const PlannedGraph& prompt, const PlannedGraph& generation, std::uint32_t vocabulary) {
  PeakMemory peak{.logits = std::uint64_t{vocabulary} * sizeof(float), .process = own_peak()};
  for (const PlannedGraph* step : {&prompt, &generation}) {
    PeakMemory one;
    for (const MemoryUse& use : memory_by_place(step->plan)) {
      one.weights += use.weight_bytes;
      one.cache += use.state_bytes;
      one.arena += use.value_bytes;
      peak.scratch += use.scratch_bytes;
    }
    peak.weights = std::max(peak.weights, one.weights);
    peak.cache = std::max(peak.cache, one.cache);
    peak.arena = std::max(peak.arena, one.arena);
  }
  return peak;
}

Json to_json(const PeakMemory& peak) {
  return {{"weights_bytes", peak.weights}, {"cache_bytes", peak.cache},   {"arena_bytes", peak.arena},
          {"scratch_bytes", peak.scratch}, {"logits_bytes", peak.logits}, {"process_bytes", peak.process}};
}

Status execute(PlanOptions& options) {
  SHUNT_TRY_ASSIGN(const auto runtime, open_runtime(options.runtime));
  SHUNT_TRY_ASSIGN(const auto model, models::Model::load(options.model));
  SHUNT_TRY_ASSIGN(const std::uint32_t context, models::choose_context(*model, *runtime, options.session));
  DevicePool device_pool(*runtime);
  SHUNT_TRY(check_strategy(options.session.strategy, device_pool));
  const auto planner = models::StepPlanner::choosing_apis(*model, device_pool, options.session, context);
  const std::uint32_t tokens = planner->prompt_step(options.prompt);
  SHUNT_TRY_ASSIGN(PlannedGraph prompt, planner->plan(tokens, 1));
  SHUNT_TRY_ASSIGN(PlannedGraph generation, planner->plan(1, 1));
  for (PlannedGraph* step : {&prompt, &generation}) {
    step->plan.other_apis = device_pool.other_apis();
    if (options.explain || options.json) planner->explain(*step);
  }
  const PeakMemory peak = predict_memory(prompt, generation, model->config().vocabulary);
  const PlannedSteps steps{.prompt = prompt, .generation = generation, .prompt_tokens = tokens};
  const std::string_view origin = context_origin(options.session, model->config(), context);
  if (options.json)
    return print_json({{"context", context},
                       {"predicted_peak_bytes", peak.total()},
                       {"memory", to_json(peak)},
                       {"summary", to_json(steps)},
                       {"prompt_tokens", tokens},
                       {"prompt", parse_json(to_json(prompt.plan, prompt.graph))},
                       {"generation", parse_json(to_json(generation.plan, generation.graph))}});
  std::string text = fmt::format("context     {} ({})\n", in_words(context, "token"), origin) + summary_of(steps);
  text += fmt::format(
      "\npeak memory of a run with a full context: {}\n"
      "  = {} weights + {} cache + {} values + {} scratch + {} logits + {} the process itself\n",
      in_units(peak.total()), in_units(peak.weights), in_units(peak.cache), in_units(peak.arena),
      in_units(peak.scratch), in_units(peak.logits), in_units(peak.process));
  if (!options.explain) return print(text + "\n--explain shows each op, and why it runs where it does.\n");
  text += fmt::format("\nA step of {} prompt tokens\n{}", tokens, to_text(prompt.plan, prompt.graph, true));
  text += fmt::format("\nA step of generation\n{}", to_text(generation.plan, generation.graph, true));
  return print(text);
}

}  // namespace

Action plan(CommandLine& line) {
  auto options = std::make_shared<PlanOptions>();
  add_model(line, options->model);
  line.flag("--explain", options->explain, "Show each op with all candidates, and why each was chosen or not");
  add_number(line, "--tokens", options->prompt, fmt::format("Tokens of the prompt [{}]", options->prompt), 1U,
             1U << 24U);
  add_session(line, options->session, options->runtime);
  add_runtime(line, options->runtime, true);
  add_json(line, options->json);
  return [options] { return execute(*options); };
}

}  // namespace shunt::cli
