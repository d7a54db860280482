// API discovery: what it reports and caches, and what a driver that crashes or hangs can do.
#include "devices/discovery/registry.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/own_cache.h"
#include "base/system/cache_folder.h"
#include "devices/discovery/find.h"
#include "devices/discovery/known_apis.h"
#include "devices/discovery/probe.h"
#include "devices/identity.h"

namespace shunt {
namespace {

using test::OwnCache;
using test::Setting;

const ApiRow& row_of(std::string_view name) { return *std::ranges::find(api_rows(), name, &ApiRow::name); }

class Probe : public OwnCache {
 protected:
  static ProbedApi probe_vulkan(const char* how, std::chrono::milliseconds patience) {
    const Setting library("SHUNT_VULKAN_LIBRARY", SHUNT_FAULTY_START);
    const Setting failure("SHUNT_FAULTY_START", how);
    const ApiRow* const apis[] = {&row_of("vulkan")};
    auto found = probe(apis, patience);
    EXPECT_EQ(found.size(), 1U);
    return found.front();
  }
};

TEST_F(Probe, ADriverThatCrashesIsAnAbsentApi) {
  const ApiReport report = probe_vulkan("crash", std::chrono::seconds(30)).report;
  EXPECT_EQ(report.api, "vulkan");
  EXPECT_EQ(report.stage, StartStage::crashed);
  EXPECT_TRUE(report.reason.contains("signal 11")) << report.reason;
  EXPECT_TRUE(report.reason.contains("the firmware is not what it was")) << report.reason;
  EXPECT_TRUE(report.reason.contains("shunt devices --again")) << report.reason;
}

TEST_F(Probe, ADriverThatHangsIsEndedWhenItsTimeIsOver) {
  const auto begin = std::chrono::steady_clock::now();
  const ApiReport report = probe_vulkan("hang", std::chrono::milliseconds(300)).report;
  EXPECT_EQ(report.stage, StartStage::timed_out);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(300));
  EXPECT_TRUE(report.devices.empty());
}

TEST_F(Probe, ALibraryThatLacksAFunctionSaysWhich) {
  const ApiReport report = probe_vulkan("", std::chrono::seconds(30)).report;
  EXPECT_EQ(report.stage, StartStage::no_start);
  EXPECT_TRUE(report.reason.contains("vkCreateInstance")) << report.reason;
}

TEST_F(Probe, AMissingLibraryIsToldApart) {
  const Setting library("SHUNT_VULKAN_LIBRARY", "/nowhere/libvulkan.so.1");
  const ApiRow* const apis[] = {&row_of("vulkan")};
  const ApiReport report = probe(apis, std::chrono::seconds(30)).front().report;
  EXPECT_EQ(report.stage, StartStage::no_library);
  EXPECT_TRUE(report.reason.contains("/nowhere/libvulkan.so.1")) << report.reason;
}

TEST_F(Probe, WhatCrashesDoesSoOnceAndIsNotTriedAgain) {
  const Setting library("SHUNT_VULKAN_LIBRARY", SHUNT_FAULTY_START);
  const Setting failure("SHUNT_FAULTY_START", "crash");
  const ApiRow* const apis[] = {&row_of("vulkan")};
  const ApiReport first = reports_of(apis, {}).front();
  EXPECT_EQ(first.stage, StartStage::crashed);
  EXPECT_FALSE(first.is_known);
  const ApiReport second = reports_of(apis, {}).front();
  EXPECT_EQ(second.stage, StartStage::crashed);
  EXPECT_TRUE(second.is_known);
  EXPECT_FALSE(reports_of(apis, {.again = true}).front().is_known);
  const auto registry = open_devices({.devices = "vulkan", .threads = 1, .pin_to_cpus = {}, .known = {}});
  ASSERT_TRUE(registry.has_value());
  EXPECT_TRUE(registry->devices().empty());
  const auto chosen = select_devices(*registry, "vulkan:0");
  ASSERT_FALSE(chosen.has_value());
  EXPECT_TRUE(chosen.error().message.contains("crashed")) << chosen.error().message;
}

ProbedApi some_report(const std::string& file) {
  ApiReport report{.api = "vulkan", .stage = StartStage::started, .start_ms = 12.5};
  report.devices.push_back({.id = "vulkan:0",
                            .name = "a \"GPU\"",
                            .type = DeviceType::discrete,
                            .uuid = "0123",
                            .memory_bytes = std::uint64_t{1} << 40U,
                            .features = {DeviceFeature::fp16, DeviceFeature::timestamps},
                            .details = {"one", "two"}});
  return {.report = std::move(report), .files = {file}};
}

class KnownApis : public OwnCache {
 protected:
  [[nodiscard]] static std::optional<ApiReport> known() { return ::shunt::KnownApis().find(row_of("vulkan")); }
  void keep() {
    ASSERT_TRUE(cache_folder().has_value());
    std::ofstream(driver_) << "a driver";
    const ProbedApi found[] = {some_report(driver_)};
    const Status kept = ::shunt::KnownApis().keep(found);
    ASSERT_TRUE(kept.has_value()) << kept.error().message;
  }
  std::string driver_ = folder_ + "/libdriver.so";
};

TEST_F(KnownApis, ComeBackAsTheyWere) {
  EXPECT_FALSE(known().has_value());
  keep();
  const auto report = known();
  ASSERT_TRUE(report.has_value());
  const ApiReport expected = some_report(driver_).report;
  EXPECT_TRUE(report->is_known);
  EXPECT_EQ(report->stage, expected.stage);
  EXPECT_EQ(report->start_ms, expected.start_ms);
  ASSERT_EQ(report->devices.size(), 1U);
  const DeviceInfo& device = report->devices.front();
  EXPECT_EQ(device.name, expected.devices[0].name);
  EXPECT_EQ(device.type, DeviceType::discrete);
  EXPECT_EQ(device.memory_bytes, expected.devices[0].memory_bytes);
  EXPECT_EQ(device.largest_binding_bytes, ~std::uint64_t{0});
  EXPECT_EQ(device.features, expected.devices[0].features);
  EXPECT_EQ(device.details, expected.devices[0].details);
}

TEST_F(KnownApis, NoLongerHoldWhenADriverChanges) {
  keep();
  std::ofstream(driver_) << "a newer driver";
  EXPECT_FALSE(known().has_value());
  keep();
  EXPECT_TRUE(known().has_value());
  std::filesystem::remove(driver_);
  EXPECT_FALSE(known().has_value());
}

TEST_F(KnownApis, AreForgottenSoonIfTheDriverWasLate) {
  ProbedApi late = some_report(driver_);
  late.report.stage = StartStage::timed_out;
  const ProbedApi found[] = {late};
  ASSERT_TRUE(::shunt::KnownApis().keep(found).has_value());
  EXPECT_TRUE(known().has_value());
  std::ostringstream whole;
  whole << std::ifstream(file()).rdbuf();
  const std::string text = whole.str();
  const std::size_t number = text.find("\"until\": ");
  ASSERT_NE(number, std::string::npos);
  std::ofstream(file()) << text.substr(0, number) << "\"until\": 1" << text.substr(text.find_first_of(",\n}", number));
  EXPECT_FALSE(known().has_value());
}

TEST_F(KnownApis, BelongToAnEnvironment) {
  keep();
  {
    const Setting variable("CUDA_VISIBLE_DEVICES", "3");
    EXPECT_FALSE(known().has_value());
  }
  {
    const Setting variable("VK_ICD_FILENAMES", "/nowhere.json");
    EXPECT_FALSE(known().has_value());
  }
  EXPECT_TRUE(known().has_value());
}

TEST_F(KnownApis, ADamagedFileIsAsNone) {
  keep();
  std::ostringstream whole;
  whole << std::ifstream(file()).rdbuf();
  const std::string text = whole.str();
  for (std::size_t length = 0; length < text.size(); length += 7) {
    std::ofstream(file()) << text.substr(0, length);
    EXPECT_FALSE(known().has_value()) << length;
  }
  for (const auto* part : {"\"report\":", "\"devices\":", "\"memory_bytes\":", "\"features\":", "\"stage\":"}) {
    std::string other = text;
    other.replace(other.find(part) + 1, 1, "x");
    std::ofstream(file()) << other;
    EXPECT_FALSE(known().has_value()) << part;
  }
  keep();
  EXPECT_TRUE(known().has_value());
}

TEST_F(KnownApis, AFolderThatCannotBeWrittenIsNoHindrance) {
  const Setting nowhere("SHUNT_CACHE_DIR", "/proc/nothing");
  EXPECT_FALSE(known().has_value());
  EXPECT_FALSE(find_devices().empty());
}

DeviceInfo gpu(std::string id, std::string name) {
  DeviceInfo info{.id = std::move(id), .name = std::move(name), .vendor = "NVIDIA", .type = DeviceType::discrete};
  info.hardware = "10de:2330";
  return info;
}

TEST(Identity, OnePciAddressIsOneProcessor) {
  DeviceInfo first = gpu("cuda:0", "H100");
  first.pci_address = "0000:65:00.0";
  first.uuid = "aa";
  first.memory_bytes = 80;
  identify(first, {});
  EXPECT_EQ(first.compute_resource, "gpu:0000:65:00.0");
  EXPECT_EQ(first.memory_resource, first.compute_resource);
  EXPECT_EQ(first.memory_pool, "cuda:0");
  DeviceInfo second = gpu("vulkan:0", "NVIDIA H100");
  second.pci_address = first.pci_address;
  second.uuid = "bb";
  identify(second, {&first, 1});
  EXPECT_EQ(second.compute_resource, first.compute_resource);
  EXPECT_EQ(second.memory_resource, first.memory_resource);
  EXPECT_EQ(second.memory_pool, "vulkan:0");
}

TEST(Identity, SoAreAUuidAndTheOnlyOneOfItsKind) {
  DeviceInfo known[] = {gpu("vulkan:0", "NVIDIA H100 80GB HBM3"), gpu("vulkan:1", "NVIDIA H100 80GB HBM3")};
  known[0].uuid = "aa";
  known[1].uuid = "bb";
  for (DeviceInfo& device : known) identify(device, {});
  DeviceInfo by_uuid = gpu("gl:0", "NVIDIA H100 80GB HBM3/PCIe/SSE2");
  by_uuid.uuid = "bb";
  identify(by_uuid, known);
  EXPECT_EQ(by_uuid.compute_resource, known[1].compute_resource);
  DeviceInfo of_two = gpu("webgpu:0", "NVIDIA H100 80GB HBM3");
  identify(of_two, known);
  EXPECT_EQ(of_two.compute_resource, "gpu:webgpu:0") << "either could be meant";
  DeviceInfo of_one = gpu("webgpu:0", "NVIDIA H100 80GB HBM3");
  identify(of_one, {known, 1});
  EXPECT_EQ(of_one.compute_resource, known[0].compute_resource);
  EXPECT_EQ(of_one.uuid, "aa");
  DeviceInfo by_name = gpu("gles:0", "NVIDIA H100 80GB HBM3/PCIe/SSE2");
  by_name.hardware.clear();
  identify(by_name, {known, 1});
  EXPECT_EQ(by_name.compute_resource, known[0].compute_resource);
}

TEST(Identity, WhatIsEmulatedRunsOnTheProcessor) {
  DeviceInfo device = gpu("vulkan:0", "llvmpipe");
  device.emulated = true;
  device.uuid = "aa";
  identify(device, {});
  EXPECT_EQ(device.compute_resource, "cpu");
  EXPECT_EQ(device.memory_resource, "host");
  DeviceInfo same = gpu("gl:0", "llvmpipe");
  same.uuid = "aa";
  identify(same, {&device, 1});
  EXPECT_EQ(same.compute_resource, "gpu:aa") << "an emulated device is no hardware";
}

TEST(Hidden, WhatCudaMayNotUseNobodyUses) {
  DeviceInfo visible = gpu("cuda:0", "H100");
  visible.pci_address = "0000:65:00.0";
  identify(visible, {});
  DeviceInfo other = gpu("vulkan:1", "H100");
  other.pci_address = "0000:66:00.0";
  identify(other, {});
  DeviceInfo same = visible;
  same.id = "vulkan:0";
  DeviceInfo of_amd = gpu("vulkan:2", "MI300");
  of_amd.hardware = "1002:74a1";
  const std::vector<ApiReport> all = {
      {.api = "cuda", .stage = StartStage::started, .reason = {}, .hint = {}, .devices = {visible}},
      {.api = "vulkan", .stage = StartStage::started, .reason = {}, .hint = {}, .devices = {same, other, of_amd}},
      {.api = "gl", .stage = StartStage::started, .reason = {}, .hint = {}, .devices = {other}}};
  std::vector<ApiReport> reports = all;
  drop_hidden(reports);
  EXPECT_EQ(reports[1].devices.size(), 3U) << "nothing is set";
  const Setting variable("CUDA_VISIBLE_DEVICES", "0");
  drop_hidden(reports);
  ASSERT_EQ(reports[1].devices.size(), 2U);
  EXPECT_EQ(reports[1].devices[0].id, "vulkan:0");
  EXPECT_EQ(reports[1].devices[1].id, "vulkan:2");
  EXPECT_TRUE(reports[1].hint.contains("CUDA_VISIBLE_DEVICES=0")) << reports[1].hint;
  EXPECT_EQ(reports[2].stage, StartStage::no_device);
  EXPECT_TRUE(reports[2].reason.contains("CUDA_VISIBLE_DEVICES=0")) << reports[2].reason;
}

TEST(AccessHint, NamesTheFileAndItsGroup) {
  const std::string file = testing::TempDir() + "/closed_" + std::to_string(getpid());
  std::ofstream(file) << "a device";
  ASSERT_EQ(chmod(file.c_str(), 0), 0);
  const std::string_view files[] = {"/nowhere/at/all", file};
  EXPECT_EQ(access_hint({files, 1}), "");
  // Root may open everything, so another user must ask.
  EXPECT_EXIT(
      {
        if (setuid(65534) != 0) std::exit(1);
        const std::string hint = access_hint(files);
        static_cast<void>(std::fputs(hint.c_str(), stderr));
        std::exit(0);
      },
      testing::ExitedWithCode(0), "you may not open .*/closed_.*: add yourself to group .*usermod -aG");
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace shunt
