// A device's one context: its functions, what it reports about itself, and its errors. Calls expect nothing to stay
// bound from earlier calls. One thread at a time.
#pragma once

#include <memory>
#include <string>

#include "devices/shaders/dispatch.h"
#include "devices/webgl/api.h"

namespace shunt::webgl {

// Words in a row of every texture; kernel sources use the same number (ops/texture.glsl).
inline constexpr std::uint64_t kRowWords = 4096;

// The part of a texture that is drawn to: columns from x on, in words, and rows from y on.
struct Rectangle {
  GLint x = 0;
  GLint y = 0;
  GLsizei width = 0;
  GLsizei height = 0;
};
// Returns the smallest rectangle with these words of a texture: columns of one row, or whole rows. REQUIRES: words > 0.
[[nodiscard]] Rectangle rectangle_of(std::uint64_t first_word, std::uint64_t words);

class Context {
 public:
  // Errors: unsupported if the context's limits are too small.
  [[nodiscard]] static Result<std::shared_ptr<Context>> create(const Functions& functions);

  [[nodiscard]] const Functions& call() const { return functions_; }
  [[nodiscard]] const std::string& renderer() const { return renderer_; }
  [[nodiscard]] const DispatchLimits& limits() const { return limits_; }
  // Returns device_lost, or the first error since the last check.
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
