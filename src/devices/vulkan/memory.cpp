#include "devices/vulkan/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace shunt::vulkan {

struct MemoryBlock {
  VkDeviceMemory memory = VK_NULL_HANDLE;
  std::uint32_t type = 0;
  std::uint64_t bytes = 0;
  std::byte* mapped = nullptr;
  std::map<std::uint64_t, std::uint64_t> unused = {};  // from offset to bytes; no two are adjacent

  [[nodiscard]] bool is_empty() const { return unused.size() == 1 && unused.begin()->second == bytes; }
};

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
constexpr std::uint64_t kLeastBlockBytes = 8 * kMiB;
constexpr std::uint64_t kMostBlockBytes = 256 * kMiB;
constexpr std::uint64_t kBlocksPerHeap = 32;  // small heaps have small blocks

// The required, preferred and unwanted properties of a place.
struct Wish {
  VkMemoryPropertyFlags wanted = 0;
  VkMemoryPropertyFlags liked = 0;
  VkMemoryPropertyFlags disliked = 0;
};

Wish wish_of(Place place, bool shares_host_memory) {
  constexpr VkMemoryPropertyFlags kMapped = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  constexpr VkMemoryPropertyFlags kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  switch (place) {
    case Place::device:
      if (shares_host_memory) return {.wanted = kMapped, .liked = kLocal | kCached};
      return {.wanted = kLocal, .disliked = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT};
    case Place::shared:
      return {.wanted = kMapped, .liked = kLocal};
    case Place::staging:
      return {.wanted = kMapped, .disliked = kLocal};
    case Place::read_back:
      break;
  }
  return {.wanted = kMapped, .liked = kCached, .disliked = kLocal};
}

std::unexpected<Error> nothing_fits(std::uint64_t bytes, std::string_view why) {
  return fail(Code::out_of_memory, fmt::format("{} bytes of memory: {}", bytes, why));
}

}  // namespace

