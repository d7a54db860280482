// Device discovery and selection: the devices that each API of this machine offers, or why it offers none.
//
// Results are cached until a driver or a library changes, so most calls start no driver. Plain values; all calls are
// safe from many threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shunt/status.h"
#include "shunt/tables.h"

namespace shunt {

enum class DeviceType : std::uint8_t {
#define SHUNT_DEVICE_TYPE(type, name) type,
  SHUNT_DEVICE_TYPES(SHUNT_DEVICE_TYPE)
#undef SHUNT_DEVICE_TYPE
};
[[nodiscard]] std::string_view name_of(DeviceType type);

enum class DeviceFeature : std::uint8_t {
#define SHUNT_DEVICE_FEATURE(feature, name, meaning) feature,
  SHUNT_DEVICE_FEATURES(SHUNT_DEVICE_FEATURE)
#undef SHUNT_DEVICE_FEATURE
};
[[nodiscard]] std::string_view name_of(DeviceFeature feature);
// Errors: invalid, with a list of the known names.
[[nodiscard]] Result<DeviceFeature> device_feature_from_name(std::string_view name);

// A set of features.
class DeviceFeatures {
 public:
  constexpr DeviceFeatures() = default;
  constexpr DeviceFeatures(std::initializer_list<DeviceFeature> features) {
    for (const DeviceFeature feature : features) insert(feature);
  }
  constexpr void insert(DeviceFeature feature, bool is_there = true) {
    if (is_there) bits_ |= 1U << static_cast<unsigned>(feature);
  }
  [[nodiscard]] constexpr bool contains(DeviceFeature feature) const {
    return (bits_ >> static_cast<unsigned>(feature) & 1U) != 0;
  }
  // The features in the order of the table.
  [[nodiscard]] std::vector<DeviceFeature> list() const;
  [[nodiscard]] constexpr bool operator==(const DeviceFeatures&) const = default;

 private:
  std::uint32_t bits_ = 0;
};

// A memory budget without a limit.
inline constexpr std::uint64_t kNoBudget = ~std::uint64_t{0};

struct ComputeRates {
  double flops_per_s = 0;
  double bytes_per_s = 0;
};

// Prior rates of a device, used until it is measured.
struct PriorRates {
  double launch_us = 0;  // per program
  double op_us = 0;      // per op within a program
  double flops_per_s = 0;
  double bytes_per_s = 0;
  double link_us = 10;            // per copy between the device's memory and the host's, in either direction
  double link_bytes_per_s = 6e9;  // of long copies; the default is PCIe 3 through pageable memory
  double uncertainty = 0.5;       // relative
  std::map<std::string, ComputeRates, std::less<>> families;  // kernel families with other rates, by name
};

// One device. Fields that its API does not report are empty or 0.
struct DeviceInfo {
  std::string id;  // stable: the API and which of its devices, "cpu:simd"
  std::string name;
  std::string vendor;
  DeviceType type = DeviceType::other;
  bool emulated = false;         // its driver computes on the CPU; used only if its id is given
  std::string driver;            // the driver's name and version
  std::string api_version;       // "Vulkan 1.3"
  std::string uuid;              // 32 hexadecimal digits, the same in every API
  std::string pci_address;       // "0000:65:00.0"
  std::string hardware;          // PCI ids of vendor and device, "10de:2330"
  std::string compute_resource;  // devices with the same value compete for the same processors
  std::string memory_resource;   // devices with the same value share one memory, which is counted once
  std::string memory_pool;       // devices with the same value see each other's buffers and need no copies
  bool links_to_peers = false;   // copies between devices with this flag bypass the host's memory
  std::uint64_t memory_bytes = 0;
  std::uint64_t alignment_bytes = 64;
  std::uint64_t largest_binding_bytes = ~std::uint64_t{0};
  std::uint64_t shared_memory_bytes = 0;  // per workgroup
  std::uint32_t largest_workgroup = 0;    // invocations
  std::uint32_t subgroup_size = 0;        // invocations
  std::uint32_t compute_units = 0;        // a GPU's multiprocessors; a CPU's threads
  std::uint32_t clock_mhz = 0;            // maximum
  DeviceFeatures features;
  std::vector<std::string> details;  // in the API's own words: "AVX3", "compute 9.0"
  PriorRates prior;

