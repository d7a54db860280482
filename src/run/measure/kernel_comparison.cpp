#include "run/measure/kernel_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/units.h"

namespace shunt {

std::string to_text(const KernelComparison& comparison) {
  std::string text = fmt::format("{}, {} tokens:", comparison.kind, comparison.tokens);
  for (const KernelTime& time : comparison.times)
    text += fmt::format("{} {} {}", &time == comparison.times.data() ? "" : ",", time.kernel, in_time(time.us.median));
  return text;
}

Result<std::optional<KernelComparison>> compare_kernels(const BenchCase& use, Device& device,
                                                        std::uint64_t memory_bytes, BenchMemory* memory,
                                                        const SteadyOptions& options) {
  const BenchOperands operands(use);
  const OpCall call = operands.call();
  if (!device.supports(std::span(&call, 1))) return std::nullopt;
  const std::vector<KernelCandidate> candidates = device.kernels_for(call, weights_layout(device, call));
  std::vector<std::unique_ptr<OpBench>> benches;
  std::vector<std::function<Result<double>()>> measures;
  KernelComparison found{
      .kind = choice_kind(call, candidates), .choice = {.cost = info_of(call.op).rule->cost(call)}, .tokens = use.rows};
  for (const KernelCandidate& candidate : candidates) {
    auto bench = OpBench::create(use, device, memory_bytes, memory, candidate.name);
    if (bench && !benches.empty())
      if (Status done = (*bench)->use_as_often_as(*benches.front()); !done)
        bench = std::unexpected(std::move(done).error());
    const bool is_declined =
        !bench && (bench.error().code == Code::unsupported || bench.error().code == Code::out_of_memory);
    if (is_declined && benches.empty()) return std::nullopt;
    if (is_declined) continue;
    if (!bench) return std::unexpected(std::move(bench).error());
    measures.emplace_back([its = bench->get()]() -> Result<double> {
      SHUNT_TRY_ASSIGN(const double seconds, its->measure());
      return seconds * 1e6;
    });
    benches.push_back(std::move(*bench));
    found.times.push_back({.kernel = std::string(candidate.name)});
  }
  if (benches.size() < 2) return std::nullopt;
  SHUNT_TRY_ASSIGN(const std::vector<Steady> us, measure_in_turns(measures, options));
  for (std::size_t number = 0; number < us.size(); ++number) found.times[number].us = us[number];
  const auto fastest = std::ranges::min_element(found.times, {}, [](const KernelTime& time) { return time.us.median; });
  // Fewer times do not tell how uncertain they are.
  constexpr std::size_t kLeastTurns = 3;
  const bool wins = found.times.front().us.count >= kLeastTurns &&
                    is_clearly_less(fastest->us, found.times.front().us, kLeastKernelGain);
  found.choice.kernel = wins ? fastest->kernel : found.by_rule();
  return found;
}

void add_choices(std::span<const KernelComparison> comparisons, KernelChoices& choices) {
  for (const KernelComparison& comparison : comparisons) {
    std::vector<KernelChoice>& shapes = choices[comparison.kind];
    std::erase_if(shapes, [&](const KernelChoice& shape) { return is_same_shape(shape.cost, comparison.choice.cost); });
    shapes.push_back(comparison.choice);
  }
}

}  // namespace shunt
