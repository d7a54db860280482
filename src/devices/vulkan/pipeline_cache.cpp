#include "devices/vulkan/pipeline_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <system_error>

#include "base/fnv.h"
#include "base/out_of_memory.h"
#include "base/system/cache_folder.h"
#include "base/system/whole_file.h"

namespace shunt::vulkan {
namespace {

constexpr std::array<char, 8> kMagic = {'s', 'h', 'u', 'n', 't', 'v', 'k', '1'};
constexpr std::uint64_t kMostBytes = std::uint64_t{256} << 20U;

// The file's header; the driver's data follows. Devices and drivers are compared by these bytes.
struct Header {
  std::array<char, 8> magic{};
  std::uint32_t driver_version = 0;
  std::uint32_t vendor = 0;
  std::uint32_t device = 0;
  std::uint32_t api_version = 0;
  std::array<std::uint8_t, VK_UUID_SIZE> uuid{};
  std::uint64_t bytes = 0;
  std::uint64_t hash = 0;
};
static_assert(sizeof(Header) == 56);

Header header_of(const VkPhysicalDeviceProperties& properties, std::span<const std::byte> data) {
  Header header{.magic = kMagic,
                .driver_version = properties.driverVersion,
                .vendor = properties.vendorID,
                .device = properties.deviceID,
                .api_version = properties.apiVersion,
                .bytes = data.size(),
                .hash = fnv1a(data)};
  std::ranges::copy(properties.pipelineCacheUUID, header.uuid.begin());
  return header;
}

// Checks the driver's own header, as Vulkan defines it.
bool is_of_driver(const VkPhysicalDeviceProperties& properties, std::span<const std::byte> data) {
  VkPipelineCacheHeaderVersionOne header;
  if (data.size() < sizeof(header)) return false;
  std::memcpy(&header, data.data(), sizeof(header));
  return header.headerSize >= sizeof(header) && header.headerSize <= data.size() &&
         header.headerVersion == VK_PIPELINE_CACHE_HEADER_VERSION_ONE && header.vendorID == properties.vendorID &&
         header.deviceID == properties.deviceID &&
         std::ranges::equal(header.pipelineCacheUUID, properties.pipelineCacheUUID);
}

std::vector<std::byte> content_of(const std::filesystem::path& file) {
  std::error_code absent;
  const std::uint64_t bytes = std::filesystem::file_size(file, absent);
  if (absent || bytes > kMostBytes) return {};
  std::vector<std::byte> content(bytes);
  std::ifstream in(file, std::ios::binary);
  in.read(reinterpret_cast<char*>(content.data()), static_cast<std::streamsize>(bytes));
  if (!in) return {};
  return content;
}

}  // namespace

std::string cache_file_name(const VkPhysicalDeviceProperties& properties) {
  std::string uuid;
  for (const std::uint8_t byte : properties.pipelineCacheUUID) uuid += fmt::format("{:02x}", byte);
  return fmt::format("vulkan-{:04x}-{:04x}-{:08x}-{}.pipelines", properties.vendorID, properties.deviceID,
                     properties.driverVersion, uuid);
}

std::vector<std::byte> seal_cache(const VkPhysicalDeviceProperties& properties, std::span<const std::byte> data) {
  const Header header = header_of(properties, data);
  std::vector<std::byte> content(sizeof(header) + data.size());
  std::memcpy(content.data(), &header, sizeof(header));
  std::ranges::copy(data, content.begin() + sizeof(header));
  return content;
}

std::span<const std::byte> unseal_cache(const VkPhysicalDeviceProperties& properties,
                                        std::span<const std::byte> content) {
  if (content.size() < sizeof(Header)) return {};
  const std::span<const std::byte> data = content.subspan(sizeof(Header));
  const Header expected = header_of(properties, data);
  if (std::memcmp(content.data(), &expected, sizeof(expected)) != 0) return {};
  return is_of_driver(properties, data) ? data : std::span<const std::byte>{};
}

PipelineCache::PipelineCache(std::shared_ptr<Context> context) : context_(std::move(context)) {
  const VkPhysicalDeviceProperties& properties = context_->properties();
  const auto folder = cache_folder();
  const std::vector<std::byte> content =
      folder ? content_of(*folder / cache_file_name(properties)) : std::vector<std::byte>{};
  const std::span<const std::byte> known = unseal_cache(properties, content);
  loaded_hash_ = fnv1a(known);
  VkPipelineCacheCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
  info.initialDataSize = known.size();
  info.pInitialData = known.data();
  const DeviceFunctions& call = context_->call();
  if (call.CreatePipelineCache(context_->handle(), &info, nullptr, &cache_) == VK_SUCCESS) return;
  // The driver may reject what it wrote itself.
  cache_ = VK_NULL_HANDLE;
  info.initialDataSize = 0;
  info.pInitialData = nullptr;
  if (call.CreatePipelineCache(context_->handle(), &info, nullptr, &cache_) != VK_SUCCESS) cache_ = VK_NULL_HANDLE;
}

PipelineCache::~PipelineCache() { context_->call().DestroyPipelineCache(context_->handle(), cache_, nullptr); }

std::vector<std::byte> PipelineCache::data() const {
  const DeviceFunctions& call = context_->call();
  std::size_t bytes = 0;
  if (cache_ == VK_NULL_HANDLE ||
      call.GetPipelineCacheData(context_->handle(), cache_, &bytes, nullptr) != VK_SUCCESS || bytes > kMostBytes)
    return {};
  std::vector<std::byte> data(bytes);
  if (call.GetPipelineCacheData(context_->handle(), cache_, &bytes, data.data()) != VK_SUCCESS) return {};
  data.resize(bytes);
  return data;
}

void PipelineCache::save() const {
  // Called where nothing may throw. Out of memory is treated like a failed write: the cache is not kept.
  guarded([&] { write(); }, [] {});
}

void PipelineCache::write() const {
  const std::vector<std::byte> now = data();
  if (now.empty() || fnv1a(now) == loaded_hash_) return;
  const VkPhysicalDeviceProperties& properties = context_->properties();
  const auto folder = cache_folder();
  // If it cannot be written, kernels are compiled again next time.
  const bool is_kept = folder && write_whole_file((*folder / cache_file_name(properties)).string(),
                                                  seal_cache(properties, now), Readers::user)
                                     .has_value();
  static_cast<void>(is_kept);
}

}  // namespace shunt::vulkan
