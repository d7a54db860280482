// The memory of a device in large blocks, of which buffers get stretches: a driver gives few blocks, and slowly.
//
// A type's blocks grow with what it holds; what is big gets a block of its own. A block without stretches goes back to
// the driver, but for one of each type. Owned by the Context; one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "devices/vulkan/api.h"

namespace shunt::vulkan {

// Who uses it: what is mapped is always coherent, so nothing is flushed.
enum class Place : std::uint8_t {
  device,     // the device; mapped only where it shares the host's memory
  shared,     // the device reads what the host writes now and then; mapped
  staging,    // the host writes, the device copies; mapped
  read_back,  // the device copies, the host reads; mapped
};

struct MemoryBlock;

// A stretch of a block.
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
  // The instance and `call` must outlive it.
  Memory(const Instance& instance, VkPhysicalDevice physical, const DeviceFunctions& call, VkDevice device,
         const Limits& limits);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Errors: out_of_memory, with what was wanted and what there is.
  [[nodiscard]] Result<Stretch> allocate(const VkMemoryRequirements& needs, Place place);
  // A block over memory of the host, which has no stretches. Errors: unsupported where the driver does not take it.
  [[nodiscard]] Result<VkDeviceMemory> import(std::span<const std::byte> memory, std::uint32_t allowed_types);
  void free(const Stretch& stretch);
  void free_import(VkDeviceMemory memory);
  // Gives the driver back all blocks that hold nothing.
  void trim();

  // Of the largest heap on the device.
  [[nodiscard]] std::uint64_t bytes() const { return properties_.memoryHeaps[main_heap_].size; }
  // What buffers on it could get now; nothing without VK_EXT_memory_budget.
  [[nodiscard]] std::optional<std::uint64_t> available() const;
  // Of all types; for tests.
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
