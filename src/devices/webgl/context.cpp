#include "devices/webgl/context.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "devices/shaders/gl_names.h"

namespace shunt::webgl {
namespace {

// A lost context may return errors endlessly.
constexpr int kMostErrors = 16;
constexpr std::size_t kNameCharacters = 256;

}  // namespace

Rectangle rectangle_of(std::uint64_t first_word, std::uint64_t words) {
  const std::uint64_t x = first_word % kRowWords;
  const std::uint64_t y = first_word / kRowWords;
  const std::uint64_t last_y = (first_word + words - 1) / kRowWords;
  if (y == last_y) return {static_cast<GLint>(x), static_cast<GLint>(y), static_cast<GLsizei>(words), 1};
  return {0, static_cast<GLint>(y), static_cast<GLsizei>(kRowWords), static_cast<GLsizei>(last_y - y + 1)};
}

Result<std::shared_ptr<Context>> Context::create(const Functions& functions) {
  std::shared_ptr<Context> context(new Context(functions));
  SHUNT_TRY(context->describe());
  return context;
}

Status Context::describe() {
  std::array<char, kNameCharacters> name{};
  functions_.DescribeGpu(static_cast<GLsizei>(name.size()), name.data());
  renderer_ = name.data();
  const std::uint64_t rows = integer(kMaxTextureSize);
  limits_.shader.language = ShaderLanguage::essl300;
  limits_.shader.on_cpu = is_software_renderer(renderer_);
  limits_.shader.largest_binding_bytes = rows * kRowWords * sizeof(std::uint32_t);
  limits_.uniform_alignment_bytes = std::max<std::uint64_t>(16, integer(kUniformBufferAlignment));
  limits_.binds_whole_buffers = true;
  SHUNT_TRY(check("asking for limits"));
  if (rows >= kRowWords) return {};
  return fail(Code::unsupported,
              fmt::format("{} has textures of {} words a side, and kernels need {}", renderer_, rows, kRowWords));
}

std::uint64_t Context::integer(GLenum name) const {
  GLint value = 0;
  functions_.GetIntegerv(name, &value);
  return static_cast<std::uint64_t>(std::max(0, value));
}

Status Context::check(std::string_view what) const {
  if (functions_.IsContextLost() != 0) return webgl_error(kContextLost, what);
  const GLenum first = functions_.GetError();
  if (first == kNoError) return {};
  for (int i = 0; i < kMostErrors && functions_.GetError() != kNoError; ++i) {
  }
  return webgl_error(first, what);
}

}  // namespace shunt::webgl
