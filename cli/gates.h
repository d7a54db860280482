// The speed gates: the rows of gates.def, and one for each kernel family with a SIMD kernel that no row names.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "ops/kernel.h"
#include "ops/op.h"

namespace shunt::cli {

enum class Measure : std::uint8_t {
  simd_speedup,
  share_of_read,
  share_of_peak,
  speed_over_f16,
  speed_over_exact,
  fork_join_us,
  trace_event_ns,
  plan_op_us,
  found_op_ns
};
enum class GateRows : std::uint8_t { one, prompt };

struct Gate {
  Measure measure;
  std::string_view measure_name;
  std::optional<Op> op;
  DType dtype;
  GateRows rows;
  double limit;

  [[nodiscard]] bool is_upper_bound() const { return !op; }
  [[nodiscard]] bool passes(double value) const { return is_upper_bound() ? value <= limit : value >= limit; }
};

inline std::vector<Gate> gates() {
  std::vector<Gate> all = {
#define SHUNT_GATE(measure, op, dtype, rows, limit) \
  {Measure::measure, #measure, Op::op, DType::dtype, GateRows::rows, limit},
#define SHUNT_LIMIT_GATE(measure, limit) {Measure::measure, #measure, std::nullopt, DType::F32, GateRows::one, limit},
#include "gates.def"
  };
  for (std::size_t number = 0; number < ops().size(); ++number) {
    const OpInfo& row = ops()[number];
    const auto holds_family = [&](const Gate& gate) {
      return gate.measure == Measure::simd_speedup && info_of(*gate.op).family == row.family;
    };
    if (row.can_be_sampled() && cpu_family(row.family).simd != nullptr && std::ranges::none_of(all, holds_family))
      all.push_back({Measure::simd_speedup, "simd_speedup", static_cast<Op>(number), row.rule->bench_dtype,
                     GateRows::prompt, 1.0});
  }
  return all;
}

}  // namespace shunt::cli
