// Plans say which kernel runs an op where its device has several, and why that one.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "devices/two_kernels.h"
#include "plan/planner.h"
#include "plan/record.h"
#include "run/graphs.h"

namespace shunt {
namespace {

TEST(PlannedKernels, AreNamedWithTheirReason) {
  test::TwoKernels device(sim::make_sim_device({.id = "sim:0"}, std::make_shared<sim::VirtualClock>()), Op::linear, 1,
                          {});
  GraphBuilder builder;
  const Tensor x = builder.input("x", DType::F32, {4, 64});
  builder.output(builder.silu(builder.linear(x, builder.weight("w", DType::F32, {64, 64}))));
  const Graph graph = *std::move(builder).finish();
  Device* const devices[] = {&device};
  const auto plan_now = [&] { return *make_plan({.graph = &graph, .devices = devices}); };
  const auto kernel_in = [&](const Plan& plan) {
    return nlohmann::json::parse(to_json(plan, graph))["units"][0]["candidates"][0];
  };
  const Plan by_rule = plan_now();
  EXPECT_NE(to_text(by_rule, graph, false).find("on sim:0 by plain (by rule): "), std::string::npos)
      << to_text(by_rule, graph, false);
  EXPECT_EQ(kernel_in(by_rule)["kernel"], "plain");
  EXPECT_EQ(kernel_in(by_rule)["kernel_measured"], false);

  const UnitCall unit(graph, by_rule.units[0]);
  const OpCall call = unit.call();
  device.choose_kernels({{choice_kind(call, device.kernels_for(call, Layout::rows)),
                          {{.cost = info_of(call.op).rule->cost(call), .kernel = "quick"}}}});
  const Plan measured = plan_now();
  const std::string text = to_text(measured, graph, true);
  EXPECT_NE(text.find("on sim:0 by quick (measured): "), std::string::npos) << text;
  EXPECT_NE(text.find(", by quick (measured)"), std::string::npos) << text;
  EXPECT_EQ(text.find("by plain"), std::string::npos) << text;
  EXPECT_EQ(kernel_in(measured)["kernel"], "quick");
  EXPECT_EQ(kernel_in(measured)["kernel_measured"], true);
}

}  // namespace
}  // namespace shunt