  // True for the CPU of this machine or of a simulated one, but not for an emulated device that runs on it.
  [[nodiscard]] bool is_host_cpu() const { return type == DeviceType::cpu && !emulated; }
};

enum class StartStage : std::uint8_t {
#define SHUNT_START_STAGE(stage, name) stage,
  SHUNT_START_STAGES(SHUNT_START_STAGE)
#undef SHUNT_START_STAGE
};
[[nodiscard]] std::string_view name_of(StartStage stage);

// What one API offers.
struct ApiReport {
  std::string api;
  StartStage stage = StartStage::not_asked;
  std::string reason;  // without devices: why, and what helps
  std::string hint;    // with devices: what would make more of them available, if anything
  std::vector<DeviceInfo> devices;
  double start_ms = 0;    // time that the library and the driver took to start
  bool is_known = false;  // cached, and nothing has changed since
};

struct FindOptions {
  bool again = false;         // ignore the cached results
  std::uint32_t threads = 0;  // CPU threads, as in RuntimeOptions
  std::string simulated;      // simulated devices to list too, "sim:0,sim:1"; they exist only if named
};

// Returns all APIs, in order of preference of their devices. An API without cached results is started in its own
// process, where a crash or a hang does no harm. All start at once and have 5 s.
[[nodiscard]] std::vector<ApiReport> find_devices(const FindOptions& options = {});

// Returns the free bytes of the devices' memories now, by memory_resource, without starting a device. Memories that the
// system does not report are left out.
[[nodiscard]] std::map<std::string, std::uint64_t> free_memory(std::span<const DeviceInfo> devices);

// What a device must have to be selected.
struct DeviceRequirements {
  std::uint64_t min_memory_bytes = 0;  // a device whose memory is unknown counts as having none
  DeviceFeatures features;
  std::string vendor;  // part of the vendor's name, case-insensitive; empty: any
  std::optional<DeviceType> type;
  std::function<bool(const DeviceInfo&)> accept;  // null: accepts all
  // Returns the first requirement that the device does not meet, with both numbers; empty if it meets all.
  [[nodiscard]] std::string refusal(const DeviceInfo& device) const;
};

// A device's id, or an API for its devices that are not emulated, with requirements beyond those of all devices.
struct DeviceCandidate {
  std::string name;
  DeviceRequirements requirements = {};
};

// Selects devices in order of preference: the chain in its order, then the others by score. A device that fails to
// start is skipped. An emulated device is used only if the chain has its id; an API's name stands for all its other
// devices. If several APIs offer the same GPU, only the preferred one is used.
struct DeviceSelector {
  DeviceRequirements requirements;  // for every device
  std::vector<DeviceCandidate> chain;
  bool only_chain = false;             // use no others
  bool prefers_discrete = false;       // among the others, discrete GPUs come first
  bool without_cpu = false;            // leave out the CPU unless the chain names it; otherwise it comes last
  std::size_t most = ~std::size_t{0};  // the largest number of devices to use
  // The highest score is preferred. Null: the device's prior arithmetic rate, or the predicted speed in a Runtime.
  std::function<double(const DeviceInfo&)> score;
};

// Why a device is not used.
struct DeviceRejection {
  std::string id;  // or the candidate's name
  std::string reason;
};
struct DeviceSelection {
  std::vector<DeviceInfo> devices;  // in order of preference
  std::vector<DeviceRejection> rejections;
};
// Applies a selector to what was found. Errors: invalid for a name that no API and no device has; unsupported if no
// device is left, with the reason for each.
[[nodiscard]] Result<DeviceSelection> select(const DeviceSelector& selector, std::span<const ApiReport> found);

}  // namespace shunt
