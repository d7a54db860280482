// Device memory in large blocks, from which buffers get ranges: drivers allow few blocks and allocate them slowly.
//
// A type's blocks grow with what it holds; a large buffer gets a block of its own. An empty block is returned to the
// driver, except for one per type. Owned by the Context; one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "devices/vulkan/api.h"

namespace shunt::vulkan {

// The users of the memory. Mapped memory is always coherent, so nothing is flushed.
enum class Place : std::uint8_t {
  device,     // the device; mapped only if it shares the host's memory
  shared,     // the device reads what the host writes occasionally; mapped
  staging,    // the host writes, the device copies; mapped
  read_back,  // the device copies, the host reads; mapped
};

struct MemoryBlock;

// A range of a block.
struct Stretch {
  MemoryBlock* block = nullptr;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::byte* mapped = nullptr;  // null: the host cannot address it
};

class Memory {
 public:
  struct Limits {
    std::uint32_t most_blocks = 0;
    bool shares_host_memory = false;
    bool has_budget = false;  // VK_EXT_memory_budget
  };
  // The instance and `call` must outlive this.
  Memory(const Instance& instance, VkPhysicalDevice physical, const DeviceFunctions& call, VkDevice device,
         const Limits& limits);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Errors: out_of_memory, with the sizes requested and available.
  [[nodiscard]] Result<Stretch> allocate(const VkMemoryRequirements& needs, Place place);
  // Makes a block over host memory, from which no ranges are taken. Errors: unsupported if the driver refuses it.
  [[nodiscard]] Result<VkDeviceMemory> import(std::span<const std::byte> memory, std::uint32_t allowed_types);
  void free(const Stretch& stretch);
  void free_import(VkDeviceMemory memory);
  // Returns all empty blocks to the driver.
  void trim();

  // Bytes of the device's largest heap.
  [[nodiscard]] std::uint64_t bytes() const { return properties_.memoryHeaps[main_heap_].size; }
  // Bytes that buffers on that heap could get now; nullopt without VK_EXT_memory_budget.
  [[nodiscard]] std::optional<std::uint64_t> available() const;
  // The number of blocks of all types; for tests.
  [[nodiscard]] std::size_t blocks() const { return blocks_.size(); }

 private:
  [[nodiscard]] std::vector<std::uint32_t> types_for(std::uint32_t allowed, Place place) const;
  [[nodiscard]] std::optional<Stretch> take(MemoryBlock& block, const VkMemoryRequirements& needs);
  [[nodiscard]] Result<Stretch> allocate_of(std::uint32_t type, const VkMemoryRequirements& needs);
  [[nodiscard]] Result<MemoryBlock*> add_block(std::uint32_t type, std::uint64_t bytes);
  [[nodiscard]] Result<MemoryBlock*> add_block_for(std::uint32_t type, std::uint64_t needed);
  [[nodiscard]] std::uint64_t next_block_bytes(std::uint32_t type) const;
  [[nodiscard]] std::uint64_t heap_bytes(std::uint32_t type) const;
  void remove(const MemoryBlock* block);

  const Instance& instance_;
  VkPhysicalDevice physical_;
  const DeviceFunctions& call_;
  VkDevice device_;
  Limits limits_;
  VkPhysicalDeviceMemoryProperties properties_{};
  std::uint32_t main_heap_ = 0;
  std::vector<std::unique_ptr<MemoryBlock>> blocks_;
  std::uint32_t imports_ = 0;
};

}  // namespace shunt::vulkan
