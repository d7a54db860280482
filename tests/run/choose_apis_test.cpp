// Which of the APIs that offer a GPU a graph runs on, and what happens when that API fails.
#include "run/choose_apis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/parse_json.h"
#include "devices/sim/device.h"
#include "run/opened_devices.h"
#include "shunt/computation.h"

namespace shunt {
namespace {

using sim::Rate;
using sim::Spec;

constexpr Rate kFast{.flops_per_s = 1e9, .bytes_per_s = 1e9};
constexpr Rate kSlow{.flops_per_s = 1e8, .bytes_per_s = 1e8};
constexpr const char* kTwoApis = SHUNT_TEST_DATA "/../../examples/machines/two-apis.json";

Spec processor() {
  return {.id = "cpu:0",
          .type = DeviceType::cpu,
          .emulated = false,
          .rate = {.flops_per_s = 1e7, .bytes_per_s = 1e7},
          .memory_pool = std::string(kHostPool)};
}

Spec gpu(std::string id, Rate rate, std::string_view resource = "gpu") {
  return {.id = std::move(id),
          .type = DeviceType::discrete,
          .emulated = false,
          .launch_us = 1,
          .op_us = 0.1,
          .rate = rate,
          .link = {.latency_us = 1, .bytes_per_s = 1e10},
          .memory_resource = std::string(resource),
          .compute_resource = std::string(resource)};
}

Graph products() {
  GraphBuilder builder;
  const Tensor x = builder.input("x", DType::F32, {64, 64});
  builder.output(builder.linear(builder.linear(x, x), x));
  return *std::move(builder).finish();
}

Graph softmaxes() {
  GraphBuilder builder;
  const Tensor x = builder.input("x", DType::F32, {256, 256});
  builder.output(builder.softmax(builder.softmax(x, {}, {}), {}, {}));
  return *std::move(builder).finish();
}

// The devices of a computation's plan.
std::vector<std::string> devices_of(const Computation& computation) {
  std::vector<std::string> ids;
  const Json plan = parse_json(computation.explain_json());
  for (const Json& device : plan["devices"]) ids.push_back(device["id"]);
  return ids;
}

class Apis : public testing::Test {
 protected:
  // The last `spares` devices are spare.
  std::unique_ptr<Runtime> open(const std::vector<Spec>& specs, std::size_t spares) {
    BackendReport report{.api = "sim"};
    report.devices = sim::make_sim_devices(specs, std::make_shared<sim::VirtualClock>());
    Registry registry;
    registry.backends.push_back(std::move(report));
    return runtime_over(
        std::move(registry), std::make_unique<trace::Recorder>(0),
        {.calibrated = false, .on_notice = [this](const std::string& text) { notices_.push_back(text); }}, spares);
  }
  static std::unique_ptr<Computation> compute(Graph graph, const Runtime& runtime,
                                              const ComputationOptions& options = {}) {
    auto computation = Computation::create(std::move(graph), runtime, nullptr, options);
    EXPECT_TRUE(computation.has_value()) << computation.error().message;
    return std::move(*computation);
  }
  // Returns the devices of the graph's plan on these devices, the last of which is spare, and how it explains them.
  std::string planned(Graph graph, const std::vector<Spec>& specs, const ComputationOptions& options = {}) {
    const auto runtime = open(specs, 1);
    const auto computation = compute(std::move(graph), *runtime, options);
    explanation_ = computation->explain();
    others_ = parse_json(computation->explain_json())["other_apis"];
    return fmt::format("{}", fmt::join(devices_of(*computation), " "));
  }

