// Devices through the C interface: records equal to those of the C++ interface, and selection by criteria.
#include "shunt/devices.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "shunt/shunt.h"

namespace {

constexpr const char* kTwoGpus = SHUNT_TEST_DATA "/../../examples/machines/two-unequal-gpus.json";

using Found = std::unique_ptr<shunt_found, decltype(&shunt_found_free)>;
using Runtime = std::unique_ptr<shunt_runtime, decltype(&shunt_runtime_close)>;

Found find(const char* simulated = nullptr) {
  shunt_find_options options{};
  options.threads = 1;
  options.simulated = simulated;
  shunt_error error;
  Found found(shunt_find_devices(&options, &error), &shunt_found_free);
  EXPECT_NE(found, nullptr) << error.message;
  return found;
}

shunt_device_info device_of(const Found& found, std::size_t index) {
  shunt_error error;
  shunt_device_info info{};
  info.size = sizeof info;
  EXPECT_EQ(shunt_found_device(found.get(), index, &info, &error), SHUNT_OK) << error.message;
  return info;
}

Runtime open(const shunt_device_selector& selector, shunt_error& error, const char* machine = kTwoGpus,
             const char* devices = nullptr) {
  shunt_runtime_options options{};
  options.threads = 1;
  options.machine = machine;
  options.devices = devices;
  options.uncalibrated = 1;
  options.selector = &selector;
  return {shunt_runtime_open(&options, &error), &shunt_runtime_close};
}

std::vector<std::string> chosen(const shunt_device_selector& selector) {
  shunt_error error;
  const Runtime runtime = open(selector, error);
  std::vector<std::string> ids;
  for (std::size_t index = 0; index < shunt_device_count(runtime.get()); ++index)
    ids.emplace_back(shunt_device_id(runtime.get(), index));
  if (runtime == nullptr) ids.emplace_back(error.message);
  return ids;
}

TEST(CDevices, HaveTheRecordsOfTheInterfaceForCxx) {
  const Found found = find("sim:0");
  const std::vector<shunt::ApiReport> reports = shunt::find_devices({.threads = 1, .simulated = "sim:0"});
  ASSERT_EQ(shunt_found_api_count(found.get()), reports.size());
  shunt_error error;
  std::size_t next = 0;
  for (std::size_t index = 0; index < reports.size(); ++index) {
    const shunt::ApiReport& report = reports[index];
    shunt_api_info api{};
    api.size = sizeof api;
    ASSERT_EQ(shunt_found_api(found.get(), index, &api, &error), SHUNT_OK) << error.message;
    EXPECT_EQ(api.name, report.api);
    EXPECT_EQ(shunt_start_stage_name(api.stage), name_of(report.stage));
    EXPECT_EQ(api.reason, report.reason);
    EXPECT_EQ(api.hint, report.hint);
    ASSERT_EQ(api.device_count, report.devices.size());
    EXPECT_TRUE(api.device_count != 0 || std::strlen(api.reason) != 0) << api.name << " is absent without a reason";
    for (const shunt::DeviceInfo& wanted : report.devices) {
      const shunt_device_info device = device_of(found, next++);
      EXPECT_EQ(device.id, wanted.id);
      EXPECT_EQ(device.api, report.api);
      EXPECT_EQ(device.name, wanted.name);
      EXPECT_EQ(device.vendor, wanted.vendor);
      EXPECT_EQ(shunt_device_type_name(device.type), name_of(wanted.type));
      EXPECT_EQ(device.emulated, wanted.emulated ? 1 : 0);
      EXPECT_EQ(device.driver, wanted.driver);
      EXPECT_EQ(device.api_version, wanted.api_version);
      EXPECT_EQ(device.uuid, wanted.uuid);
      EXPECT_EQ(device.pci_address, wanted.pci_address);
      EXPECT_EQ(device.hardware, wanted.hardware);
      EXPECT_EQ(device.compute_resource, wanted.compute_resource);
      EXPECT_EQ(device.memory_resource, wanted.memory_resource);
      EXPECT_EQ(device.memory_pool, wanted.memory_pool);
      EXPECT_EQ(device.links_to_peers, wanted.links_to_peers ? 1 : 0);
      EXPECT_EQ(device.memory_bytes, wanted.memory_bytes);
      EXPECT_EQ(device.alignment_bytes, wanted.alignment_bytes);
      EXPECT_EQ(device.largest_binding_bytes, wanted.largest_binding_bytes);
      EXPECT_EQ(device.shared_memory_bytes, wanted.shared_memory_bytes);
      EXPECT_EQ(device.largest_workgroup, wanted.largest_workgroup);
      EXPECT_EQ(device.subgroup_size, wanted.subgroup_size);
      EXPECT_EQ(device.compute_units, wanted.compute_units);
      EXPECT_EQ(device.clock_mhz, wanted.clock_mhz);
      for (unsigned feature = 0; feature < SHUNT_FEATURE_COUNT; ++feature)
        EXPECT_EQ((device.features & SHUNT_FEATURE_BIT(feature)) != 0,
                  wanted.features.contains(static_cast<shunt::DeviceFeature>(feature)));
      for (const std::string& word : wanted.details) EXPECT_NE(std::strstr(device.details, word.c_str()), nullptr);
      EXPECT_EQ(device.budget_bytes, SHUNT_NO_BYTES);
    }
  }
  EXPECT_EQ(shunt_found_device_count(found.get()), next);
  EXPECT_STREQ(shunt_feature_name(SHUNT_FEATURE_unified_memory), "unified-memory");
  EXPECT_STREQ(shunt_feature_meaning(SHUNT_FEATURE_fp16), "arithmetic in half precision");
  EXPECT_EQ(shunt_feature_name(SHUNT_FEATURE_COUNT), nullptr);
}

TEST(CDevices, AnApiThatIsAbsentSaysWhy) {
  ASSERT_EQ(setenv("SHUNT_VULKAN_LIBRARY", "/nowhere/libvulkan.so.1", 1), 0);
  const Found found = find();
  unsetenv("SHUNT_VULKAN_LIBRARY");
  bool is_there = false;
  for (std::size_t index = 0; index < shunt_found_api_count(found.get()); ++index) {
    shunt_error error;
    shunt_api_info api{};
    api.size = sizeof api;
    ASSERT_EQ(shunt_found_api(found.get(), index, &api, &error), SHUNT_OK) << error.message;
    if (std::string(api.name) != "vulkan") continue;
    is_there = true;
    EXPECT_EQ(api.stage, SHUNT_STAGE_no_library) << shunt_start_stage_name(api.stage);
    EXPECT_NE(std::strstr(api.reason, "/nowhere/libvulkan.so.1"), nullptr) << api.reason;
  }
  EXPECT_TRUE(is_there);
}

// For a program that was built against another version of the header.
TEST(CDevices, StructsGrow) {
  const Found found = find();
  const shunt_device_info whole = device_of(found, 0);
  shunt_error error;
  shunt_device_info older{};
  older.size = offsetof(shunt_device_info, vendor);
  older.clock_mhz = 12345;
  ASSERT_EQ(shunt_found_device(found.get(), 0, &older, &error), SHUNT_OK) << error.message;
  EXPECT_STREQ(older.name, whole.name);
  EXPECT_EQ(older.vendor, nullptr) << "it lies past the end of the caller's struct";
  EXPECT_EQ(older.clock_mhz, 12345U);
  EXPECT_EQ(older.size, offsetof(shunt_device_info, vendor));

  struct {
    shunt_device_info known;
    std::uint64_t unknown;
  } newer{};
  newer.known.size = sizeof newer;
  newer.unknown = 12345;
  ASSERT_EQ(shunt_found_device(found.get(), 0, &newer.known, &error), SHUNT_OK) << error.message;
  EXPECT_STREQ(newer.known.id, whole.id);
  EXPECT_EQ(newer.unknown, 0U);

  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, ~std::size_t{0}}) {
    shunt_device_info unset{};
    unset.size = size;
    EXPECT_EQ(shunt_found_device(found.get(), 0, &unset, &error), SHUNT_INVALID);
    EXPECT_NE(std::strstr(error.message, "sizeof"), nullptr) << error.message;
  }
}

