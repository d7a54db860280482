#include "models/step_ratios.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "devices/device.h"
#include "models/context.h"
#include "models/session.h"
#include "models/step_bench.h"
#include "models/step_planner.h"
#include "run/measure/samples.h"
#include "run/opened_devices.h"

namespace shunt::models {
namespace {

// Alternates steps of both kinds, because a shared machine can be slow for seconds. The first round is a warm-up that
// prepares programs and wakes threads.
constexpr std::size_t kRounds = 6;
// After this time, two rounds after the warm-up are enough.
constexpr double kEnoughSeconds = 5;
constexpr std::size_t kLeastRounds = 3;
constexpr std::size_t kPromptSteps = 1;  // per round
constexpr std::size_t kTokenSteps = 10;
constexpr std::size_t kSteps = kRounds * (kPromptSteps + kTokenSteps);
constexpr std::uint32_t kMostTokens = 512;
constexpr std::uint32_t kLeastTokens = 32;
constexpr double kLongestStepUs = 1e6;
// Ratios farther from 1 have another cause.
constexpr double kMostOff = 4;

}  // namespace

Result<DeviceProfile> measure_steps(const Model& model, const Runtime& runtime, Numerics numerics,
                                    DeviceProfile profile, const StepProgress& progress) {
  const Device& device = *opened(runtime).handles()[0];
  const DeviceCost& cost = opened(runtime).costs()[0];
  SessionOptions options = {.context = kStepContext, .numerics = numerics};
  SHUNT_TRY_ASSIGN(options.context, choose_context(model, runtime, options));
  StepPlanner planner(model, runtime, options, options.context);
  for (options.max_batch_tokens = std::min(kMostTokens, options.context / 2);; options.max_batch_tokens /= 2) {
    SHUNT_TRY_ASSIGN(const PlannedGraph step, planner.plan(options.max_batch_tokens, 1));
    if (step.plan.predicted_us <= kLongestStepUs) break;
    if (options.max_batch_tokens <= kLeastTokens)
      return fail(Code::unsupported,
                  fmt::format("a step of {} tokens is predicted to take {:.1f} s, longer than the limit of {:.0f} s",
                              options.max_batch_tokens, step.plan.predicted_us / 1e6, kLongestStepUs / 1e6));
  }
  SHUNT_TRY_ASSIGN(const auto session, Session::create(model, runtime, options));
  StepBench bench(*session, device, progress, kSteps);
  Samples prompt_us;
  Samples token_us;
  const auto run = [&](std::uint32_t tokens, std::size_t times, Samples* us) -> Status {
    for (std::size_t time = 0; time < times; ++time) {
      SHUNT_TRY_ASSIGN(const double took_us, bench.measure_us(tokens));
      if (us != nullptr) us->add(took_us);
    }
    return {};
  };
  const std::uint64_t begin_ns = device.now_ns();
  for (std::size_t round = 0; round < kRounds; ++round) {
    if (round >= kLeastRounds && static_cast<double>(device.now_ns() - begin_ns) / 1e9 > kEnoughSeconds) break;
    SHUNT_TRY(run(options.max_batch_tokens, kPromptSteps, round == 0 ? nullptr : &prompt_us));
    SHUNT_TRY(run(1, kTokenSteps, round == 0 ? nullptr : &token_us));
  }
  // The launch overhead is no part of the ops' time.
  const auto ratio = [&](std::uint32_t tokens, double us) -> Result<double> {
    SHUNT_TRY_ASSIGN(const PlannedGraph step, planner.plan(tokens, 1));
    const double of_ops = (us - cost.launch_us()) / (step.plan.predicted_us - cost.launch_us());
    return std::clamp(of_ops, 1 / kMostOff, kMostOff);
  };
  SHUNT_TRY_ASSIGN(profile.many_tokens_ratio, ratio(options.max_batch_tokens, prompt_us.median()));
  SHUNT_TRY_ASSIGN(profile.few_tokens_ratio, ratio(1, token_us.median()));
  return profile;
}

}  // namespace shunt::models
