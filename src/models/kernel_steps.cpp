#include "models/kernel_steps.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "models/context.h"
#include "models/session.h"
#include "run/measure/steady.h"
#include "run/opened_devices.h"

namespace shunt::models {
namespace {

constexpr std::size_t kMostTurns = 15;

// A session that was prepared with some choices of kernels.
struct PreparedSteps {
  std::unique_ptr<Session> session;
  std::unique_ptr<StepBench> bench;
};

Result<PreparedSteps> prepare_steps(const Model& model, const Runtime& runtime, const SessionOptions& options,
                                    std::uint32_t tokens, KernelChoices choices, const StepProgress& progress) {
  Device& device = *opened(runtime).handles()[0];
  device.choose_kernels(std::move(choices));
  PreparedSteps steps;
  SHUNT_TRY_ASSIGN(steps.session, Session::create(model, runtime, options));
  steps.bench = std::make_unique<StepBench>(*steps.session, device, progress, kMostTurns);
  // The first step prepares its programs.
  SHUNT_TRY(steps.bench->measure_us(tokens));
  return steps;
}

Result<bool> steps_lose(const Model& model, const Runtime& runtime, const SessionOptions& options, std::uint32_t tokens,
                        const KernelChoices& choices, const StepProgress& progress) {
  const Device& device = *opened(runtime).handles()[0];
  SHUNT_TRY_ASSIGN(const PreparedSteps by_rule, prepare_steps(model, runtime, options, tokens, {}, progress));
  SHUNT_TRY_ASSIGN(const PreparedSteps chosen, prepare_steps(model, runtime, options, tokens, choices, progress));
  const std::array measures = {std::function([&] { return by_rule.bench->measure_us(tokens); }),
                               std::function([&] { return chosen.bench->measure_us(tokens); })};
  SHUNT_TRY_ASSIGN(const std::vector<Steady> us,
                   measure_in_turns(measures, {.relative = 0.005, .least = 7, .most = kMostTurns, .now_s = [&] {
                                                 return static_cast<double>(device.now_ns()) / 1e9;
                                               }}));
  return is_clearly_less(us[0], us[1], 0);
}

}  // namespace

Result<std::vector<KernelComparison>> confirm_kernels(const Model& model, const Runtime& runtime, Numerics numerics,
                                                      std::vector<KernelComparison> comparisons,
                                                      const StepProgress& progress) {
  SessionOptions options = {.context = kStepContext, .numerics = numerics};
  SHUNT_TRY_ASSIGN(options.context, choose_context(model, runtime, options));
  options.max_batch_tokens = std::min(kUsualStepTokens, options.context / 2);
  std::map<std::pair<std::uint32_t, std::string>, std::vector<KernelComparison*>> groups;
  for (KernelComparison& each : comparisons) groups[{each.tokens, each.choice.kernel}].push_back(&each);
  for (const auto& [key, group] : groups) {
    const std::uint32_t tokens = key.first;
    if (tokens > options.max_batch_tokens) continue;
    KernelChoices choices;
    for (const KernelComparison* each : group) add_choices(std::span(each, 1), choices);
    SHUNT_TRY_ASSIGN(const bool loses, steps_lose(model, runtime, options, tokens, choices, progress));
    if (!loses) continue;
    for (KernelComparison* each : group) each->choice.kernel = each->by_rule();
  }
  return comparisons;
}

}  // namespace shunt::models
