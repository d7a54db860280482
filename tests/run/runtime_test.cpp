#include "shunt/runtime.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "shunt/computation.h"
#include "shunt/trace.h"

namespace shunt {
namespace {

TEST(Runtime, RefusesAProcessorThatThisProcessMayNotUse) {
  const auto runtime = Runtime::create({.threads = 2, .pin_to_cpus = {0, 4000}});
  ASSERT_FALSE(runtime.has_value());
  EXPECT_EQ(runtime.error().code, Code::invalid);
  EXPECT_NE(runtime.error().message.find("processor 4000"), std::string::npos) << runtime.error().message;
}

// 2 x + x.
Result<std::unique_ptr<Computation>> small_computation(const Runtime& runtime) {
  GraphBuilder graph;
  const Tensor x = graph.input("x", DType::F32, {4});
  graph.output(graph.add(graph.scale(x, {{Attr::factor, 2.0F}}), x));
  SHUNT_TRY_ASSIGN(Graph made, std::move(graph).finish());
  return Computation::create(std::move(made), runtime, nullptr, {.profile = true});
}

TEST(Runtime, TellsWhatRanWhereAndWhyAndForgetsIt) {
  const auto runtime = Runtime::create({.threads = 1, .devices = "cpu:scalar", .calibrated = false, .trace = true});
  ASSERT_TRUE(runtime.has_value()) << runtime.error().message;
  EXPECT_EQ(summarize((*runtime)->recording()).devices.size(), 0U);
  const auto computation = small_computation(**runtime);
  ASSERT_TRUE(computation.has_value()) << computation.error().message;
  for (int run = 0; run < 2; ++run) ASSERT_TRUE((*computation)->run().has_value());

  const trace::Recording recording = (*runtime)->recording();
  const auto op = std::ranges::find(recording.events, trace::Kind::op, &trace::ExecutionEvent::kind);
  ASSERT_NE(op, recording.events.end());
  EXPECT_EQ(recording.op_of(*op), "scale");
  EXPECT_EQ(recording.text_of(op->device), "cpu:scalar");
  EXPECT_EQ(recording.text_of(op->reason), "only candidate");
  EXPECT_EQ(outcome_of(*op), "ok");
  EXPECT_GT(op->predicted_us, 0.0F);
  const trace::ExecutionSummary summary = summarize(recording);
  EXPECT_EQ(summary.runs.events, 2U);
  ASSERT_EQ(summary.devices.size(), 1U);
  EXPECT_EQ(summary.devices[0].name, "cpu:scalar");
  EXPECT_EQ(summary.devices[0].events, 2U);
  EXPECT_GT(summary.devices[0].predicted_us, 0.0);
  EXPECT_EQ(summary.ops.size(), 2U);
  EXPECT_NE(to_text(summary).find("cpu:scalar"), std::string::npos);
  EXPECT_NE(to_json(summary).find("\"ops\":["), std::string::npos);
  EXPECT_EQ(std::ranges::count(to_json_lines(recording), '\n'), static_cast<std::ptrdiff_t>(recording.events.size()));

  (*runtime)->clear_recording();
  EXPECT_TRUE((*runtime)->recording().events.empty());
  ASSERT_TRUE((*computation)->run().has_value());
  EXPECT_EQ(summarize((*runtime)->recording()).runs.events, 1U);
}

TEST(Runtime, RecordsNothingThatNobodyAskedFor) {
  const auto runtime = Runtime::create({.threads = 1, .devices = "cpu:scalar", .calibrated = false});
  ASSERT_TRUE(runtime.has_value()) << runtime.error().message;
  const auto computation = small_computation(**runtime);
  ASSERT_TRUE(computation.has_value()) << computation.error().message;
  ASSERT_TRUE((*computation)->run().has_value());
  EXPECT_TRUE((*runtime)->recording().events.empty());
}

}  // namespace
}  // namespace shunt
