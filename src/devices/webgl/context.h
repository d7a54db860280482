// The one context of a device: its functions, what it answered about itself, and how it says that something failed.
// Nothing is expected to be bound from one call to the next. One thread at a time.
#pragma once

#include <memory>
#include <string>

#include "devices/shaders/dispatch.h"
#include "devices/webgl/api.h"

namespace shunt::webgl {

// The words of a row of every texture: kernel sources know it, too (ops/texture.glsl).
inline constexpr std::uint64_t kRowWords = 4096;

// What is drawn to, of a texture: columns x and on of so many words, rows y and on.
struct Rectangle {
  GLint x = 0;
  GLint y = 0;
  GLsizei width = 0;
  GLsizei height = 0;
};
// The smallest that has these words of a texture: some columns of one row, or whole rows. REQUIRES: words > 0.
[[nodiscard]] Rectangle rectangle_of(std::uint64_t first_word, std::uint64_t words);

class Context {
 public:
  // Errors: unsupported for a context that is too small.
  [[nodiscard]] static Result<std::shared_ptr<Context>> create(const Functions& functions);

  [[nodiscard]] const Functions& call() const { return functions_; }
  [[nodiscard]] const std::string& renderer() const { return renderer_; }
  [[nodiscard]] const DispatchLimits& limits() const { return limits_; }
  // device_lost, or the first error since the last check.
  [[nodiscard]] Status check(std::string_view what) const;

 private:
  explicit Context(const Functions& functions) : functions_(functions) {}
  [[nodiscard]] Status describe();
  [[nodiscard]] std::uint64_t integer(GLenum name) const;

  Functions functions_;
  std::string renderer_;
  DispatchLimits limits_;
};

}  // namespace shunt::webgl
