// Memory of a context: a texture of 32-bit words in rows of kRowWords, and the framebuffer that draws to it.
//
// WebGL can neither sample and draw to one texture at once nor write part of a word. So kernels draw to a scratch
// texture whose content is then copied, and host writes pad words with their old content. One thread at a time.
#pragma once

#include <memory>

#include "devices/device.h"
#include "devices/webgl/context.h"

namespace shunt::webgl {

class Texture final : public Buffer {
 public:
  // Zeroed. Errors: out_of_memory.
  [[nodiscard]] static Result<std::unique_ptr<Texture>> create(std::shared_ptr<Context> context, std::uint64_t bytes);
  ~Texture() override;
  Texture(const Texture&) = delete;
  Texture& operator=(const Texture&) = delete;

  [[nodiscard]] std::uint64_t bytes() const override { return bytes_; }
  [[nodiscard]] std::span<std::byte> host() override { return {}; }
  [[nodiscard]] GLuint name() const { return name_; }
  [[nodiscard]] GLuint framebuffer() const { return framebuffer_; }
  [[nodiscard]] const Rectangle& whole() const { return whole_; }

  // Both wait for what was submitted before.
  [[nodiscard]] Status write(std::uint64_t offset, std::span<const std::byte> from);
  [[nodiscard]] Status read(std::uint64_t offset, std::span<std::byte> to) const;
  // Copies rectangle `at` of `from` to `to` of this texture; both have one size.
  void copy(const Texture& from, const Rectangle& at, const Rectangle& to) const;

 private:
  Texture(std::shared_ptr<Context> context, std::uint64_t bytes) : context_(std::move(context)), bytes_(bytes) {}
  [[nodiscard]] Status allocate();
  void write_words(std::uint64_t first, std::span<const std::byte> words) const;
  void read_words(std::uint64_t first, std::span<std::uint32_t> words) const;

  std::shared_ptr<Context> context_;
  std::uint64_t bytes_ = 0;
  GLuint name_ = 0;
  GLuint framebuffer_ = 0;
  Rectangle whole_;
};

}  // namespace shunt::webgl
