// The functions of shunt/shunt_devices.h over shunt/devices.h.
#include "devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

// NOLINTBEGIN(readability-identifier-naming): a name of shunt_devices.h
struct shunt_found {
  std::vector<shunt::ApiReport> apis;
  std::vector<shunt::c::DeviceRecord> devices;
  std::vector<std::uint64_t> free_bytes;  // one per device
};
// NOLINTEND(readability-identifier-naming)

namespace shunt::c {
namespace {

static_assert(SHUNT_NO_BYTES == kNoBudget);

// Fills as much of the caller's struct as the caller's version has. Errors: invalid if its size was not set.
template <class T>
Status fill(const T& from, T* to, std::string_view what) {
  constexpr std::size_t kMostUnknown = 1024;  // bytes of fields unknown to this library
  SHUNT_TRY(need(to, what));
  const std::size_t size = to->size;
  if (size < sizeof size || size > sizeof(T) + kMostUnknown)
    return fail(Code::invalid, fmt::format("{} has size {}; set it to the sizeof of the struct", what, size));
  std::memset(static_cast<void*>(to), 0, size);
  std::memcpy(static_cast<void*>(to), &from, std::min(size, sizeof(T)));
  to->size = size;
  return {};
}

// Errors: invalid beyond the last.
template <class Range>
Result<std::size_t> place_in(const Range& range, std::size_t index, std::string_view what) {
  if (index >= range.size())
    return fail(Code::invalid, fmt::format("{} {} was asked for, but there are {}", what, index, range.size()));
  return index;
}

// Returns a row of a table by its number; NULL beyond the last.
template <std::size_t kCount>
const char* row_of(const char* const (&names)[kCount], unsigned row) {
  return row < kCount ? names[row] : nullptr;
}

std::uint32_t bits_of(const DeviceFeatures& features) {
  std::uint32_t bits = 0;
  for (const DeviceFeature feature : features.list()) bits |= SHUNT_FEATURE_BIT(static_cast<unsigned>(feature));
  return bits;
}

Result<DeviceFeatures> features_of(std::uint32_t bits) {
  DeviceFeatures features;
  for (unsigned number = 0; number < 32; ++number) {
    if ((bits & SHUNT_FEATURE_BIT(number)) == 0) continue;
    if (number >= SHUNT_FEATURE_COUNT)
      return fail(Code::invalid, fmt::format("bit {} is no feature; there are {}", number,
                                             static_cast<unsigned>(SHUNT_FEATURE_COUNT)));
    features.insert(static_cast<DeviceFeature>(number));
  }
  return features;
}

Result<DeviceType> type_of(std::string_view name) {
  std::string known;
  for (unsigned type = 0; type < SHUNT_DEVICE_TYPE_COUNT; ++type) {
    if (name_of(static_cast<DeviceType>(type)) == name) return static_cast<DeviceType>(type);
    known += fmt::format(" {}", name_of(static_cast<DeviceType>(type)));
  }
  return fail(Code::invalid, fmt::format("unknown device type \"{}\"; choose from:{}", name, known));
}

Result<DeviceRequirements> requirements_of(const shunt_requirements& from) {
  DeviceRequirements requirements{.min_memory_bytes = from.min_memory_bytes,
                                  .features = {},
                                  .vendor = text_or_empty(from.vendor),
                                  .type = {},
                                  .accept = nullptr};
  SHUNT_TRY_ASSIGN(requirements.features, features_of(from.features));
  if (from.type != nullptr) {
    SHUNT_TRY_ASSIGN(requirements.type, type_of(from.type));
  }
  if (from.accept != nullptr)
    requirements.accept = [accept = from.accept, user = from.user](const DeviceInfo& device) {
      const DeviceRecord record(device);
      const shunt_device_info info = record.info();
      return accept(user, &info) != 0;
    };
  return requirements;
}

shunt_api_info info_of(const ApiReport& api) {
  return {.size = sizeof(shunt_api_info),
          .name = api.api.c_str(),
          .stage = static_cast<shunt_start_stage>(api.stage),
          .reason = api.reason.c_str(),
          .hint = api.hint.c_str(),
          .device_count = api.devices.size(),
          .start_ms = api.start_ms,
          .is_known = api.is_known ? 1 : 0};
}

std::uint64_t free_bytes_of(const DeviceInfo& device, const std::map<std::string, std::uint64_t>& free) {
  const auto found = free.find(device.memory_resource);
  return found == free.end() ? SHUNT_NO_BYTES : found->second;
}

std::unique_ptr<shunt_found> find(const shunt_find_options* from) {
  FindOptions options;
  if (from != nullptr)
    options = {.again = from->again != 0, .threads = from->threads, .simulated = text_or_empty(from->simulated)};
  auto found = std::make_unique<shunt_found>();
  found->apis = find_devices(options);
  std::vector<DeviceInfo> devices;
  for (const ApiReport& api : found->apis)
    for (const DeviceInfo& device : api.devices) {
      found->devices.emplace_back(device);
      devices.push_back(device);
    }
  const auto free = free_memory(devices);
  for (const DeviceInfo& device : devices) found->free_bytes.push_back(free_bytes_of(device, free));
  return found;
}

Status describe(const shunt_found* found, std::size_t index, shunt_device_info* info) {
  SHUNT_TRY(need(found, "what was found"));
  SHUNT_TRY_ASSIGN(const std::size_t place, place_in(found->devices, index, "device"));
  shunt_device_info its_info = found->devices[place].info();
  its_info.free_memory_bytes = found->free_bytes[place];
  return fill(its_info, info, "the device's record");
}

Status describe(const shunt_runtime* runtime, std::size_t index, shunt_device_info* info) {
  SHUNT_TRY(need(runtime, "the runtime"));
  SHUNT_TRY_ASSIGN(const std::size_t place, place_in(runtime->records, index, "device"));
  const DeviceRecord& record = *runtime->records[place];
  shunt_device_info its_info = record.info();
  its_info.free_memory_bytes = free_bytes_of(*record.device, free_memory(runtime->runtime->devices()));
  its_info.budget_bytes = runtime->runtime->budgets()[place];
  return fill(its_info, info, "the device's record");
}

Status describe(const shunt_found* found, std::size_t index, shunt_api_info* info) {
  SHUNT_TRY(need(found, "what was found"));
  SHUNT_TRY_ASSIGN(const std::size_t place, place_in(found->apis, index, "API"));
  return fill(info_of(found->apis[place]), info, "the API's record");
}

Status describe(const shunt_runtime* runtime, std::size_t index, shunt_rejection* rejection) {
  SHUNT_TRY(need(runtime, "the runtime"));
  const std::span<const DeviceRejection> rejections = runtime->runtime->rejections();
  SHUNT_TRY_ASSIGN(const std::size_t place, place_in(rejections, index, "rejection"));
  return fill(shunt_rejection{.size = sizeof(shunt_rejection),
                              .id = rejections[place].id.c_str(),
                              .reason = rejections[place].reason.c_str()},
              rejection, "the rejection");
}

}  // namespace

DeviceRecord::DeviceRecord(const DeviceInfo& its_device)
    : device(&its_device), api(its_device.id.substr(0, its_device.id.find(':'))) {
  for (const std::string& word : its_device.details) details += (details.empty() ? "" : " ") + word;
}

shunt_device_info DeviceRecord::info() const {
  return {.size = sizeof(shunt_device_info),
          .id = device->id.c_str(),
          .api = api.c_str(),
          .name = device->name.c_str(),
          .vendor = device->vendor.c_str(),
          .type = static_cast<shunt_device_type>(device->type),
          .emulated = device->emulated ? 1 : 0,
          .driver = device->driver.c_str(),
          .api_version = device->api_version.c_str(),
          .uuid = device->uuid.c_str(),
          .pci_address = device->pci_address.c_str(),
          .hardware = device->hardware.c_str(),
          .compute_resource = device->compute_resource.c_str(),
          .memory_resource = device->memory_resource.c_str(),
          .memory_pool = device->memory_pool.c_str(),
          .links_to_peers = device->links_to_peers ? 1 : 0,
          .features = bits_of(device->features),
          .details = details.c_str(),
          .memory_bytes = device->memory_bytes,
          .free_memory_bytes = SHUNT_NO_BYTES,
          .budget_bytes = SHUNT_NO_BYTES,
          .alignment_bytes = device->alignment_bytes,
          .largest_binding_bytes = device->largest_binding_bytes,
          .shared_memory_bytes = device->shared_memory_bytes,
          .largest_workgroup = device->largest_workgroup,
          .subgroup_size = device->subgroup_size,
          .compute_units = device->compute_units,
          .clock_mhz = device->clock_mhz};
}

Result<DeviceSelector> selector_of(const shunt_device_selector& from) {
  DeviceSelector selector{.requirements = {},
                          .chain = {},
                          .only_chain = from.only_chain != 0,
                          .prefers_discrete = from.prefers_discrete != 0,
                          .without_cpu = from.without_cpu != 0,
                          .score = nullptr};
  SHUNT_TRY_ASSIGN(selector.requirements, requirements_of(from.requirements));
  SHUNT_TRY_ASSIGN(const std::span<const shunt_candidate> chain,
                   array_of(from.chain, from.chain_count, "the chain of devices"));
  for (const shunt_candidate& candidate : chain) {
    SHUNT_TRY(need(candidate.name, "the name of a device in the chain"));
    SHUNT_TRY_ASSIGN(DeviceRequirements requirements, requirements_of(candidate.requirements));
    selector.chain.push_back({.name = candidate.name, .requirements = std::move(requirements)});
  }
  if (from.most != 0) selector.most = from.most;
  if (from.score != nullptr)
    selector.score = [score = from.score, user = from.user](const DeviceInfo& device) {
      const DeviceRecord record(device);
      const shunt_device_info info = record.info();
      return score(user, &info);
    };
  return selector;
}

}  // namespace shunt::c

