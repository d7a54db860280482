#include "run/measure/calibration_cases.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <ranges>
#include <set>

#include "plan/costs/cost.h"
#include "plan/units.h"

namespace shunt {
namespace {

// Heads have 64 elements, and four share keys and values.
OpSizes sizes_of(std::uint32_t embedding, std::uint32_t feed_forward, std::uint32_t vocabulary, std::uint32_t context) {
  return {.embedding = embedding,
          .feed_forward = feed_forward,
          .heads = embedding / 64,
          .kv_heads = embedding / 64 / 4,
          .head_dim = 64,
          .vocabulary = vocabulary,
          .page_tokens = 32,
          .context = context};
}

// The dtypes of most models.
bool is_usual(DType dtype) {
  constexpr DType kUsual[] = {DType::F32, DType::F16, DType::Q8_0, DType::Q4_0, DType::Q4_K, DType::Q6_K};
  return std::ranges::find(kUsual, dtype) != std::end(kUsual);
}

// Ops that read matrices or a cache have different kernels for one token, few tokens and many.
bool has_kernels_for_few(const BenchCase& use) {
  return std::ranges::any_of(use.inputs, [](const BenchInput& input) {
    return input.operand.shape.rank() > 1 &&
           (input.operand.kind == TensorKind::weight || input.operand.kind == TensorKind::state);
  });
}

}  // namespace

bool is_measured(const BenchCase& use) {
  const auto is_cache = [](const BenchInput& input) { return input.operand.kind == TensorKind::state; };
  const bool reads_cache = use.output.kind != TensorKind::state && std::ranges::any_of(use.inputs, is_cache);
  return reads_cache || (use.rows != 32 && use.rows != 64);
}

Cost cost_of(const OpCall& call) { return info_of(call.op).rule->cost(call); }

double work_of(const BenchCase& use) {
  const Cost cost = cost_of(BenchOperands(use).call());
  return cost.flops + cost.bytes();
}

std::vector<BenchCase> cases_by_time(std::span<const Workload> work, Device& device) {
  struct Kind {
    double us = 0;
    std::map<std::string, BenchCase> cases;
  };
  Device* const devices[] = {&device};
  const std::vector<DeviceCost> costs = prior_costs(devices);
  CostCache cost_cache(devices, costs);
  std::map<std::string, Kind> by_name;
  for (const Workload& step : work)
    for (const Unit& unit :
         choose_units(PlanProblem({.graph = step.graph, .devices = devices, .costs = costs, .cost_cache = &cost_cache}),
                      {}, {})) {
      const UnitCall unit_call(*step.graph, unit);
      const OpCall call = unit_call.call();
      const OpCost& cost = cost_cache.of(call, 0);
      if (!cost.support) continue;
      Kind& kind = by_name[kind_of(call, cost.support.arithmetic)];
      kind.us += step.times * cost.compute.us;
      kind.cases.emplace(to_string(call), bench_case_of(call));
    }
  std::vector<const Kind*> kinds;
  for (const auto& [name, kind] : by_name) kinds.push_back(&kind);
  std::ranges::stable_sort(kinds, std::greater(), &Kind::us);
  std::vector<BenchCase> cases;
  for (const Kind* kind : kinds) {
    const auto first = static_cast<std::ptrdiff_t>(cases.size());
    std::ranges::copy(kind->cases | std::views::values, std::back_inserter(cases));
    std::stable_sort(cases.begin() + first, cases.end(),
                     [](const BenchCase& one, const BenchCase& other) { return work_of(one) < work_of(other); });
  }
  return cases;
}

std::vector<BenchCase> calibration_cases(bool quick, Numerics numerics) {
  std::vector<BenchCase> cases;
  std::set<std::pair<std::string, std::vector<double>>> seen;
  // From a small model to one of a billion parameters.
  const OpSizes models[] = {sizes_of(512, 1536, 32000, 512), sizes_of(1024, 4096, 32000, 512),
                            sizes_of(2048, 8192, 32000, 2048)};
  for (OpSizes sizes : models)
    for (const std::uint32_t prompt : kMeasuredTokens) {
      if (prompt == 1 || (quick && prompt != 4 && prompt != 128)) continue;
      const bool is_middle = sizes.embedding == models[1].embedding;
      sizes.prompt = prompt;
      for (std::size_t op = 0; op < ops().size(); ++op) {
        const auto uses = bench_cases(static_cast<Op>(op), sizes);
        if (!uses) continue;  // the sizes do not fit the op
        for (const BenchCase& use : *uses) {
          const BenchOperands operands(use);
          const Cost cost = cost_of(operands.call());
          if (!is_measured(use)) continue;
          if (use.rows > 1 && use.rows < 16 && (is_middle || !has_kernels_for_few(use))) continue;
          if (!is_usual(use.dtype) && (quick || is_middle || prompt == 2 || prompt == 8 || prompt == 16)) continue;
          if (seen.emplace(kind_of(operands.call(), Arithmetic::f32),
                           std::vector{cost.flops, cost.bytes_read, cost.bytes_written})
                  .second)
            cases.push_back(use);
        }
      }
    }
  for (BenchCase& use : cases) use.numerics = numerics;
  return cases;
}

std::vector<BenchCase> cases_of(const Graph& graph, Device& device) {
  Device* const devices[] = {&device};
  const std::vector<DeviceCost> costs = prior_costs(devices);
  CostCache cost_cache(devices, costs);
  std::vector<BenchCase> cases;
  std::set<std::string> seen;
  for (const bool fuse : {true, false})
    for (const Unit& unit :
         choose_units(PlanProblem({.graph = &graph, .devices = devices, .costs = costs, .cost_cache = &cost_cache}), {},
                      {.fuse = fuse})) {
      const UnitCall unit_call(graph, unit);
      const OpCall call = unit_call.call();
      if (cost_cache.of(call, 0).support && seen.insert(to_string(call)).second) cases.push_back(bench_case_of(call));
    }
  return cases;
}

std::vector<BenchCase> unseen_cases(Numerics numerics) {
  OpSizes between = sizes_of(1280, 3584, 24000, 1024);
  between.prompt = 200;
  std::vector<BenchCase> cases;
  for (std::size_t op = 0; op < ops().size(); ++op)
    if (auto uses = bench_cases(static_cast<Op>(op), between)) std::ranges::move(*uses, std::back_inserter(cases));
  for (BenchCase& use : cases) use.numerics = numerics;
  return cases;
}

std::string kind_on(const Device& device, const OpCall& call) {
  return kind_of(call, device.supports(std::span(&call, 1)).arithmetic);
}

}  // namespace shunt
