// Device memory as a buffer, mapped if the host can address it.
#pragma once

#include <memory>

#include "devices/vulkan/context.h"

namespace shunt::vulkan {

// A buffer's handle and its memory, which live until the device is done with them. Requested copies that have not begun
// share it.
class BufferHandle {
 public:
  explicit BufferHandle(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  ~BufferHandle();
  BufferHandle(const BufferHandle&) = delete;
  BufferHandle& operator=(const BufferHandle&) = delete;

  [[nodiscard]] Status create(std::uint64_t bytes, Place place);
  [[nodiscard]] Status import(std::span<const std::byte> pages, std::shared_ptr<const void> owner);
  [[nodiscard]] VkBuffer get() const { return buffer_; }
  [[nodiscard]] std::byte* mapped() const { return stretch_.mapped; }

 private:
  [[nodiscard]] Status make(std::uint64_t bytes, bool imports);

  std::shared_ptr<Context> context_;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  Stretch stretch_;
  VkDeviceMemory imported_ = VK_NULL_HANDLE;
  std::shared_ptr<const void> owner_;  // of imported memory
};

class VulkanBuffer final : public Buffer {
 public:
  // Zeroed if mapped; otherwise Transfer::clear() zeroes it. Errors: out_of_memory.
  [[nodiscard]] static Result<std::unique_ptr<VulkanBuffer>> create(const std::shared_ptr<Context>& context,
                                                                    std::uint64_t bytes, Place place);
  // Wraps memory that `owner` keeps alive. Errors: unsupported, also without an owner.
  [[nodiscard]] static Result<std::unique_ptr<VulkanBuffer>> import(const std::shared_ptr<Context>& context,
                                                                    std::span<const std::byte> memory,
                                                                    std::shared_ptr<const void> owner);

  [[nodiscard]] std::uint64_t bytes() const override { return bytes_; }
  [[nodiscard]] std::span<std::byte> host() override { return {mapped_, mapped_ == nullptr ? 0 : bytes_}; }
  [[nodiscard]] const std::shared_ptr<const BufferHandle>& handle() const { return handle_; }
  // The offset of its first byte within the handle.
  [[nodiscard]] std::uint64_t first_byte() const { return first_byte_; }

 private:
  VulkanBuffer(std::shared_ptr<const BufferHandle> handle, std::uint64_t bytes)
      : handle_(std::move(handle)), bytes_(bytes) {}

  std::shared_ptr<const BufferHandle> handle_;
  std::uint64_t bytes_;
  std::uint64_t first_byte_ = 0;
  std::byte* mapped_ = nullptr;
};

}  // namespace shunt::vulkan