const char* shunt_device_type_name(shunt_device_type type) {
#define SHUNT_ROW_NAME(row, name, ...) name,
  static constexpr const char* kNames[] = {SHUNT_DEVICE_TYPES(SHUNT_ROW_NAME)};
  return shunt::c::row_of(kNames, static_cast<unsigned>(type));
}
const char* shunt_feature_name(shunt_feature feature) {
  static constexpr const char* kNames[] = {SHUNT_DEVICE_FEATURES(SHUNT_ROW_NAME)};
  return shunt::c::row_of(kNames, static_cast<unsigned>(feature));
}
const char* shunt_start_stage_name(shunt_start_stage stage) {
  static constexpr const char* kNames[] = {SHUNT_START_STAGES(SHUNT_ROW_NAME)};
#undef SHUNT_ROW_NAME
  return shunt::c::row_of(kNames, static_cast<unsigned>(stage));
}
const char* shunt_feature_meaning(shunt_feature feature) {
#define SHUNT_ROW_MEANING(row, name, meaning) meaning,
  static constexpr const char* kMeanings[] = {SHUNT_DEVICE_FEATURES(SHUNT_ROW_MEANING)};
#undef SHUNT_ROW_MEANING
  return shunt::c::row_of(kMeanings, static_cast<unsigned>(feature));
}

