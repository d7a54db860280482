// shunt plan: where each op of a step would run, and why.
#include "plan/plan.h"

#include "command.h"

namespace shunt::cli {
namespace {

using namespace models;

// What a run takes besides what plans list: the program and its libraries, tokenizer, file header, plans.
constexpr std::uint64_t kProcessBytes = 24U << 20U;

std::uint64_t peak_bytes(const Plan& prompt, const Plan& generation) {
  std::uint64_t bytes = kProcessBytes;
  for (std::size_t pool = 0; pool < prompt.memory.size(); ++pool) {
    const MemoryUse& use = prompt.memory[pool];
    bytes += use.total() + generation.memory[pool].scratch_bytes;
  }
  return bytes;
}

}  // namespace

Action plan(CLI::App& command);
Action plan(CLI::App& command) {
  struct Options {
    std::string model;
    std::uint32_t tokens = 512;
    bool explain = false;
    SessionArguments session;
    RuntimeOptions runtime;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  add_model(command, options->model);
  command.add_option("--tokens", options->tokens, "Tokens of the prompt's step")
      ->check(CLI::Range(1U, 512U))
      ->capture_default_str();
  command.add_flag("--explain", options->explain,
                   "List every candidate with its predicted time or why it was rejected");
  add_session(command, options->session);
  add_runtime(command, options->runtime);
  add_json(command, options->json);
  return [options]() -> Status {
    SHUNT_TRY_ASSIGN(const auto runtime, Runtime::create(options->runtime));
    SHUNT_TRY_ASSIGN(const auto model, Model::load(options->model));
    SHUNT_TRY_ASSIGN(const SessionOptions settings, session_options(options->session));
    SHUNT_TRY_ASSIGN(const std::uint32_t context, choose_context(*model, *runtime, settings));
    SHUNT_TRY_ASSIGN(const PlannedStep prompt, plan_step(*model, *runtime, settings, context, options->tokens, 1));
    SHUNT_TRY_ASSIGN(const PlannedStep generation, plan_step(*model, *runtime, settings, context, 1, 1));
    const std::uint64_t peak = peak_bytes(prompt.plan, generation.plan);
    if (options->json)
      return print_json(Json{{"context", context},
                             {"predicted_peak_bytes", peak},
                             {"prompt", Json::parse(to_json(prompt.plan, prompt.graph), nullptr, false)},
                             {"generation", Json::parse(to_json(generation.plan, generation.graph), nullptr, false)}});
    return print(fmt::format("context {}; predicted peak memory of a run {}\n\nprompt of {} tokens\n{}\none token\n{}",
                             context, in_units(peak), options->tokens,
                             to_text(prompt.plan, prompt.graph, options->explain),
                             to_text(generation.plan, generation.graph, options->explain)));
  };
}

}  // namespace shunt::cli
