#include "ops/kernel_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace shunt {
namespace {

// Returns the largest factor by which flops or bytes differ.
double factor_between(const Cost& one, const Cost& other) {
  const auto factor = [](double a, double b) {
    if (a == b) return 1.0;
    return a > 0 && b > 0 ? std::max(a / b, b / a) : std::numeric_limits<double>::infinity();
  };
  return std::max({factor(one.flops, other.flops), factor(one.bytes_read, other.bytes_read),
                   factor(one.bytes_written, other.bytes_written)});
}

}  // namespace

std::string choice_kind(const OpCall& call, std::span<const KernelCandidate> candidates) {
  Arithmetic arithmetic = Arithmetic::f32;
  for (const KernelCandidate& candidate : candidates) arithmetic = least_exact(arithmetic, candidate.arithmetic);
  return kind_of(call, arithmetic);
}

std::optional<std::size_t> measured_choice(const KernelChoices& choices, const OpCall& call,
                                           std::span<const KernelCandidate> candidates) {
  constexpr double kNear = 2;
  if (choices.empty()) return std::nullopt;
  const auto known = choices.find(choice_kind(call, candidates));
  if (known == choices.end() || known->second.empty()) return std::nullopt;
  const Cost cost = info_of(call.op).rule->cost(call);
  const auto distance = [&](const KernelChoice& choice) { return factor_between(choice.cost, cost); };
  const auto nearest = std::ranges::min_element(known->second, {}, distance);
  if (distance(*nearest) > kNear) return std::nullopt;
  const auto found = std::ranges::find(candidates, nearest->kernel, &KernelCandidate::name);
  if (found == candidates.end()) return std::nullopt;
  return static_cast<std::size_t>(found - candidates.begin());
}

}  // namespace shunt
