// Which of the present devices a selector takes, and what happens when one does not start.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "devices/discovery/registry.h"
#include "devices/sim/device.h"
#include "plan/costs/cost.h"
#include "shunt/runtime.h"

namespace shunt {
namespace {

DeviceInfo device(std::string id, DeviceType type, double flops_per_s, std::string resource) {
  DeviceInfo info{.id = std::move(id), .type = type};
  info.compute_resource = std::move(resource);
  info.prior.flops_per_s = flops_per_s;
  return info;
}

// A fast discrete GPU behind two APIs, an integrated one, a driver on the CPU, and the CPU.
std::vector<ApiReport> machine() {
  DeviceInfo cuda = device("cuda:0", DeviceType::discrete, 50e12, "gpu:a");
  cuda.vendor = "NVIDIA";
  cuda.memory_bytes = std::uint64_t{80} << 30U;
  cuda.features = {DeviceFeature::fp16, DeviceFeature::cooperative_matrix};
  DeviceInfo vulkan = cuda;
  vulkan.id = "vulkan:0";
  vulkan.features = {DeviceFeature::fp16};
  DeviceInfo integrated = device("vulkan:1", DeviceType::integrated, 60e12, "gpu:b");
  integrated.vendor = "Intel Corporation";
  DeviceInfo emulated = device("vulkan:2", DeviceType::cpu, 90e12, "cpu");
  emulated.emulated = true;
  DeviceInfo cpu = device("cpu:simd", DeviceType::cpu, 1e15, "cpu");
  cpu.memory_bytes = std::uint64_t{24} << 30U;
  const auto report = [](std::string api, std::vector<DeviceInfo> devices) {
    return ApiReport{
        .api = std::move(api), .stage = StartStage::started, .reason = {}, .hint = {}, .devices = std::move(devices)};
  };
  ApiReport absent{.api = "hip",
                   .stage = StartStage::no_library,
                   .reason = "libamdhip64.so was not found",
                   .hint = {},
                   .devices = {}};
  return {report("cpu", {cpu}), report("cuda", {cuda}), absent, report("vulkan", {vulkan, integrated, emulated})};
}

std::string ids_of(const DeviceSelection& selection) {
  std::string ids;
  for (const DeviceInfo& info : selection.devices) ids += (ids.empty() ? "" : ",") + info.id;
  return ids;
}
std::string chosen(const DeviceSelector& selector) {
  const auto selection = select(selector, machine());
  return selection ? ids_of(*selection) : "error: " + selection.error().message;
}
std::string why_not(const DeviceSelector& selector, std::string_view id) {
  const auto selection = select(selector, machine());
  if (!selection) return selection.error().message;
  for (const DeviceRejection& rejection : selection->rejections)
    if (rejection.id == id) return rejection.reason;
  return "it was not rejected";
}

TEST(Select, WithoutWishesTakesTheFastestOnceAndTheProcessorLast) {
  EXPECT_EQ(chosen({}), "vulkan:1,cuda:0,cpu:simd");
  EXPECT_EQ(why_not({}, "vulkan:0"), "it is the same processor as cuda:0");
  EXPECT_EQ(why_not({}, "vulkan:2"), "it was not rejected") << "an emulated device is not even considered";
}

TEST(Select, ADiscreteDeviceCanBePreferredButIsNotDemanded) {
  EXPECT_EQ(chosen({.prefers_discrete = true}), "cuda:0,vulkan:1,cpu:simd");
  DeviceSelector only_intel{.prefers_discrete = true};
  only_intel.requirements.vendor = "intel";
  EXPECT_EQ(chosen(only_intel), "vulkan:1");
}

TEST(Select, UnknownMemoryMeetsNoMinimum) {
  DeviceSelector selector;
  selector.requirements.min_memory_bytes = 1;
  EXPECT_EQ(chosen(selector), "cuda:0,cpu:simd");
  EXPECT_EQ(why_not(selector, "vulkan:1"), "1 byte of memory is required, but the memory of vulkan:1 is unknown");
  selector.requirements.min_memory_bytes = std::uint64_t{25} << 30U;
  EXPECT_EQ(chosen(selector), "cuda:0");
}

TEST(Select, FeaturesTypeVendorAndThePredicateAreHeldTo) {
  DeviceSelector selector;
  selector.requirements.features = {DeviceFeature::cooperative_matrix};
  EXPECT_EQ(chosen(selector), "cuda:0");
  EXPECT_EQ(why_not(selector, "vulkan:0"), "vulkan:0 lacks cooperative-matrix");
  selector = {};
  selector.requirements.type = DeviceType::integrated;
  EXPECT_EQ(chosen(selector), "vulkan:1");
  selector = {};
  selector.requirements.accept = [](const DeviceInfo& info) { return info.id.ends_with(":0"); };
  EXPECT_EQ(chosen(selector), "cuda:0");
  EXPECT_EQ(why_not(selector, "vulkan:1"), "vulkan:1 is not accepted by the caller");
}

TEST(Select, TheChainComesFirstEachWithItsOwnRequirements) {
  DeviceRequirements huge;
  huge.min_memory_bytes = std::uint64_t{100} << 30U;
  EXPECT_EQ(chosen({.chain = {{"cuda", huge}, {"vulkan:0"}, {"hip"}}, .only_chain = true}), "vulkan:0");
  EXPECT_EQ(chosen({.chain = {{"vulkan"}}, .only_chain = true}), "vulkan:0,vulkan:1");
  EXPECT_EQ(chosen({.chain = {{"cpu:simd"}, {"cuda:0"}}}), "cpu:simd,cuda:0,vulkan:1");
  EXPECT_EQ(why_not({.chain = {{"hip"}}}, "hip"), "libamdhip64.so was not found");
}

TEST(Select, AnEmulatedDeviceJoinsByItsOwnIdAlone) {
  std::vector<ApiReport> reports = machine();
  std::vector<DeviceInfo>& of_vulkan = reports.back().devices;
  std::ranges::rotate(of_vulkan, of_vulkan.end() - 1);  // the driver on the CPU is listed first
  const auto chosen_of = [&](const DeviceSelector& selector) {
    const auto selection = select(selector, reports);
    return selection ? ids_of(*selection) : "error: " + selection.error().message;
  };
  EXPECT_EQ(chosen_of({.chain = {{"vulkan"}}, .most = 1}), "vulkan:0");
  EXPECT_EQ(chosen_of({.chain = {{"vulkan"}}}), "vulkan:0,vulkan:1,cpu:simd");
  EXPECT_EQ(chosen_of({.chain = {{"vulkan:2"}}}), "vulkan:2,vulkan:1,cuda:0,cpu:simd")
      << "the processor is not displaced by an emulation that runs on it";
  std::erase_if(of_vulkan, [](const DeviceInfo& info) { return !info.emulated; });
  of_vulkan.front().name = "llvmpipe";
  EXPECT_EQ(chosen_of({.chain = {{"vulkan"}}}), "cuda:0,cpu:simd");
  EXPECT_EQ(
      chosen_of({.chain = {{"vulkan"}}, .only_chain = true}),
      "error: no device meets the requirements (vulkan: vulkan has only emulated devices here, which are used only if "
      "named by id: vulkan:2 (llvmpipe))");
}

// A simulated device that replaces one of some API.
struct Offered {
  std::string id;
  bool emulated = false;
  std::string resource;  // the compute resource
  double gigabytes_per_s = 1;
};
Registry registry_of(const std::vector<Offered>& all) {
  const auto clock = std::make_shared<sim::VirtualClock>();
  Registry registry;
  for (const Offered& each : all) {
    sim::Spec spec{.id = each.id, .type = DeviceType::discrete, .emulated = each.emulated};
    if (each.id.starts_with("cpu")) spec.type = DeviceType::cpu;
    spec.compute_resource = each.resource;
    spec.rate = {.flops_per_s = 1e12 * each.gigabytes_per_s, .bytes_per_s = 1e9 * each.gigabytes_per_s};
    const std::string api(api_of(each.id));
    if (registry.backends.empty() || registry.backends.back().api != api)
      registry.backends.push_back({.api = api, .devices = {}});
    registry.backends.back().devices.push_back(sim::make_sim_device(spec, clock));
  }
  return registry;
}
std::string listed(const Registry& registry, std::string_view list, const PredictedUs& predicted_us = {}) {
  const auto devices = select_devices(registry, list, predicted_us);
  if (!devices) return "error: " + devices.error().message;
  std::string ids;
  for (const Device* each : *devices) ids += (ids.empty() ? "" : ",") + each->info().id;
  return ids;
}

TEST(Lists, TheNameOfAnApiMeansNoEmulatedDevice) {
  const Registry mixed = registry_of({{.id = "cpu:simd", .resource = "cpu"},
                                      {.id = "vulkan:0", .emulated = true, .resource = "cpu"},
                                      {.id = "vulkan:1", .resource = "gpu:a"}});
  EXPECT_EQ(listed(mixed, "vulkan,cpu"), "vulkan:1,cpu:simd");
  EXPECT_EQ(listed(mixed, "vulkan:0,cpu:simd"), "vulkan:0,cpu:simd");
  EXPECT_EQ(listed(mixed, ""), "cpu:simd,vulkan:1");
  const Registry emulated =
      registry_of({{.id = "cpu:simd", .resource = "cpu"}, {.id = "vulkan:0", .emulated = true, .resource = "cpu"}});
  EXPECT_EQ(listed(emulated, "vulkan,cpu"),
            "error: vulkan has only emulated devices here, which are used only if named by id: vulkan:0 "
            "(simulated accelerator)");
  EXPECT_EQ(listed(emulated, ""), "cpu:simd");
}

TEST(Lists, OfTwoApisOfOneGpuTheOnePredictedFasterIsUsed) {
  const auto offer = [](double cuda, double vulkan) {
    return registry_of({{.id = "cpu:simd", .resource = "cpu", .gigabytes_per_s = 9},
                        {.id = "cuda:0", .resource = "gpu:a", .gigabytes_per_s = cuda},
                        {.id = "vulkan:0", .resource = "gpu:a", .gigabytes_per_s = vulkan},
                        {.id = "vulkan:1", .resource = "gpu:b", .gigabytes_per_s = 1}});
  };
  const PredictedUs by_prior = [](const DeviceInfo& info) { return typical_us(DeviceCost(info, nullptr)); };
  EXPECT_EQ(listed(offer(1, 8), "", by_prior), "cpu:simd,vulkan:0,vulkan:1");
  EXPECT_EQ(listed(offer(8, 1), "", by_prior), "cpu:simd,cuda:0,vulkan:1");
  EXPECT_EQ(listed(offer(5, 5), "", by_prior), "cpu:simd,cuda:0,vulkan:1") << "the first of the table";
  EXPECT_EQ(listed(offer(1, 8), "cuda,vulkan:0"), "cuda:0,vulkan:0") << "a list is what it says";
}

TEST(Lists, OtherApisOfAGpuAreSpareIfTheyMayBeFasterForSomeWork) {
  const auto spares = [](double gigabytes_per_s, bool is_measured, bool is_emulated = false) {
    const Registry registry = registry_of(
        {{.id = "cpu:simd", .resource = "cpu", .gigabytes_per_s = 9},
         {.id = "cuda:0", .resource = "gpu:a", .gigabytes_per_s = 8},
         {.id = "vulkan:0", .emulated = is_emulated, .resource = "gpu:a", .gigabytes_per_s = gigabytes_per_s},
         {.id = "vulkan:1", .resource = "gpu:b", .gigabytes_per_s = 1}});
    std::string ids;
    const PredictedUs by_prior = [](const DeviceInfo& info) { return typical_us(DeviceCost(info, nullptr)); };
    for (const Device* each : spare_devices(registry, by_prior, [&](const DeviceInfo&) { return is_measured; }))
      ids += each->info().id + " ";
    return ids;
  };
  EXPECT_EQ(spares(5, false), "vulkan:0 ");
  EXPECT_EQ(spares(3, false), "");
  EXPECT_EQ(spares(3, true), "vulkan:0 ");
  EXPECT_EQ(spares(3, true, true), "") << "emulated";
  EXPECT_EQ(spares(9, false), "cuda:0 ");
}

TEST(Lists, WhatWasMeasuredDecidesOverWhatIsBelieved) {
  const Registry registry = registry_of({{.id = "cuda:0", .resource = "gpu:a", .gigabytes_per_s = 1},
                                         {.id = "vulkan:0", .resource = "gpu:a", .gigabytes_per_s = 8}});
  Profile profile;
  for (const Device* each : registry.devices()) {
    DeviceProfile measured = unmeasured(each->info());
    const double us = each->info().id == "cuda:0" ? 10 : 1000;
    measured.ops["linear F32 Q8_0 -> F32"] = {{.cost = {2 * 4096.0 * 4096, 18e6, 16e3}, .us = us, .spread = 0.01}};
    profile.set(measured);
  }
  const PredictedUs measured = [&](const DeviceInfo& info) { return typical_us(DeviceCost(info, profile.find(info))); };
  EXPECT_EQ(listed(registry, "", measured), "cuda:0");
}

TEST(Select, NothingLeftIsAnErrorWithEachReason) {
  const auto nothing = select({.chain = {{"hip"}}, .only_chain = true}, machine());
  ASSERT_FALSE(nothing.has_value());
  EXPECT_EQ(nothing.error().code, Code::unsupported);
  EXPECT_TRUE(nothing.error().message.contains("libamdhip64.so was not found")) << nothing.error().message;
  for (const char* name : {"gpu", "vulkan:7", ""}) {
    const auto unknown = select({.chain = {{name}}}, machine());
    ASSERT_FALSE(unknown.has_value()) << name;
    EXPECT_EQ(unknown.error().code, Code::invalid);
    EXPECT_TRUE(unknown.error().message.contains("cuda:0")) << unknown.error().message;
  }
}

TEST(Select, TheProcessorCanBeForbiddenAndTheNumberLimited) {
  EXPECT_EQ(chosen({.without_cpu = true}), "vulkan:1,cuda:0");
  EXPECT_EQ(chosen({.most = 1}), "vulkan:1");
  EXPECT_EQ(chosen({.most = 1, .score = [](const DeviceInfo& info) { return -info.prior.flops_per_s; }}), "cuda:0");
}

TEST(Select, WhatDoesNotStartIsPassedOver) {
  ASSERT_EQ(setenv("SHUNT_VULKAN_LIBRARY", "/nowhere/libvulkan.so.1", 1), 0);
  RuntimeOptions options{.threads = 1};
  options.selector = {.chain = {{"vulkan"}, {"sim:0"}}, .most = 1};
  const auto runtime = Runtime::create(options);
  unsetenv("SHUNT_VULKAN_LIBRARY");
  ASSERT_TRUE(runtime.has_value()) << runtime.error().message;
  ASSERT_EQ((*runtime)->devices().size(), 1U);
  EXPECT_EQ((*runtime)->devices()[0].id, "sim:0");
  const auto rejections = (*runtime)->rejections();
  ASSERT_FALSE(rejections.empty());
  EXPECT_EQ(rejections[0].id, "vulkan");
  EXPECT_TRUE(rejections[0].reason.contains("/nowhere/libvulkan.so.1")) << rejections[0].reason;
}

TEST(Select, TheEnvironmentMeansWhatAListMeans) {
  ASSERT_EQ(setenv("SHUNT_DEVICES", "sim:1, cpu:scalar", 1), 0);
  const auto named = Runtime::create({.threads = 1});
  const auto overridden = Runtime::create({.threads = 1, .devices = "cpu:simd"});
  unsetenv("SHUNT_DEVICES");
  ASSERT_TRUE(named.has_value());
  ASSERT_EQ((*named)->devices().size(), 2U);
  EXPECT_EQ((*named)->devices()[0].id, "sim:1");
  EXPECT_EQ((*named)->devices()[1].id, "cpu:scalar");
  ASSERT_TRUE(overridden.has_value());
  ASSERT_EQ((*overridden)->devices().size(), 1U);
  EXPECT_EQ((*overridden)->devices()[0].id, "cpu:simd");
}

}  // namespace
}  // namespace shunt