  std::vector<std::string> notices_;
  std::string explanation_;
  Json others_;
};

TEST_F(Apis, EachGraphUsesTheOnePredictedFasterForIt) {
  Spec cuda = gpu("cuda:0", kFast);
  Spec vulkan = gpu("vulkan:0", kSlow);
  cuda.rate_of_family["softmax"] = kSlow;
  vulkan.rate_of_family["softmax"] = kFast;
  EXPECT_EQ(planned(products(), {processor(), cuda, vulkan}), "cpu:0 cuda:0");
  EXPECT_NE(explanation_.find("cuda:0 rather than vulkan:0: predicted "), std::string::npos) << explanation_;
  ASSERT_EQ(others_.size(), 1U);
  EXPECT_EQ(others_[0]["used"], "cuda:0");
  EXPECT_EQ(others_[0]["other"], "vulkan:0");
  EXPECT_EQ(others_[0]["work"], "a run");
  EXPECT_GT(others_[0]["other_us"].get<double>(), 5 * others_[0]["used_us"].get<double>());
  EXPECT_EQ(planned(softmaxes(), {processor(), cuda, vulkan}), "cpu:0 vulkan:0");
  EXPECT_NE(explanation_.find("vulkan:0 rather than cuda:0: predicted "), std::string::npos) << explanation_;
  EXPECT_EQ(planned(softmaxes(), {processor(), vulkan, cuda}), "cpu:0 vulkan:0") << "whatever the order";
}

TEST_F(Apis, TwoGraphsOfOneRuntimeMayUseDifferentOnes) {
  Spec cuda = gpu("cuda:0", kFast);
  Spec vulkan = gpu("vulkan:0", kSlow);
  cuda.rate_of_family["softmax"] = kSlow;
  vulkan.rate_of_family["softmax"] = kFast;
  const auto runtime = open({processor(), cuda, vulkan}, 1);
  EXPECT_EQ(runtime->devices().size(), 3U);
  const auto first = compute(products(), *runtime);
  const auto second = compute(softmaxes(), *runtime);
  const std::vector<float> x(std::size_t{256} * 256, 1);
  for (const auto* computation : {&first, &second}) {
    const std::size_t elements = computation == &first ? 64 * 64 : 256 * 256;
    ASSERT_TRUE((*computation)->write("x", std::as_bytes(std::span(x).first(elements))).has_value());
    ASSERT_TRUE((*computation)->run().has_value());
  }
  EXPECT_EQ(devices_of(*first), (std::vector<std::string>{"cpu:0", "cuda:0"}));
  EXPECT_EQ(devices_of(*second), (std::vector<std::string>{"cpu:0", "vulkan:0"}));
}

TEST_F(Apis, OneThatLacksAnOpLosesWhereItMatters) {
  Spec cuda = gpu("cuda:0", kFast);
  const Spec vulkan = gpu("vulkan:0", kSlow);
  cuda.lacks = {Op::softmax};
  EXPECT_EQ(planned(softmaxes(), {processor(), cuda, vulkan}), "cpu:0 vulkan:0");
  EXPECT_EQ(planned(products(), {processor(), cuda, vulkan}), "cpu:0 cuda:0");
  Spec weak = processor();
  weak.lacks = {Op::softmax};
  EXPECT_EQ(planned(softmaxes(), {weak, cuda, vulkan}), "cpu:0 vulkan:0");
  EXPECT_NE(explanation_.find("vulkan:0 rather than cuda:0, which cannot do it: "), std::string::npos) << explanation_;
  weak.lacks = {Op::linear};
  EXPECT_EQ(planned(products(), {weak, vulkan, cuda}), "cpu:0 cuda:0");
}

TEST_F(Apis, PriorsMustPromiseHalfOfWhatWasMeasured) {
  const auto with_prior = [](double times) {
    Spec spec = gpu("vulkan:0", {.flops_per_s = 1e9 * times, .bytes_per_s = 1e9 * times});
    spec.uncertainty = 0.9;
    return spec;
  };
  const Spec cuda = gpu("cuda:0", kFast);
  EXPECT_EQ(planned(products(), {processor(), cuda, with_prior(1.5)}), "cpu:0 cuda:0");
  EXPECT_NE(explanation_.find("but vulkan:0 was not measured, and priors must promise half the time"),
            std::string::npos)
      << explanation_;
  EXPECT_EQ(planned(products(), {processor(), cuda, with_prior(1.5)}, {.margin = 0.0}), "cpu:0 vulkan:0");
  EXPECT_EQ(planned(products(), {processor(), cuda, with_prior(3)}), "cpu:0 vulkan:0");
}

TEST_F(Apis, NothingIsChosenAmongDevicesThatAreNotSpare) {
  const auto runtime = open({processor(), gpu("cuda:0", kFast), gpu("vulkan:0", kSlow)}, 0);
  const auto computation = compute(products(), *runtime);
  EXPECT_EQ(devices_of(*computation), (std::vector<std::string>{"cpu:0", "cuda:0", "vulkan:0"}));
  EXPECT_TRUE(parse_json(computation->explain_json())["other_apis"].empty());
}

TEST_F(Apis, GpusThatTheSameOnesOfferUseTheSame) {
  const auto runtime =
      open({processor(), gpu("cuda:0", kSlow, "a"), gpu("cuda:1", kSlow, "b"), gpu("hip:0", kSlow, "c"),
            gpu("vulkan:0", kFast, "a"), gpu("vulkan:1", kFast, "b"), gpu("vulkan:2", kSlow, "c")},
           3);
  const DevicePool device_pool(*runtime);
  const std::vector<SharedGpus> shared = device_pool.shared_gpus();
  ASSERT_EQ(shared.size(), 2U);
  EXPECT_EQ(shared[0].gpus, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(shared[0].apis, (std::vector<std::string>{"cuda", "vulkan"}));
  EXPECT_EQ(shared[1].gpus, (std::vector<std::string>{"c"}));
  const auto computation = compute(products(), *runtime);
  EXPECT_EQ(devices_of(*computation), (std::vector<std::string>{"cpu:0", "vulkan:0", "vulkan:1", "hip:0"}))
      << "in the order of the GPUs";
}

class FailingApis : public Apis {
 protected:
  // Runs products on CUDA until it fails there, and returns the notices.
  std::vector<std::string> notices_after(const Faults& faults) {
    Spec cuda = gpu("cuda:0", kFast);
    cuda.faults = faults;
    runtime_ = open({processor(), cuda, gpu("vulkan:0", kSlow)}, 1);
    computation_ = compute(products(), *runtime_);
    run();
    return notices_;
  }
  void run() {
    const std::vector<float> x(std::size_t{64} * 64, 1);
    ASSERT_TRUE(computation_->write("x", std::as_bytes(std::span(x))).has_value());
    ASSERT_TRUE(computation_->run().has_value());
    std::vector<float> y(x.size());
    ASSERT_TRUE(computation_->read(0, 0, std::as_writable_bytes(std::span(y))).has_value());
    EXPECT_EQ(y.front(), 64 * 64);
  }

  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<Computation> computation_;
};

TEST_F(FailingApis, GoOnWithAnotherOneOfTheGpuAndComeBack) {
  const std::vector<std::string> notices = notices_after({.error_at_op = 1});
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_NE(notices[0].find("; going on with cpu:0, vulkan:0"), std::string::npos) << notices[0];
  EXPECT_EQ(devices_of(*computation_), (std::vector<std::string>{"cpu:0", "vulkan:0"}));
  for (int i = 0; i < 70; ++i) run();
  ASSERT_EQ(notices_.size(), 2U);
  EXPECT_EQ(notices_[1], "cuda:0 is used again");
  EXPECT_EQ(devices_of(*computation_), (std::vector<std::string>{"cpu:0", "cuda:0"}));
}

TEST_F(FailingApis, LeaveTheGpuAloneIfItMayBeTheGpu) {
  for (const Faults& faults : {Faults{.lost_at_op = 1}, Faults{.nonfinite_at_op = 1}}) {
    notices_.clear();
    const std::vector<std::string> notices = notices_after(faults);
    ASSERT_EQ(notices.size(), 1U);
    EXPECT_TRUE(notices[0].ends_with("; going on with cpu:0")) << notices[0];
    EXPECT_EQ(devices_of(*computation_), (std::vector<std::string>{"cpu:0"}));
    for (int i = 0; i < 10; ++i) run();
    EXPECT_EQ(devices_of(*computation_), (std::vector<std::string>{"cpu:0"}));
  }
}

TEST_F(FailingApis, ShareTheLeastBudgetOfTheGpu) {
  const auto machine = [](const std::map<std::string, std::uint64_t>& budgets) {
    return Runtime::create({.machine = kTwoApis, .budgets = budgets});
  };
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;
  for (const char* id : {"cuda:0", "vulkan:0"}) {
    const auto runtime = machine({{id, 3 * kGiB}});
    ASSERT_TRUE(runtime.has_value()) << runtime.error().message;
    EXPECT_EQ((*runtime)->budgets()[1], 3 * kGiB);
    EXPECT_EQ((*runtime)->budgets()[2], 3 * kGiB);
    DevicePool device_pool(**runtime);
    ASSERT_FALSE(device_pool.recover({Code::out_of_memory, "full", "cuda:0"}).has_value() &&
                 device_pool.devices().budgets[1] >= 3 * kGiB);
    const std::uint64_t least = device_pool.devices().budgets[1];
    device_pool.use_api(device_pool.shared_gpus().at(0), "vulkan");
    EXPECT_EQ(device_pool.devices().devices[1]->info().id, "vulkan:0");
    EXPECT_EQ(device_pool.devices().budgets[1], least);
  }
}

TEST(Spares, AreOpenedForAnEmptyListOnly) {
  const auto all = Runtime::create({.machine = kTwoApis});
  ASSERT_TRUE(all.has_value()) << all.error().message;
  EXPECT_EQ(opened(**all).spares(), 1U);
  EXPECT_EQ((*all)->devices()[2].id, "vulkan:0");
  EXPECT_EQ(DeviceSet(**all).devices.size(), 2U);
  const auto named = Runtime::create({.devices = "cpu,cuda:0,vulkan:0", .machine = kTwoApis});
  ASSERT_TRUE(named.has_value()) << named.error().message;
  EXPECT_EQ(opened(**named).spares(), 0U);
  EXPECT_EQ(DeviceSet(**named).devices.size(), 3U);
}

}  // namespace
}  // namespace shunt
