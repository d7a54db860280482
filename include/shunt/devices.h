// What can compute here: the devices that each API of this machine offers, and why an API offers none.
//
// Nothing has to be started to know it: what was found is kept until a driver or a library changes. Plain values; all
// calls are safe from many threads.
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
// Errors: invalid, with the known names.
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
  // In the order of the table.
  [[nodiscard]] std::vector<DeviceFeature> list() const;
  [[nodiscard]] constexpr bool operator==(const DeviceFeatures&) const = default;

 private:
  std::uint32_t bits_ = 0;
};

// A budget of memory: as many bytes as are asked for.
inline constexpr std::uint64_t kNoBudget = ~std::uint64_t{0};

struct ComputeRates {
  double flops_per_s = 0;
  double bytes_per_s = 0;
};

// Prior rates of a device, used until it is measured.
struct PriorRates {
  double launch_us = 0;  // of one program
  double op_us = 0;      // of one op within a program
  double flops_per_s = 0;
  double bytes_per_s = 0;
  double link_us = 10;            // of a copy between the device's memory and the host's, in either direction
  double link_bytes_per_s = 6e9;  // of a long one: what PCIe 3 gives through pageable memory
  double uncertainty = 0.5;       // relative
  std::map<std::string, ComputeRates, std::less<>> families;  // of kernels that reach other rates, by name
};

// One device. What its API does not tell is empty or 0.
struct DeviceInfo {
  std::string id;  // stable: API and which one, "cpu:simd"
  std::string name;
  std::string vendor;
  DeviceType type = DeviceType::other;
  bool emulated = false;         // computes on the CPU what is made for a GPU: used only where its id is named
  std::string driver;            // its name and version
  std::string api_version;       // "Vulkan 1.3"
  std::string uuid;              // 32 hexadecimal digits, the same through each API
  std::string pci_address;       // "0000:65:00.0"
  std::string hardware;          // vendor and device as PCI numbers them, "10de:2330"
  std::string compute_resource;  // devices with the same one compete for the same processors
  std::string memory_resource;   // devices with the same one take from the same memory, whose bytes count once
  std::string memory_pool;       // devices with the same one see each other's buffers: no copies between them
  bool links_to_peers = false;   // copies from others that have it come straight, not through the host's memory
  std::uint64_t memory_bytes = 0;
  std::uint64_t alignment_bytes = 64;
  std::uint64_t largest_binding_bytes = ~std::uint64_t{0};
  std::uint64_t shared_memory_bytes = 0;  // of a workgroup
  std::uint32_t largest_workgroup = 0;    // invocations
  std::uint32_t subgroup_size = 0;        // invocations
  std::uint32_t compute_units = 0;        // multiprocessors; threads of a CPU
  std::uint32_t clock_mhz = 0;            // the highest
  DeviceFeatures features;
  std::vector<std::string> details;  // in the API's own words: "AVX3", "compute 9.0"
  PriorRates prior;

  // The processor of this machine or of a simulated one, not a driver that makes it look like something else.
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
  std::string reason;  // where it offers nothing: why, and what helps
  std::string hint;    // where it offers something: what would help to get more, if anything
  std::vector<DeviceInfo> devices;
  double start_ms = 0;    // what library and driver took to start
  bool is_known = false;  // found earlier, and nothing has changed since
};

struct FindOptions {
  bool again = false;         // look, even if nothing has changed
  std::uint32_t threads = 0;  // of the CPU, as RuntimeOptions has it
  std::string simulated;      // devices to list too that are made up where they are named: "sim:0,sim:1"
};

// All APIs, in the order in which their devices are preferred. Each that is not known is started in a process of its
// own, all at once, and given 5 s: what crashes or hangs there stays there.
[[nodiscard]] std::vector<ApiReport> find_devices(const FindOptions& options = {});

// Free bytes of the memories that devices take from, by memory_resource, as the system tells them now, without starting
// anything. What it does not tell is not in it.
[[nodiscard]] std::map<std::string, std::uint64_t> free_memory(std::span<const DeviceInfo> devices);

// What a device must have to be chosen.
struct DeviceRequirements {
  std::uint64_t min_memory_bytes = 0;  // a device of unknown memory has none
  DeviceFeatures features;
  std::string vendor;  // part of its vendor's name, in whatever case; empty: any
  std::optional<DeviceType> type;
  std::function<bool(const DeviceInfo&)> accept;  // null: all
  // Empty: met. Else the first that is not, with both numbers.
  [[nodiscard]] std::string refusal(const DeviceInfo& device) const;
};

// A device's id or an API, which means what is not emulated, and what it has to have beside what all must have.
struct DeviceCandidate {
  std::string name;
  DeviceRequirements requirements = {};
};

// Which devices to use, in order of preference: those of the chain in its order, then the others by score. One that
// fails to start is passed over. Emulated devices are used where the chain has their id; the name of an API means all
// others of it. Of one GPU that several APIs offer only the preferred one is used.
struct DeviceSelector {
  DeviceRequirements requirements;  // of every device
  std::vector<DeviceCandidate> chain;
  bool only_chain = false;             // no others
  bool prefers_discrete = false;       // among the others, before all that are not
  bool without_cpu = false;            // else the processor comes last, unless the chain names it
  std::size_t most = ~std::size_t{0};  // devices to take
  // The greatest is preferred; null: the arithmetic rate that devices promise, in a Runtime the predicted speed.
  std::function<double(const DeviceInfo&)> score;
};

// Why a device was not taken.
struct DeviceRejection {
  std::string id;  // or the candidate's name
  std::string reason;
};
struct DeviceSelection {
  std::vector<DeviceInfo> devices;  // in order of preference
  std::vector<DeviceRejection> rejections;
};
// Errors: invalid for a name that no API and no device has, unsupported where no device is left, with each reason.
[[nodiscard]] Result<DeviceSelection> select(const DeviceSelector& selector, std::span<const ApiReport> found);

}  // namespace shunt
