#include "devices/discovery/known_apis.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ranges>
#include <sstream>

#include "base/fnv.h"
#include "base/parse_json.h"
#include "base/system/cache_folder.h"
#include "base/system/file_lock.h"
#include "base/system/text_file.h"
#include "base/system/whole_file.h"
#include "devices/discovery/device_json.h"
#include "ops/shader.h"

namespace shunt {
namespace {

constexpr int kFormat = 2;                 // grows when the meaning of a description changes
constexpr std::size_t kMostEntries = 256;  // the oldest entries are dropped beyond this
// A driver that did not start in time may have waited for others that started with it.
constexpr std::int64_t kTimedOutSeconds = 600;

// Prefixes of the variables that change what loaders and drivers find.
constexpr std::string_view kVariables[] = {
    "CUDA_",         "NVIDIA_",    "HIP_",         "ROCR_", "HSA_",     "GPU_DEVICE_ORDINAL=",
    "VK_",           "EGL_",       "__EGL_",       "__GLX", "LIBGL_",   "MESA_",
    "LP_",           "GALLIUM",    "DRI_PRIME=",   "LD_",   "XDG_DATA", "SHUNT_CUDA_",
    "ZINK_",         "AMD_",       "RADV_",        "ANV_",  "INTEL_",   "SHUNT_HIP_",
    "SHUNT_VULKAN_", "SHUNT_EGL_", "SHUNT_WEBGPU_"};
// The places where drivers are announced, and files that show whether the kernel has a driver.
constexpr const char* kPlaces[] = {"/etc/ld.so.cache",
                                   "/usr/share/vulkan/icd.d",
                                   "/usr/local/share/vulkan/icd.d",
                                   "/etc/vulkan/icd.d",
                                   "/usr/share/vulkan/implicit_layer.d",
                                   "/etc/vulkan/implicit_layer.d",
                                   "/usr/share/glvnd/egl_vendor.d",
                                   "/etc/glvnd/egl_vendor.d",
                                   "/etc/OpenCL/vendors",
                                   "/dev/dri",
                                   "/sys/module/nvidia/version"};

// Returns an empty text if the file cannot be read.
std::string text_of(const char* file) { return read_text_file(file).value_or(std::string()); }

std::uint64_t hash_of(std::string_view text, std::uint64_t before) {
  return fnv1a(std::as_bytes(std::span(text)), before);
}

// Identifies a build by its kernels: another build may require more of devices.
std::uint64_t hash_of_kernels() {
  std::uint64_t hash = kFormat;
  for (const Shader& shader : shaders())
    hash = hash_of(fmt::format("{} {} {} {} {}", shader.family, shader.spirv.size(), shader.glsl430.size(),
                               shader.essl310.size(), shader.wgsl.size()),
                   hash);
  return hash;
}

// Returns the environment variables that change what is found, as NAME=VALUE.
std::vector<std::string_view> variables() {
  std::vector<std::string_view> found;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable)
    if (std::ranges::any_of(kVariables,
                            [&](std::string_view begin) { return std::string_view(*variable).starts_with(begin); }))
      found.emplace_back(*variable);
  std::ranges::sort(found);
  return found;
}

// Identifies this build, boot, user and set of variables: answers hold only for these.
std::string surroundings() {
  std::uint64_t hash = hash_of(text_of("/proc/sys/kernel/random/boot_id"), hash_of_kernels());
  hash = hash_of(fmt::format("{}", geteuid()), hash);
  for (const std::string_view variable : variables()) hash = hash_of("\n", hash_of(variable, hash));
  return fmt::format("{:016x}", hash);
}

// Returns size, time of the last change and mode; "-" if there is no such file.
std::string state_of(const std::string& file) {
  struct stat found{};
  if (stat(file.c_str(), &found) != 0) return "-";
  return fmt::format("{} {}.{:09} {:o}", found.st_size, found.st_mtim.tv_sec, found.st_mtim.tv_nsec, found.st_mode);
}

Json states_of(const std::vector<std::string>& files) {
  Json states = Json::object();
  for (const std::string& file : files) states[file] = state_of(file);
  return states;
}

std::vector<std::string> places() {
  std::vector<std::string> found(std::begin(kPlaces), std::end(kPlaces));
  for (const ApiRow& api : api_rows())
    for (const std::string_view file : names_in(api.files)) found.emplace_back(file);
  // Variables name files and folders, separated by colons.
  for (const std::string_view variable : variables())
    for (const auto part : std::views::split(variable.substr(variable.find('=') + 1), ':'))
      if (const std::string_view name(part); name.starts_with('/')) found.emplace_back(name);
  // A driver's announcement may be edited in place.
  for (const char* folder : kPlaces) {
    std::error_code failed;
    if (std::string_view(folder).ends_with(".d"))
      for (const auto& file : std::filesystem::directory_iterator(folder, failed))
        found.push_back(file.path().string());
  }
  std::error_code unknown;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", unknown).parent_path();
  if (!unknown) found.insert(found.end(), {program.string(), (program.parent_path() / "lib").string()});
  return found;
}

std::int64_t now_s() {
  using std::chrono::system_clock;
  return std::chrono::duration_cast<std::chrono::seconds>(system_clock::now().time_since_epoch()).count();
}

bool holds(const Json& entry) {
  if (const auto until = entry.find("until"); until != entry.end())
    if (!until->is_number_integer() || until->get<std::int64_t>() <= now_s()) return false;
  const auto states = entry.find("states");
  if (states == entry.end() || !states->is_object()) return false;
  return std::ranges::all_of(states->items(), [](const auto& item) {
    return item.value().is_string() && item.value().template get_ref<const std::string&>() == state_of(item.key());
  });
}

std::string key_of(std::string_view api, std::string_view where) { return fmt::format("{} {}", api, where); }

Result<std::filesystem::path> file() {
  SHUNT_TRY_ASSIGN(const std::filesystem::path folder, cache_folder());
  return folder / "devices.json";
}

// Returns an empty object if there is no readable file.
Json entries_in(const std::filesystem::path& path) {
  Json json = parse_json(text_of(path.c_str()));
  const bool is_ours = json.is_object() && json.contains("format") && json["format"] == kFormat &&
                       json.contains("apis") && json["apis"].is_object();
  return is_ours ? std::move(json["apis"]) : Json::object();
}

}  // namespace

