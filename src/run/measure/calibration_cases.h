// Which shapes of ops are measured: those that models have, those of a graph, and those of steps that are to run. Plain
// functions; any thread.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "devices/device.h"
#include "ops/bench_case.h"
#include "shunt/graph.h"

namespace shunt {

// In steps of so many tokens ops are measured.
inline constexpr std::array kMeasuredTokens = {1U, 2U, 4U, 8U, 16U, 128U, 512U};
// What to measure. The shapes that models have, of the ops and dtypes that they use; `quick`: fewer of each.
[[nodiscard]] std::vector<BenchCase> calibration_cases(bool quick);
// Each different shape that a device would compute of a graph, were it alone.
[[nodiscard]] std::vector<BenchCase> cases_of(const Graph& graph, Device& device);

// Shapes between those of calibration_cases().
[[nodiscard]] std::vector<BenchCase> unseen_cases();

// A step that is to run so often.
struct Workload {
  const Graph* graph = nullptr;
  double times = 0;
};
// Each different shape that a device would compute of these steps: kinds by the time that they should take altogether,
// and the least work of each first, which tells what the others take.
[[nodiscard]] std::vector<BenchCase> cases_by_time(std::span<const Workload> work, Device& device);

// By the op's cost rule.
[[nodiscard]] Cost cost_of(const OpCall& call);
// Operations and bytes.
[[nodiscard]] double work_of(const BenchCase& use);

}  // namespace shunt