shunt_found* shunt_find_devices(const shunt_find_options* options, shunt_error* error) try {
  auto found = shunt::c::find(options);
  static_cast<void>(shunt::c::report({}, error));
  return found.release();
}
SHUNT_C_END(error)
void shunt_found_free(shunt_found* found) { const std::unique_ptr<shunt_found> ended(found); }
size_t shunt_found_api_count(const shunt_found* found) { return found == nullptr ? 0 : found->apis.size(); }
size_t shunt_found_device_count(const shunt_found* found) { return found == nullptr ? 0 : found->devices.size(); }
shunt_code shunt_found_api(const shunt_found* found, size_t index, shunt_api_info* info, shunt_error* error) try {
  return shunt::c::report(shunt::c::describe(found, index, info), error);
}
SHUNT_C_END(error)
shunt_code shunt_found_device(const shunt_found* found, size_t index, shunt_device_info* info, shunt_error* error) try {
  return shunt::c::report(shunt::c::describe(found, index, info), error);
}
SHUNT_C_END(error)

shunt_code shunt_device_describe(const shunt_runtime* runtime, size_t index, shunt_device_info* info,
                                 shunt_error* error) try {
  return shunt::c::report(shunt::c::describe(runtime, index, info), error);
}
SHUNT_C_END(error)
size_t shunt_rejection_count(const shunt_runtime* runtime) {
  return runtime == nullptr ? 0 : runtime->runtime->rejections().size();
}
shunt_code shunt_rejection_describe(const shunt_runtime* runtime, size_t index, shunt_rejection* rejection,
                                    shunt_error* error) try {
  return shunt::c::report(shunt::c::describe(runtime, index, rejection), error);
}
SHUNT_C_END(error)
size_t shunt_warning_count(const shunt_runtime* runtime) {
  return runtime == nullptr ? 0 : runtime->runtime->warnings().size();
}
const char* shunt_warning(const shunt_runtime* runtime, size_t index) {
  return index < shunt_warning_count(runtime) ? runtime->runtime->warnings()[index].c_str() : nullptr;
}