KnownApis::KnownApis() : surroundings_(surroundings()), entries_(Json::object()) {
  if (const auto path = file()) entries_ = entries_in(*path);
}

std::optional<ApiReport> KnownApis::find(const ApiRow& api) const {
  const auto entry = entries_.find(key_of(api.name, surroundings_));
  if (entry == entries_.end() || !entry->is_object() || !entry->contains("report") || !holds(*entry)) return {};
  std::optional<ApiReport> found = report_from_json((*entry)["report"]);
  if (found) found->is_known = true;
  return found;
}

Status KnownApis::keep(std::span<const ProbedApi> found) const {
  SHUNT_TRY_ASSIGN(const std::filesystem::path path, file());
  SHUNT_TRY_ASSIGN(const FileLock lock, FileLock::take(path));
  Json entries = entries_in(path);  // other processes may have added more meanwhile
  const Json of_places = states_of(places());
  for (const ProbedApi& each : found) {
    const std::string key = key_of(each.report.api, surroundings_);
    Json states = states_of(each.files);
    states.update(of_places);
    entries.erase(key);
    entries[key] = json_object({{"report", to_json(each.report)}, {"states", states}});
    if (each.report.stage == StartStage::timed_out) entries[key]["until"] = now_s() + kTimedOutSeconds;
  }
  while (entries.size() > kMostEntries) entries.erase(entries.begin());
  const std::string text =
      json_object({{"format", kFormat}, {"apis", entries}}).dump(1, ' ', false, Json::error_handler_t::replace);
  return write_whole_file(path.string(), std::as_bytes(std::span(text)), Readers::user);
}

}  // namespace shunt
