#include "plan/regret.h"

#include <gtest/gtest.h>

#include <tuple>

#include "devices/sim/device.h"
#include "plan/plan.h"
#include "plan/planner.h"
#include "run/graphs.h"
#include "trace/chrome.h"
#include "trace/sample_recording.h"

namespace shunt {
namespace {

using test::SampleRecorder;
using trace::Kind;

// `added_us`: how much longer the whole plan was predicted to take with it.
CandidateRecord candidate(const std::string& device, double added_us, double compute_us = 10) {
  return {.device = device, .reason = "some reason", .compute_us = compute_us, .added_us = added_us};
}

// A plan of one op "add n" on "a" with these candidates.
std::string plan_of(const std::vector<CandidateRecord>& candidates) {
  const PlanRecord plan{.predicted_us = 7,
                        .inputs = {{"x", "F32", {4, 5}}},
                        .units = {{.op = "add",
                                   .call = "add(..)",
                                   .nodes = {"m", "n"},
                                   .device = "a",
                                   .reason = "lower predicted cost",
                                   .candidates = candidates}}};
  return field_json::json_of(plan).dump();
}

Result<std::vector<PlanRegret>> after(SampleRecorder& sample, const std::string& plan, std::uint64_t took_us,
                                      std::string_view named = {}) {
  trace::Recorder& recorder = sample.recorder();
  const std::uint32_t number = recorder.attach(trace::kPlans, plan);
  for (const std::uint64_t us : {took_us - 1, took_us + 1}) {
    trace::ExecutionEvent event{
        .duration_ns = us * 1000, .what = recorder.intern("add n"), .kind = Kind::op, .plan = number};
    recorder.record(event);
    event.kind = Kind::run;
    event.duration_ns *= 2;
    recorder.record(event);
  }
  return regrets_of(recording_of(recorder), named);
}

TEST(Regret, NobodyRegretsAGuess) {
  CandidateRecord guess = candidate("b", -9);
  guess.measured = false;
  for (const double measured_us : {20.0, 0.0}) {
    std::vector<CandidateRecord> candidates = {candidate("a", 0), guess};
    if (measured_us > 0) candidates.push_back(candidate("c", measured_us - 10));
    SampleRecorder sample;
    const auto plans = after(sample, plan_of(candidates), 25);
    ASSERT_TRUE(plans.has_value()) << plans.error().message;
    const DecisionRegret& judged = plans->front().decisions.at(0);
    EXPECT_EQ(judged.best_other, measured_us > 0 ? "c" : "");
    EXPECT_EQ(judged.regret_us, measured_us > 0 ? 5 : 0);
  }
}

TEST(Regret, TheScalarReferenceCountsWhereItIsNamed) {
  const std::string plan = plan_of({candidate("a", 0), candidate("cpu:scalar", 5)});
  for (const auto& [named, regret_us] : {std::pair("", 0), std::pair("a,cpu", 0), std::pair("a, cpu:scalar", 10)}) {
    SampleRecorder sample;
    const auto plans = after(sample, plan, 25, named);
    ASSERT_TRUE(plans.has_value()) << plans.error().message;
    EXPECT_EQ(plans->front().regret_us(), regret_us) << named;
  }
}

TEST(Regret, APlanMadeByHandIsComparedWithTheBest) {
  const auto plan_with = [](double best_us, bool measured) {
    PlanRecord plan{.predicted_us = 40, .best_us = best_us, .measured = measured, .inputs = {}, .units = {}};
    plan.units.push_back({.op = "add",
                          .call = "add(..)",
                          .nodes = {"m", "n"},
                          .device = "a",
                          .reason = "placed by hand",
                          .candidates = {candidate("a", 0, 40)}});
    return field_json::json_of(plan).dump();
  };
  for (const auto& [best_us, measured, regret_us] :
       {std::tuple(30.0, true, 20.0), std::tuple(40.0, true, 0.0), std::tuple(30.0, false, 0.0)}) {
    SampleRecorder sample;
    const auto plans = after(sample, plan_with(best_us, measured), 25);  // a run takes 50 us
    ASSERT_TRUE(plans.has_value()) << plans.error().message;
    EXPECT_EQ(plans->front().regret_us(), regret_us);
  }
}

TEST(Regret, RegretIsWhatTheBestOtherWouldHaveSaved) {
  SampleRecorder sample;
  const auto plans = after(sample,
                           plan_of({candidate("a", 0),
                                    candidate("b", 30, 2),
                                    candidate("c", 8),
                                    {.device = "d", .reason = "cannot run it", .detail = "no such kernel"}}),
                           25);
  ASSERT_TRUE(plans.has_value()) << plans.error().message;
  ASSERT_EQ(plans->size(), 1U);
  const DecisionRegret& judged = plans->front().decisions.at(0);
  EXPECT_EQ(judged.actual.times, 2U);
  EXPECT_EQ(judged.actual.mean_us, 25);
  EXPECT_EQ(judged.actual.least_us, 24);
  EXPECT_EQ(judged.actual.most_us, 26);
  EXPECT_EQ(judged.predicted_us(), 10);
  EXPECT_EQ(judged.best_other, "c");
  EXPECT_EQ(judged.regret_us, 25 - 10 - 8);
  EXPECT_EQ(plans->front().regret_us(), judged.regret_us);
  EXPECT_EQ(plans->front().actual.mean_us, 50);
  EXPECT_EQ(plans->front().title(), "a graph of x F32[4,5]");
  const std::string text = to_text(plans->front());
  EXPECT_NE(text.find("took 25.0 us (24.0 us .. 26.0 us, 2 times); regret 7.0 us against c"), std::string::npos)
      << text;
  EXPECT_NE(text.find("d: cannot run it (no such kernel)"), std::string::npos) << text;
}

TEST(Regret, RunsWithoutAPredictionCountOnlyWhereThereAreNoOthers) {
  SampleRecorder sample;
  trace::Recorder& recorder = sample.recorder();
  for (const float predicted_us : {0.0F, 8.0F}) {
    const std::uint32_t number = recorder.attach(trace::kPlans, plan_of({candidate("a", 0)}));
    recorder.record({.duration_ns = 90'000, .kind = Kind::run, .plan = number});
    recorder.record({.duration_ns = 9'000, .kind = Kind::run, .plan = number, .predicted_us = predicted_us});
  }
  const auto plans = regrets_of(recording_of(recorder));
  ASSERT_TRUE(plans.has_value()) << plans.error().message;
  EXPECT_EQ(plans->at(0).actual.times, 2U);
  EXPECT_EQ(plans->at(1).actual.times, 1U);
  EXPECT_EQ(plans->at(1).actual.mean_us, 9);
}

TEST(Regret, WhatWasFastOrHadNoOtherIsNotRegretted) {
  SampleRecorder sample;
  ASSERT_TRUE(after(sample, plan_of({candidate("a", 0), candidate("b", 30, 2)}), 25).has_value());
  const auto plans = after(sample, plan_of({candidate("a", 0), {.device = "b", .reason = "cannot run it"}}), 99);
  ASSERT_TRUE(plans.has_value());
  ASSERT_EQ(plans->size(), 2U);
  EXPECT_EQ(plans->at(0).decisions.at(0).regret_us, 0);
  EXPECT_EQ(plans->at(0).decisions.at(0).best_other, "b");
  EXPECT_EQ(plans->at(1).decisions.at(0).regret_us, 0);
  EXPECT_EQ(plans->at(1).decisions.at(0).best_other, "");
  EXPECT_EQ(plans->at(1).decisions.at(0).actual.mean_us, 99);
}

TEST(Regret, APlanThatIsNotOursIsRefused) {
  for (const char* text : {"{}", "[]", "3", R"({"predicted_us":1,"measured":true,"inputs":[],"units":[{}]})"}) {
    SampleRecorder sample;
    const auto plans = after(sample, text, 5);
    ASSERT_FALSE(plans.has_value()) << text;
    EXPECT_EQ(plans.error().code, Code::invalid);
    EXPECT_NE(plans.error().message.find("plan 1"), std::string::npos);
  }
}

// A planner's plan survives writing to a trace and reading back, with every decision.
TEST(Regret, ReadsThePlansThatPlannersMake) {
  const Graph graph = test::branching_graph(3, 4);
  test::SeparateDevices machine(3);
  const auto plan = make_plan({.graph = &graph, .devices = machine.devices});
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  SampleRecorder sample;
  sample.recorder().attach(trace::kPlans, to_json(*plan, graph));
  const auto again = trace::from_chrome_json(to_chrome_json(recording_of(sample.recorder())), "trace");
  ASSERT_TRUE(again.has_value()) << again.error().message;
  const auto plans = regrets_of(*again);
  ASSERT_TRUE(plans.has_value()) << plans.error().message;
  ASSERT_EQ(plans->front().decisions.size(), plan->units.size());
  EXPECT_EQ(plans->front().decisions.front().decision.candidates.size(), 3U);
  EXPECT_FALSE(plans->front().plan.inputs.empty());
  EXPECT_EQ(plans->front().plan.best_us, plans->front().plan.predicted_us);
  EXPECT_EQ(plans->front().actual.times, 0U);
}

}  // namespace
}  // namespace shunt