TEST(CDevices, MistakesAreNamed) {
  const Found found = find();
  shunt_error error;
  shunt_device_info info{};
  info.size = sizeof info;
  EXPECT_EQ(shunt_found_device(found.get(), 1000, &info, &error), SHUNT_INVALID);
  EXPECT_NE(std::strstr(error.message, "device 1000 was asked for"), nullptr) << error.message;
  EXPECT_EQ(shunt_found_device(found.get(), 0, nullptr, &error), SHUNT_INVALID);
  EXPECT_EQ(shunt_found_device(nullptr, 0, &info, &error), SHUNT_INVALID);
  EXPECT_EQ(shunt_found_api(nullptr, 0, nullptr, &error), SHUNT_INVALID);
  EXPECT_EQ(shunt_device_describe(nullptr, 0, &info, &error), SHUNT_INVALID);
  EXPECT_EQ(shunt_rejection_describe(nullptr, 0, nullptr, nullptr), SHUNT_INVALID);
  EXPECT_EQ(shunt_found_api_count(nullptr), 0U);
  EXPECT_EQ(shunt_found_device_count(nullptr), 0U);
  EXPECT_EQ(shunt_rejection_count(nullptr), 0U);
  EXPECT_EQ(shunt_warning_count(nullptr), 0U);
  EXPECT_EQ(shunt_warning(nullptr, 0), nullptr);
  shunt_found_free(nullptr);

  shunt_device_selector selector{};
  selector.requirements.type = "abacus";
  EXPECT_EQ(open(selector, error), nullptr);
  EXPECT_NE(std::strstr(error.message, "\"abacus\"; choose from: discrete"), nullptr) << error.message;
  selector = {};
  selector.requirements.features = SHUNT_FEATURE_BIT(SHUNT_FEATURE_COUNT);
  EXPECT_EQ(open(selector, error), nullptr);
  EXPECT_NE(std::strstr(error.message, "is no feature"), nullptr) << error.message;
  selector = {};
  selector.chain_count = 1;
  EXPECT_EQ(open(selector, error), nullptr);
  EXPECT_STREQ(error.message, "the chain of devices is NULL");
  const shunt_candidate nameless{};
  selector.chain = &nameless;
  EXPECT_EQ(open(selector, error), nullptr);
  EXPECT_STREQ(error.message, "the name of a device in the chain is NULL");
  selector = {};
  EXPECT_EQ(open(selector, error, nullptr, "cpu"), nullptr);
  EXPECT_NE(std::strstr(error.message, "both by name (\"cpu\") and by a selector"), nullptr) << error.message;
}