Memory::Memory(const Instance& instance, VkPhysicalDevice physical, const DeviceFunctions& call, VkDevice device,
               const Limits& limits)
    : instance_(instance), physical_(physical), call_(call), device_(device), limits_(limits) {
  VkPhysicalDeviceMemoryProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2;
  instance_.functions().GetPhysicalDeviceMemoryProperties2(physical_, &properties);
  properties_ = properties.memoryProperties;
  const auto local_bytes = [this](std::uint32_t heap) {
    const VkMemoryHeap& each = properties_.memoryHeaps[heap];
    return (each.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0 ? each.size : 0;
  };
  for (std::uint32_t heap = 1; heap < properties_.memoryHeapCount; ++heap)
    if (local_bytes(heap) > local_bytes(main_heap_)) main_heap_ = heap;
}

Memory::~Memory() {
  for (const auto& block : blocks_) call_.FreeMemory(device_, block->memory, nullptr);
}

std::uint64_t Memory::heap_bytes(std::uint32_t type) const {
  return properties_.memoryHeaps[properties_.memoryTypes[type].heapIndex].size;
}

// Best first; a driver lists the faster of equal types first.
std::vector<std::uint32_t> Memory::types_for(std::uint32_t allowed, Place place) const {
  const Wish wish = wish_of(place, limits_.shares_host_memory);
  std::vector<std::uint32_t> types;
  for (std::uint32_t type = 0; type < properties_.memoryTypeCount; ++type)
    if ((allowed >> type & 1U) != 0 && (properties_.memoryTypes[type].propertyFlags & wish.wanted) == wish.wanted)
      types.push_back(type);
  std::ranges::sort(types, {}, [&](std::uint32_t type) {
    const VkMemoryPropertyFlags flags = properties_.memoryTypes[type].propertyFlags;
    return std::pair(std::popcount(flags & wish.disliked) - std::popcount(flags & wish.liked), type);
  });
  return types;
}

Result<Stretch> Memory::allocate(const VkMemoryRequirements& needs, Place place) {
  Result<Stretch> answer = nothing_fits(needs.size, "the device has no type of memory for it");
  for (const std::uint32_t type : types_for(needs.memoryTypeBits, place)) {
    answer = allocate_of(type, needs);
    if (answer || answer.error().code != Code::out_of_memory) break;
  }
  return answer;
}

Result<Stretch> Memory::allocate_of(std::uint32_t type, const VkMemoryRequirements& needs) {
  if (needs.size > heap_bytes(type))
    return nothing_fits(needs.size, fmt::format("its heap has {} bytes in all", heap_bytes(type)));
  const bool is_big = needs.size > kMostBlockBytes / 2 || needs.size > next_block_bytes(type);
  if (!is_big)
    for (const auto& block : blocks_)
      if (block->type == type)
        if (std::optional<Stretch> stretch = take(*block, needs)) return *stretch;
  SHUNT_TRY_ASSIGN(MemoryBlock* const block, is_big ? add_block(type, needs.size) : add_block_for(type, needs.size));
  return *take(*block, needs);
}

std::optional<Stretch> Memory::take(MemoryBlock& block, const VkMemoryRequirements& needs) {
  for (const auto& [begin, bytes] : block.unused) {
    const std::uint64_t offset = (begin + needs.alignment - 1) / needs.alignment * needs.alignment;
    const std::uint64_t end = begin + bytes;
    if (offset > end || needs.size > end - offset) continue;
    const std::uint64_t gap = offset - begin;
    const std::uint64_t rest = end - offset - needs.size;
    if (gap == 0)
      block.unused.erase(begin);
    else
      block.unused[begin] = gap;
    if (rest != 0) block.unused[offset + needs.size] = rest;
    return Stretch{&block, block.memory, offset, needs.size, block.mapped == nullptr ? nullptr : block.mapped + offset};
  }
  return std::nullopt;
}

// Returns as much again as the type already holds.
std::uint64_t Memory::next_block_bytes(std::uint32_t type) const {
  std::uint64_t held = 0;
  for (const auto& block : blocks_)
    if (block->type == type) held += block->bytes;
  const std::uint64_t most =
      std::clamp(std::bit_floor(heap_bytes(type) / kBlocksPerHeap), kLeastBlockBytes, kMostBlockBytes);
  return std::clamp(std::bit_floor(std::max<std::uint64_t>(held, 1)), kLeastBlockBytes, most);
}

// If memory is short, a smaller block may still be available.
Result<MemoryBlock*> Memory::add_block_for(std::uint32_t type, std::uint64_t needed) {
  std::uint64_t bytes = next_block_bytes(type);
  while (true) {
    Result<MemoryBlock*> block = add_block(type, bytes);
    if (block || block.error().code != Code::out_of_memory || bytes == needed) return block;
    bytes = std::max(bytes / 2, needed);
  }
}

Result<MemoryBlock*> Memory::add_block(std::uint32_t type, std::uint64_t bytes) {
  if (blocks_.size() + imports_ >= limits_.most_blocks) trim();
  if (blocks_.size() + imports_ >= limits_.most_blocks)
    return nothing_fits(bytes, fmt::format("the device gives {} blocks at most, and all are in use (try larger tensors "
                                           "and fewer of them)",
                                           limits_.most_blocks));
  VkMemoryAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  info.allocationSize = bytes;
  info.memoryTypeIndex = type;
  auto block = std::make_unique<MemoryBlock>(MemoryBlock{.type = type, .bytes = bytes});
  if (const VkResult result = call_.AllocateMemory(device_, &info, nullptr, &block->memory); result != VK_SUCCESS) {
    const std::optional<std::uint64_t> left = available();
    return error_of(result, fmt::format("{} bytes of a heap of {}{}: vkAllocateMemory", bytes, heap_bytes(type),
                                        left ? fmt::format(", {} available", *left) : ""));
  }
  block->unused[0] = bytes;
  blocks_.push_back(std::move(block));
  MemoryBlock& added = *blocks_.back();
  if ((properties_.memoryTypes[type].propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) == 0) return &added;
  void* address = nullptr;
  if (const VkResult result = call_.MapMemory(device_, added.memory, 0, VK_WHOLE_SIZE, 0, &address);
      result != VK_SUCCESS) {
    remove(&added);
    return error_of(result, fmt::format("{} bytes: vkMapMemory", bytes));
  }
  added.mapped = static_cast<std::byte*>(address);
  return &added;
}

void Memory::remove(const MemoryBlock* block) {
  call_.FreeMemory(device_, block->memory, nullptr);
  std::erase_if(blocks_, [block](const auto& each) { return each.get() == block; });
}

void Memory::free(const Stretch& stretch) {
  MemoryBlock& block = *stretch.block;
  auto place = block.unused.emplace(stretch.offset, stretch.bytes).first;
  if (const auto next = std::next(place); next != block.unused.end() && place->first + place->second == next->first) {
    place->second += next->second;
    block.unused.erase(next);
  }
  if (place != block.unused.begin())
    if (const auto before = std::prev(place); before->first + before->second == place->first) {
      before->second += place->second;
      block.unused.erase(place);
    }
  if (!block.is_empty()) return;
  const bool has_another = std::ranges::any_of(blocks_, [&](const auto& other) {
    return other.get() != &block && other->type == block.type && other->is_empty();
  });
  if (has_another || block.bytes > kMostBlockBytes / 2) remove(&block);
}

void Memory::trim() {
  std::vector<const MemoryBlock*> empty;
  for (const auto& block : blocks_)
    if (block->is_empty()) empty.push_back(block.get());
  for (const MemoryBlock* block : empty) remove(block);
}

Result<VkDeviceMemory> Memory::import(std::span<const std::byte> memory, std::uint32_t allowed_types) {
  VkMemoryHostPointerPropertiesEXT pointer{};
  pointer.sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT;
  if (call_.GetMemoryHostPointerPropertiesEXT(device_, VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT,
                                              memory.data(), &pointer) != VK_SUCCESS ||
      blocks_.size() + imports_ >= limits_.most_blocks)
    return fail(Code::unsupported, "the driver does not take this memory of the host");
  VkImportMemoryHostPointerInfoEXT import{};
  import.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT;
  import.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
  import.pHostPointer = const_cast<std::byte*>(memory.data());  // kernels do not write inputs
  VkMemoryAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  info.pNext = &import;
  info.allocationSize = memory.size();
  for (std::uint32_t type = 0; type < properties_.memoryTypeCount; ++type) {
    if (((allowed_types & pointer.memoryTypeBits) >> type & 1U) == 0) continue;
    info.memoryTypeIndex = type;
    VkDeviceMemory imported = VK_NULL_HANDLE;
    if (call_.AllocateMemory(device_, &info, nullptr, &imported) != VK_SUCCESS) continue;
    ++imports_;
    return imported;
  }
  return fail(Code::unsupported, fmt::format("the driver does not take {} bytes of the host's memory", memory.size()));
}

void Memory::free_import(VkDeviceMemory memory) {
  if (memory == VK_NULL_HANDLE) return;
  call_.FreeMemory(device_, memory, nullptr);
  --imports_;
}

std::optional<std::uint64_t> Memory::available() const {
  if (!limits_.has_budget) return std::nullopt;
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{};
  budget.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT;
  VkPhysicalDeviceMemoryProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2;
  properties.pNext = &budget;
  instance_.functions().GetPhysicalDeviceMemoryProperties2(physical_, &properties);
  // The driver counts whole blocks as used.
  std::uint64_t unused = 0;
  for (const auto& block : blocks_)
    if (properties_.memoryTypes[block->type].heapIndex == main_heap_)
      for (const auto& [offset, bytes] : block->unused) unused += bytes;
  const std::uint64_t all = budget.heapBudget[main_heap_];
  const std::uint64_t used = budget.heapUsage[main_heap_];
  return (all > used ? all - used : 0) + unused;
}

}  // namespace shunt::vulkan
