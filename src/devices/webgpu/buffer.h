// Memory of a WebGPU device: buffers, and writes of any number of bytes to them.
//
// Buffers share the context. One thread at a time.
#pragma once

#include <memory>
#include <span>

#include "devices/device.h"
#include "devices/webgpu/context.h"
#include "devices/webgpu/pipeline.h"

namespace shunt::webgpu {

// WebGPU's alignment of a binding's offset.
inline constexpr std::uint64_t kAlignment = 256;

inline std::uint64_t whole_words(std::uint64_t bytes) { return (bytes + 3) / 4 * 4; }
inline std::uint64_t aligned(std::uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

class WebGpuBuffer final : public Buffer {
 public:
  // Zeroed, in whole words. Errors: out_of_memory, device_lost.
  [[nodiscard]] static Result<std::unique_ptr<WebGpuBuffer>> create(std::shared_ptr<Context> context,
                                                                    std::uint64_t bytes, BufferUsage usage);
  ~WebGpuBuffer() override;
  WebGpuBuffer(const WebGpuBuffer&) = delete;
  WebGpuBuffer& operator=(const WebGpuBuffer&) = delete;

  [[nodiscard]] std::uint64_t bytes() const override { return bytes_; }
  [[nodiscard]] std::span<std::byte> host() override { return {}; }
  [[nodiscard]] BufferHandle handle() const { return handle_; }
  [[nodiscard]] std::uint64_t allocated_bytes() const;

 private:
  WebGpuBuffer(std::shared_ptr<Context> context, std::uint64_t bytes) : context_(std::move(context)), bytes_(bytes) {}

  std::shared_ptr<Context> context_;
  BufferHandle handle_ = nullptr;
  std::uint64_t bytes_ = 0;
};

// Writes the host's bytes to a buffer. WebGPU writes whole words: a small kernel writes the rest of the last word, so
// that the bytes after it keep their values.
class Writer {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Writer>> create(std::shared_ptr<Context> context);
  // Copies `from` before it returns; the bytes arrive before anything submitted later. REQUIRES: offset is a multiple
  // of 4.
  void write(const WebGpuBuffer& to, std::uint64_t offset, std::span<const std::byte> from);

 private:
  explicit Writer(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  void write_tail(const WebGpuBuffer& to, std::uint64_t offset, std::span<const std::byte> from);

  std::shared_ptr<Context> context_;
  Pipeline pipeline_;
  std::unique_ptr<WebGpuBuffer> patch_;  // the kernel's arguments
};

}  // namespace shunt::webgpu
