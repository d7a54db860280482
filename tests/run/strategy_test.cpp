// The devices that each strategy prefers, and how computations run under it.
#include "run/strategy.h"
#include "run/opened_devices.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "devices/discovery/registry.h"
#include "devices/sim/device.h"
#include "shunt/computation.h"
#include "trace/recorder.h"

namespace shunt {
namespace {

using sim::Spec;

const Spec kProcessor{.id = "cpu:0",
                      .type = DeviceType::cpu,
                      .emulated = false,
                      .rate = {.flops_per_s = 1e9, .bytes_per_s = 1e9},
                      .memory_pool = std::string(kHostPool)};
const Spec kEmulated{.id = "emulated:0", .type = DeviceType::cpu, .emulated = true};
const Spec kGpu{.id = "gpu:0", .type = DeviceType::discrete, .emulated = false};

class Strategies : public testing::Test {
 protected:
  // A runtime of simulated devices.
  std::unique_ptr<Runtime> open(const std::vector<Spec>& specs, bool strict = false) {
    auto recorder = std::make_unique<trace::Recorder>();
    recorder->set_enabled(true);
    const auto clock = std::make_shared<sim::VirtualClock>();
    BackendReport report{.api = "sim"};
    for (const Spec& spec : specs) report.devices.push_back(sim::make_sim_device(spec, clock, recorder.get()));
    Registry registry;
    registry.backends.push_back(std::move(report));
    return runtime_over(std::move(registry), std::move(recorder),
                        {.calibrated = false, .strict = strict, .on_notice = [this](const std::string& text) {
                           notices_.push_back(text);
                         }});
  }
  // A product that a GPU finishes first, followed by a softmax.
  static Graph graph() {
    GraphBuilder builder;
    const Tensor x = builder.input("x", DType::F32, {64, 64});
    builder.output(builder.softmax(builder.linear(x, x), {}, {}));
    return *std::move(builder).finish();
  }
  // Returns the devices that run the graph's ops, or why it cannot be made.
  std::string ran_on(const std::vector<Spec>& specs, const ComputationOptions& options, bool strict = false) {
    const auto runtime = open(specs, strict);
    const auto computation = Computation::create(graph(), *runtime, nullptr, options);
    if (!computation) return computation.error().message;
    const std::string text = (*computation)->explain();
    std::string ran;
    for (const Spec& spec : specs)
      if (text.find(" on " + spec.id + ": ") != std::string::npos) ran += (ran.empty() ? "" : " ") + spec.id;
    return ran;
  }

  std::vector<std::string> notices_;
};

TEST_F(Strategies, PreferRealDevicesToEmulatedOnes) {
  const auto preferred = [&](Strategy strategy, const std::vector<Spec>& specs) {
    return preferred_device(strategy, opened(*open(specs)).handles());
  };
  EXPECT_EQ(preferred(Strategy::gpu, {kProcessor, kEmulated, kGpu}), 2U);
  EXPECT_EQ(preferred(Strategy::gpu, {kProcessor, kEmulated}), 1U);
  EXPECT_EQ(preferred(Strategy::gpu, {kProcessor}), kNone);
  EXPECT_EQ(preferred(Strategy::cpu, {kEmulated, kGpu, kProcessor}), 2U);
  EXPECT_EQ(preferred(Strategy::cpu, {kEmulated, kGpu}), kNone);
  for (const Strategy strategy : {Strategy::automatic, Strategy::layers})
    EXPECT_EQ(preferred(strategy, {kProcessor, kGpu}), kNone);
}

TEST_F(Strategies, PlaceGraphsOfOnesOwn) {
  EXPECT_EQ(ran_on({kEmulated, kProcessor, kGpu}, {.strategy = Strategy::gpu}), "gpu:0");
  EXPECT_EQ(ran_on({kEmulated, kProcessor, kGpu}, {.strategy = Strategy::cpu}), "cpu:0");
  EXPECT_EQ(ran_on({kProcessor, kGpu}, {.margin = 0}), "gpu:0");
  EXPECT_EQ(ran_on({kProcessor, kGpu}, {.margin = 1e6}), "cpu:0");
  EXPECT_EQ(ran_on({kProcessor, kGpu}, {.strategy = Strategy::layers}),
            "strategy layers is for language models: a graph of your own has no layers");
  EXPECT_TRUE(notices_.empty());
}

TEST_F(Strategies, LetOthersRunWhatADeviceCannotUnlessThatIsStrict) {
  Spec without_softmax = kGpu;
  without_softmax.lacks = {Op::softmax};
  EXPECT_EQ(ran_on({kProcessor, without_softmax}, {.strategy = Strategy::gpu}), "cpu:0 gpu:0");
  const std::string refused = ran_on({kProcessor, without_softmax}, {.strategy = Strategy::gpu}, true);
  EXPECT_NE(refused.find("\"softmax.1\" cannot run on gpu:0"), std::string::npos) << refused;
}

TEST_F(Strategies, SayWhereThereIsNoSuchDevice) {
  EXPECT_EQ(ran_on({kProcessor}, {.strategy = Strategy::gpu}), "cpu:0");
  const std::string what = "strategy gpu: no such device is among those in use: cpu:0";
  EXPECT_EQ(notices_, std::vector<std::string>{what + "; going on as with auto"});
  EXPECT_EQ(ran_on({kProcessor}, {.strategy = Strategy::gpu}, true), what + "; strict allows no fallback to auto");
  EXPECT_EQ(notices_.size(), 1U);
}

TEST_F(Strategies, AreKnownByName) {
  for (const Strategy strategy : {Strategy::automatic, Strategy::gpu, Strategy::cpu, Strategy::layers})
    EXPECT_EQ(strategy_from_name(name_of(strategy)).value(), strategy);
  const auto unknown = strategy_from_name("random");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code, Code::invalid);
  EXPECT_EQ(unknown.error().message, "unknown strategy \"random\"; choose from: auto gpu cpu layers");
}

TEST_F(Strategies, AComputationIsProfiledWhereThatIsAskedFor) {
  for (const bool profile : {false, true}) {
    auto runtime = Runtime::create({.threads = 1, .devices = "cpu:scalar", .calibrated = false, .trace = true});
    ASSERT_TRUE(runtime.has_value()) << runtime.error().message;
    const auto computation = Computation::create(graph(), **runtime, nullptr, {.profile = profile});
    ASSERT_TRUE(computation.has_value()) << computation.error().message;
    for (int run = 0; run < 3; ++run) ASSERT_TRUE((*computation)->run());
    std::size_t ops = 0;
    for (const trace::ExecutionEvent& event : opened(**runtime).recorder().snapshot())
      if (event.kind == trace::Kind::op) ++ops;
    EXPECT_EQ(ops, profile ? 4U : 0U) << "two ops, in the first two runs";
  }
}

}  // namespace
}  // namespace shunt