TEST(CDevices, AreChosenByWhatTheyHave) {
  shunt_device_selector selector{};
  EXPECT_EQ(chosen(selector).size(), 3U);
  selector.most = 1;
  const std::string best = chosen(selector).at(0);
  EXPECT_EQ(best.substr(0, 3), "gpu");
  selector.score = [](void* user, const shunt_device_info* device) {
    return std::string(device->id) == static_cast<const char*>(user) ? 0.0 : 1.0;
  };
  std::string passed_over = best;
  selector.user = passed_over.data();
  EXPECT_NE(chosen(selector).at(0), best);
  selector = {};
  selector.without_cpu = 1;
  EXPECT_EQ(chosen(selector).size(), 2U);

  shunt_candidate second{};
  second.name = "gpu:1";
  selector = {};
  selector.chain = &second;
  selector.chain_count = 1;
  EXPECT_EQ(chosen(selector).at(0), "gpu:1");
  selector.only_chain = 1;
  EXPECT_EQ(chosen(selector), std::vector<std::string>{"gpu:1"});

  selector = {};
  selector.requirements.type = "cpu";
  EXPECT_EQ(chosen(selector), std::vector<std::string>{"cpu"});
  selector = {};
  selector.requirements.accept = [](void*, const shunt_device_info* device) {
    return std::string(device->id) == "gpu:0" ? 1 : 0;
  };
  EXPECT_EQ(chosen(selector), std::vector<std::string>{"gpu:0"});
  selector = {};
  selector.requirements.min_memory_bytes = std::uint64_t{1} << 60U;
  EXPECT_NE(chosen(selector).at(0).find("no device meets the requirements"), std::string::npos);
}

