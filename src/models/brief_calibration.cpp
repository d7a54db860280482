#include "models/brief_calibration.h"

#include <algorithm>

#include "models/step_planner.h"
#include "run/brief_calibration.h"

namespace shunt::models {
namespace {

// Tokens of the prompt whose ops are measured: they reach the rates of long prompts, or nearly, in less time.
constexpr std::uint64_t kMeasuredPrompt = 64;
// The context that attention is measured at, at most: what a longer one takes follows from it.
constexpr std::uint32_t kMeasuredContext = 1024;

std::uint32_t prompt_step(const BriefCalibration& request, std::uint64_t most) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>({request.work.prompt_tokens, request.options.batch, most}));
}

Result<Forecast> forecast(const BriefCalibration& request, const DeviceSet& set, std::optional<double> margin) {
  SessionOptions options = request.options;
  options.margin = margin;
  StepPlanner planner(request.model, set, options, request.context);
  SHUNT_TRY_ASSIGN(const PlannedGraph one, planner.plan(1, 1));
  Forecast found = forecast_of(one.plan, static_cast<double>(request.work.generated_tokens));
  if (const std::uint32_t tokens = prompt_step(request, request.context); tokens != 0) {
    SHUNT_TRY_ASSIGN(const PlannedGraph prompt, planner.plan(tokens, 1));
    found.us += prompt.plan.predicted_us * static_cast<double>(request.work.prompt_tokens) / tokens;
  }
  return found;
}

}  // namespace

std::optional<std::vector<DeviceCost>> calibrate_for(const BriefCalibration& request) {
  if (request.options.strategy != Strategy::automatic ||
      !pays_to_measure({.runtime = request.runtime,
                        .fleet = request.fleet,
                        .margin = request.options.margin,
                        .forecast = [&](const DeviceSet& set, std::optional<double> margin) {
                          return forecast(request, set, margin);
                        }}))
    return std::nullopt;
  const StepPlanner planner(request.model, request.fleet.devices(), request.options,
                            std::min(request.context, kMeasuredContext));
  const std::uint32_t tokens = std::max(prompt_step(request, kMeasuredPrompt), 1U);
  const auto one = planner.graph_of(1, 1);
  const auto prompt = planner.graph_of(tokens, 1);
  if (!one || !prompt) return std::nullopt;
  const Workload work[] = {{&*one, static_cast<double>(request.work.generated_tokens)},
                           {&*prompt, static_cast<double>(request.work.prompt_tokens) / tokens}};
  return measure_briefly(request.runtime, request.fleet, work, request.interrupted);
}

}  // namespace shunt::models
