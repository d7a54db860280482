// Repeats a measurement until its median is known well enough. Pure except for the measurement; one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "shunt/status.h"

namespace shunt {

struct SteadyOptions {
  double relative = 0.015;  // wanted relative accuracy of the median
  std::size_t least = 5;    // measurements
  std::size_t most = 25;
  double most_seconds = 1;        // of all together; one measurement then has to do
  std::function<double()> now_s;  // seconds since any origin
};

struct Steady {
  double median = 0;
  double spread = 0;  // relative standard error of the median, by how much the measurements differ
  std::size_t count = 0;
  bool is_known = false;  // as well as asked; else something disturbed it
};

// Measures until the median is steady; single outliers do not move it. If the later half of the measurements differs
// from the earlier one by far more than the measurements of each do, conditions have changed. The earlier half is then
// dropped, at most twice. Errors: those of `measure`.
[[nodiscard]] Result<Steady> measure_steadily(const std::function<Result<double>()>& measure,
                                              const SteadyOptions& options);

// The same, repeated while the result is not known as well as asked, as on a busy machine. Returns the steadiest of at
// most `most` results.
[[nodiscard]] Result<Steady> measure_calmly(const std::function<Result<double>()>& measure,
                                            const SteadyOptions& options, int most);

// Measures several things in turns, so that all meet the same conditions, until each is known as well as asked. Returns
// their medians in order. What takes more than twice as long as the first one in the first turn is not measured again.
// Errors: those of a measurement.
[[nodiscard]] Result<std::vector<Steady>> measure_in_turns(std::span<const std::function<Result<double>()>> measures,
                                                           const SteadyOptions& options);

// Returns whether `one` is less than `other` by more than `margin`, a share of `other`, and both uncertainties.
[[nodiscard]] bool is_clearly_less(const Steady& one, const Steady& other, double margin);

// Returns `whole` less `part`, with the uncertainty of both. Nothing if the difference is not clearly more than its
// uncertainty: conditions then changed between the two.
[[nodiscard]] std::optional<Steady> without(const Steady& whole, const Steady& part);

}  // namespace shunt