TEST(CDevices, ARuntimeTellsWhatItUsesAndWhyNotTheOthers) {
  shunt_device_selector selector{};
  selector.most = 1;
  shunt_error error;
  const Runtime runtime = open(selector, error);
  ASSERT_NE(runtime, nullptr) << error.message;
  shunt_device_info device{};
  device.size = sizeof device;
  ASSERT_EQ(shunt_device_describe(runtime.get(), 0, &device, &error), SHUNT_OK) << error.message;
  EXPECT_STREQ(device.id, shunt_device_id(runtime.get(), 0));
  EXPECT_GT(device.memory_bytes, 0U);
  EXPECT_LT(device.budget_bytes, device.memory_bytes);
  EXPECT_EQ(shunt_device_describe(runtime.get(), 1, &device, &error), SHUNT_INVALID);
  std::set<std::string> rejected;
  for (std::size_t index = 0; index < shunt_rejection_count(runtime.get()); ++index) {
    shunt_rejection rejection{};
    rejection.size = sizeof rejection;
    ASSERT_EQ(shunt_rejection_describe(runtime.get(), index, &rejection, &error), SHUNT_OK) << error.message;
    rejected.insert(rejection.id);
    EXPECT_NE(std::string(rejection.reason), "");
  }
  EXPECT_EQ(rejected.size(), 2U);
  EXPECT_FALSE(rejected.contains(device.id));
}

// Reported without a selector too: an emulated device, one on the same processor as another, one of an absent API.
TEST(CDevices, ARuntimeOfNamedDevicesTellsWhyNotTheOthers) {
  shunt_runtime_options options{};
  options.threads = 1;
  options.devices = "cpu:simd";
  shunt_error error;
  const Runtime runtime(shunt_runtime_open(&options, &error), &shunt_runtime_close);
  ASSERT_NE(runtime, nullptr) << error.message;
  std::string reasons;
  for (std::size_t index = 0; index < shunt_rejection_count(runtime.get()); ++index) {
    shunt_rejection rejection{};
    rejection.size = sizeof rejection;
    ASSERT_EQ(shunt_rejection_describe(runtime.get(), index, &rejection, &error), SHUNT_OK) << error.message;
    reasons += std::string(rejection.id) + ": " + rejection.reason + "\n";
  }
  EXPECT_NE(reasons.find("cpu:scalar: it is the same processor as cpu:simd\n"), std::string::npos) << reasons;
  EXPECT_NE(reasons.find("vulkan: it was not asked for"), std::string::npos) << reasons;
}

TEST(CDevices, WarningsOfTheStartAreTold) {
  ASSERT_EQ(setenv("SHUNT_FAULTS", "vulkan:7 lost at op 0", 1), 0);
  shunt_runtime_options options{};
  options.threads = 1;
  options.devices = "cpu:scalar";
  shunt_error error;
  const Runtime runtime(shunt_runtime_open(&options, &error), &shunt_runtime_close);
  unsetenv("SHUNT_FAULTS");
  ASSERT_NE(runtime, nullptr) << error.message;
  ASSERT_GE(shunt_warning_count(runtime.get()), 1U);
  EXPECT_NE(std::strstr(shunt_warning(runtime.get(), 0), "vulkan:7"), nullptr) << shunt_warning(runtime.get(), 0);
  EXPECT_EQ(shunt_warning(runtime.get(), shunt_warning_count(runtime.get())), nullptr);
}

}  // namespace
