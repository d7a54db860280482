// The table of speed gates is complete; speeds themselves are not tested.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "../../cli/gates.h"

namespace shunt::cli {
namespace {

bool has_gate(std::string_view measure, const auto& matches) {
  return std::ranges::any_of(gates(), [&](const Gate& gate) { return gate.measure_name == measure && matches(gate); });
}

TEST(Gates, HoldEveryFamilyWithASimdKernelToASpeedup) {
  for (const OpInfo& row : ops())
    if (cpu_family(row.family).simd != nullptr) {
      EXPECT_TRUE(has_gate("simd_speedup", [&](const Gate& gate) { return info_of(*gate.op).family == row.family; }))
          << row.family;
    }
}

TEST(Gates, HoldEveryWeightDtypeToTheMachinesLimits) {
  for (std::size_t index = 0; index < dtypes().size(); ++index) {
    const DTypeKind kind = dtypes()[index].kind;
    if (kind == DTypeKind::integer) continue;
    const auto of_linear = [&](GateRows rows) {
      return [=](const Gate& gate) {
        return gate.op == Op::linear && gate.dtype == static_cast<DType>(index) && gate.rows == rows;
      };
    };
    EXPECT_TRUE(has_gate("share_of_read", of_linear(GateRows::one))) << dtypes()[index].name;
    EXPECT_TRUE(has_gate("share_of_peak", of_linear(GateRows::prompt))) << dtypes()[index].name;
    if (kind == DTypeKind::quantized) {
      EXPECT_TRUE(has_gate("speed_over_f16", of_linear(GateRows::one))) << dtypes()[index].name;
    }
  }
}

TEST(Gates, AreAllPossible) {
  for (const Gate& gate : gates()) {
    EXPECT_GT(gate.limit, 0) << gate.measure_name;
    EXPECT_TRUE(gate.limit < 1 || !gate.measure_name.starts_with("share_")) << gate.measure_name;
  }
}

}  // namespace
}  // namespace shunt::cli
