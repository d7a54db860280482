// Memory of a context: a buffer object, which the host accesses by copies. One thread at a time.
#pragma once

#include <memory>

#include "devices/device.h"
#include "devices/gl/context.h"

namespace shunt::gl {

class GlBuffer final : public Buffer {
 public:
  // Zeroed. Errors: out_of_memory.
  [[nodiscard]] static Result<std::unique_ptr<GlBuffer>> create(std::shared_ptr<Context> context, std::uint64_t bytes);
  ~GlBuffer() override;
  GlBuffer(const GlBuffer&) = delete;
  GlBuffer& operator=(const GlBuffer&) = delete;

  [[nodiscard]] std::uint64_t bytes() const override { return bytes_; }
  [[nodiscard]] std::span<std::byte> host() override { return {}; }
  [[nodiscard]] GLuint name() const { return name_; }

  // REQUIRES for both: a Current of the context. They wait for what was submitted before.
  [[nodiscard]] Status write(std::uint64_t offset, std::span<const std::byte> from);
  [[nodiscard]] Status read(std::uint64_t offset, std::span<std::byte> to);

 private:
  GlBuffer(std::shared_ptr<Context> context, std::uint64_t bytes) : context_(std::move(context)), bytes_(bytes) {}
  [[nodiscard]] Status allocate();
  [[nodiscard]] Status clear(std::uint64_t bytes);

  std::shared_ptr<Context> context_;
  GLuint name_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace shunt::gl
