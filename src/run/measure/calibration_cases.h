// Selects the shapes of ops to measure: those that models have, those of a graph, and those of steps to come. Plain
// functions; any thread.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "devices/device.h"
#include "ops/bench_case.h"
#include "shunt/graph.h"

namespace shunt {

// The numbers of tokens of the steps in which ops are measured.
inline constexpr std::array kMeasuredTokens = {1U, 2U, 4U, 8U, 16U, 32U, 64U, 128U, 512U};
// Returns whether a case of a step is measured: with 32 and 64 tokens only ops that read a cache are, which have
// kernels for few and for many tokens there.
[[nodiscard]] bool is_measured(const BenchCase& use);
// Returns the shapes that models have, of the ops and dtypes that they use; `quick`: fewer of each.
[[nodiscard]] std::vector<BenchCase> calibration_cases(bool quick, Numerics numerics);
// Returns each different shape that a device would compute of a graph, if it were alone.
[[nodiscard]] std::vector<BenchCase> cases_of(const Graph& graph, Device& device);

// Returns shapes between those of calibration_cases().
[[nodiscard]] std::vector<BenchCase> unseen_cases(Numerics numerics);

// Names the kind of a case as the device computes it (kind_of()).
[[nodiscard]] std::string kind_on(const Device& device, const OpCall& call);

// A step that is to run `times` times.
struct Workload {
  const Graph* graph = nullptr;
  double times = 0;
};
// Returns each different shape that a device would compute of these steps. Kinds are ordered by the time that they
// should take altogether. The least work of each comes first, to predict the rest.
[[nodiscard]] std::vector<BenchCase> cases_by_time(std::span<const Workload> work, Device& device);

// Returns the cost by the op's cost rule.
[[nodiscard]] Cost cost_of(const OpCall& call);
// The sum of operations and bytes.
[[nodiscard]] double work_of(const BenchCase& use);

}  // namespace shunt
