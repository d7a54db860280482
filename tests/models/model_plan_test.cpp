// A model's plans and traces: no op on cpu:scalar, and one event for each op that ran.
#include <nlohmann/json.hpp>

#include "models/gguf/gguf_bytes.h"
#include "models/quantize/mixture.h"
#include "models/quantize/quantizer.h"
#include "models/random/random_model.h"
#include "models/reference.h"
#include "models/step_planner.h"
#include "run/opened_devices.h"
#include "trace/chrome.h"
#include "trace/recorder.h"
#include "trace/recording.h"

namespace shunt::models {
namespace {

void expect_simd_only(const Model& model, const Runtime& runtime) {
  for (const std::uint32_t tokens : {1U, 2U, 64U, 512U})
    for (const DType cache : cache_dtypes())
      for (const bool fuse : {true, false}) {
        const SessionOptions options{.max_sequences = 2, .cache_dtype = cache, .fuse = fuse};
        const PlannedGraph step = Loaded::take(StepPlanner(model, runtime, options, 512).plan(tokens, 2));
        EXPECT_TRUE(check(step.plan, step.graph).has_value());
        ASSERT_FALSE(step.plan.units.empty());
        for (std::size_t i = 0; i < step.plan.units.size(); ++i)
          EXPECT_EQ(step.plan.devices[step.plan.decisions[i].device].id, "cpu:simd")
              << to_string(UnitCall(step.graph, step.plan.units[i]).call());
        for (const Op fused : {Op::rotary_cache_write, Op::linear_add})
          EXPECT_EQ(std::ranges::count(step.plan.units, fused, &Unit::op) > 0, fuse) << name_of(fused);
      }
}

TEST(ModelPlan, NoOpOfTheTrainedModelIsScalarInAnyFileType) {
  TestFolder folder;
  const auto runtime = Loaded::take(Runtime::create({.threads = 2}));
  ASSERT_EQ(opened(*runtime).handles().size(), 2U);
  for (const char* type : {"F16", "Q8_0", "Q4_0", "Q4_K_M"}) {
    SCOPED_TRACE(type);
    const Status written = quantize_file(kTrainedModel, folder.file(type), type, {.threads = 2});
    ASSERT_TRUE(written.has_value()) << written.error().message;
    expect_simd_only(*Loaded::take(Model::load(folder.file(type))), *runtime);
  }
}

TEST(ModelPlan, NoOpOfARandomModelIsScalarInAnyFileTypeThereIs) {
  TestFolder folder;
  const auto runtime = Loaded::take(Runtime::create({.threads = 2}));
  for (const Mixture& mixture : mixtures()) {
    SCOPED_TRACE(mixture.name);
    const std::string path = folder.file(mixture.name);
    ASSERT_TRUE(make_model("micro", mixture.name, path).has_value());
    expect_simd_only(*Loaded::take(Model::load(path)), *runtime);
  }
}

TEST(ModelPlan, IsMadeOnceForStepsOfOneSize) {
  const auto runtime = Loaded::take(Runtime::create({.threads = 2}));
  const auto model = Loaded::take(Model::load(kTrainedModel));
  const auto session = Loaded::take(Session::create(*model, *runtime, {.context = 64}));
  const Plan* plan = Loaded::take(session->plan_for(3, 1));
  EXPECT_EQ(Loaded::take(session->plan_for(4, 1)), plan);
  EXPECT_EQ(Loaded::take(session->plan_for(3, 1)), plan);
}

TEST(ModelTrace, HasAnEventForEachOpInsideItsProgram) {
  const auto runtime = Loaded::take(Runtime::create({.threads = 2, .trace = true}));
  const auto model = Loaded::take(Model::load(kTrainedModel));
  const auto session = Loaded::take(Session::create(*model, *runtime, {.context = 64, .profile = true}));
  const std::vector<Token> prompt = {1, 300, 301, 302};
  ASSERT_TRUE(session->prefill(0, prompt).has_value());
  ASSERT_TRUE(session->prefill(0, std::span(prompt).first(1)).has_value());

  const auto json =
      nlohmann::json::parse(trace::to_chrome_json(recording_of(opened(*runtime).recorder())), nullptr, false);
  ASSERT_TRUE(json.is_object());
  for (std::uint32_t step = 0; step < 2; ++step) {
    const Plan& plan = *Loaded::take(session->plan_for(step == 0 ? 4 : 1, 1));
    std::vector<nlohmann::json> ops;
    std::vector<nlohmann::json> programs;
    std::vector<nlohmann::json> runs;
    for (const auto& event : json["traceEvents"]) {
      if (event["ph"] != "X" || event["args"]["step"] != step) continue;
      EXPECT_EQ(event["args"]["outcome"], "ok");
      (event["cat"] == "op" ? ops : event["cat"] == "run" ? runs : programs).push_back(event);
    }
    ASSERT_EQ(ops.size(), plan.units.size());
    ASSERT_EQ(programs.size(), 1U);
    ASSERT_EQ(runs.size(), 1U);
    EXPECT_EQ(runs[0]["args"]["plan"], step + 1);
    EXPECT_FLOAT_EQ(runs[0]["args"].value("predicted_us", 0.0F), static_cast<float>(plan.predicted_us));
    EXPECT_FLOAT_EQ(programs[0]["args"].value("predicted_us", 0.0F), static_cast<float>(plan.predicted_us));
    EXPECT_FALSE(programs[0]["args"].contains("reason"));
    const double begin = programs[0]["ts"];
    const double end = begin + programs[0]["dur"].get<double>();
    double now = begin;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const auto name = ops[i]["name"].get<std::string>();
      EXPECT_TRUE(name.starts_with(std::string(name_of(plan.units[i].op)) + " ")) << name;
      const Decision& decision = plan.decisions[i];
      EXPECT_EQ(ops[i]["args"].value("reason", ""), name_of(decision.reason)) << name;
      const auto predicted_us = static_cast<float>(decision.candidates[decision.device].compute_us);
      EXPECT_GT(predicted_us, 0) << name;
      EXPECT_FLOAT_EQ(ops[i]["args"].value("predicted_us", 0.0F), predicted_us) << name;
      EXPECT_GE(ops[i]["ts"].get<double>(), now - 0.002) << name;  // timestamps are microseconds with three digits
      now = ops[i]["ts"].get<double>() + ops[i]["dur"].get<double>();
      EXPECT_LE(now, end + 0.002) << name;
    }
  }
  std::vector<std::string> tracks;
  for (const auto& event : json["traceEvents"])
    if (event["name"] == "thread_name") tracks.push_back(event["args"]["name"]);
  EXPECT_EQ(tracks, (std::vector<std::string>{"runs", "cpu:simd", "cpu:simd ops"}));
}

TEST(ModelTrace, HasAProgramAndARunPerStepUnlessOpsAreAskedFor) {
  const auto runtime = Loaded::take(Runtime::create({.threads = 1, .trace = true}));
  const auto model = Loaded::take(Model::load(kTrainedModel));
  const auto session = Loaded::take(Session::create(*model, *runtime, {.context = 64}));
  const std::vector<Token> prompt = {1, 300};
  for (int step = 0; step < 3; ++step) ASSERT_TRUE(session->prefill(0, prompt).has_value());
  const auto events = opened(*runtime).recorder().snapshot();
  ASSERT_EQ(events.size(), 6U);
  for (std::size_t index = 0; index < events.size(); ++index)
    EXPECT_EQ(events[index].kind, index % 2 == 0 ? trace::Kind::program : trace::Kind::run);
}

}  // namespace
}  // namespace shunt::models
