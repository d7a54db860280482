#include "devices/vulkan/buffer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace shunt::vulkan {

BufferHandle::~BufferHandle() {
  context_->release([context = context_.get(), buffer = buffer_, stretch = stretch_, imported = imported_,
                     owner = std::move(owner_)] {
    context->call().DestroyBuffer(context->handle(), buffer, nullptr);
    if (stretch.block != nullptr) context->memory().free(stretch);
    context->memory().free_import(imported);
  });
}

Status BufferHandle::make(std::uint64_t bytes, bool imports) {
  VkExternalMemoryBufferCreateInfo external{};
  external.sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO;
  external.handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
  const std::array<std::uint32_t, 2> families = context_->families();
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.pNext = imports ? &external : nullptr;
  info.size = bytes;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT |
               VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  if (families[0] != families[1]) {
    info.sharingMode = VK_SHARING_MODE_CONCURRENT;
    info.queueFamilyIndexCount = 2;
    info.pQueueFamilyIndices = families.data();
  }
  return check(context_->call().CreateBuffer(context_->handle(), &info, nullptr, &buffer_), "vkCreateBuffer");
}

Status BufferHandle::create(std::uint64_t bytes, Place place) {
  SHUNT_TRY(make(std::max<std::uint64_t>(4, (bytes + 3) / 4 * 4), false));
  const DeviceFunctions& call = context_->call();
  VkMemoryRequirements needs{};
  call.GetBufferMemoryRequirements(context_->handle(), buffer_, &needs);
  SHUNT_TRY_ASSIGN(stretch_, context_->memory().allocate(needs, place));
  return check(call.BindBufferMemory(context_->handle(), buffer_, stretch_.memory, stretch_.offset),
               "vkBindBufferMemory");
}

Status BufferHandle::import(std::span<const std::byte> pages, std::shared_ptr<const void> owner) {
  owner_ = std::move(owner);
  SHUNT_TRY(make(pages.size(), true));
  const DeviceFunctions& call = context_->call();
  VkMemoryRequirements needs{};
  call.GetBufferMemoryRequirements(context_->handle(), buffer_, &needs);
  if (needs.size > pages.size())
    return fail(Code::unsupported, fmt::format("the device wants {} bytes for {}", needs.size, pages.size()));
  SHUNT_TRY_ASSIGN(imported_, context_->memory().import(pages, needs.memoryTypeBits));
  return check(call.BindBufferMemory(context_->handle(), buffer_, imported_, 0), "vkBindBufferMemory");
}

Result<std::unique_ptr<VulkanBuffer>> VulkanBuffer::create(const std::shared_ptr<Context>& context, std::uint64_t bytes,
                                                           Place place) {
  auto handle = std::make_shared<BufferHandle>(context);
  SHUNT_TRY(handle->create(bytes, place));
  std::unique_ptr<VulkanBuffer> buffer(new VulkanBuffer(handle, bytes));
  if (place == Place::device && !context->shares_host_memory()) return buffer;
  buffer->mapped_ = handle->mapped();
  std::memset(buffer->mapped_, 0, bytes);
  return buffer;
}

Result<std::unique_ptr<VulkanBuffer>> VulkanBuffer::import(const std::shared_ptr<Context>& context,
                                                           std::span<const std::byte> memory,
                                                           std::shared_ptr<const void> owner) {
  const std::uint64_t alignment = context->features().import_alignment_bytes;
  if (!context->imports_host_memory() || memory.empty())
    return fail(Code::unsupported, "the device does not use the host's memory in place; copy instead");
  if (owner == nullptr)
    return fail(Code::unsupported, "a submission that nobody waits for could outlive the memory; copy instead");
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uint64_t before = address % alignment;
  const std::uint64_t bound = context->properties().limits.minStorageBufferOffsetAlignment;
  if (before % std::max<std::uint64_t>(4, bound) != 0)
    return fail(Code::unsupported, fmt::format("the memory is not aligned to {} bytes, as kernels read it", bound));
  const std::uint64_t bytes = (before + memory.size() + alignment - 1) / alignment * alignment;
  auto handle = std::make_shared<BufferHandle>(context);
  SHUNT_TRY(handle->import({memory.data() - before, bytes}, std::move(owner)));
  std::unique_ptr<VulkanBuffer> buffer(new VulkanBuffer(handle, memory.size()));
  buffer->first_byte_ = before;
  buffer->mapped_ = const_cast<std::byte*>(memory.data());  // its owner keeps it unchanged
  return buffer;
}

}  // namespace shunt::vulkan
