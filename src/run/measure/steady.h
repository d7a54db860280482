// Repeats a measurement until its median is known well enough. Pure but for the measurement; one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "shunt/status.h"

namespace shunt {

struct SteadyOptions {
  double relative = 0.015;  // how well the median has to be known
  std::size_t least = 5;    // measurements
  std::size_t most = 25;
  double most_seconds = 1;        // of all together; what was measured once then stands
  std::function<double()> now_s;  // seconds since any origin
};

struct Steady {
  double median = 0;
  double spread = 0;  // relative: the standard error of the median, by how far the measurements lie apart
  std::size_t count = 0;
  bool is_known = false;  // as well as was asked for; else something disturbed it
};

// Single outliers do not move it. Where the later half of the measurements differs from the earlier one by far more
// than they do among themselves, conditions have changed: the earlier ones are forgotten, twice at most. Errors: those
// of `measure`.
[[nodiscard]] Result<Steady> measure_steadily(const std::function<Result<double>()>& measure,
                                              const SteadyOptions& options);

// The same, again where it is not known as well as asked for, as beside a busy machine: the steadiest of `most` times.
[[nodiscard]] Result<Steady> measure_calmly(const std::function<Result<double>()>& measure,
                                            const SteadyOptions& options, int most);

// What of `whole` is not `part` of it, with the uncertainty of both; nothing where it is not clearly more than that
// uncertainty: the two were then measured at different moments of the machine.
[[nodiscard]] std::optional<Steady> without(const Steady& whole, const Steady& part);

}  // namespace shunt
