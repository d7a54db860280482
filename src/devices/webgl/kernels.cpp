#include "devices/webgl/kernels.h"

#include <fmt/format.h>

#include "devices/shaders/gl_names.h"

namespace shunt::webgl {
namespace {

// One triangle that covers the viewport; the kernel's fragments do the rest.
constexpr std::string_view kCover = R"(#version 300 es
void main() {
  vec2 corner = vec2(float((gl_VertexID & 1) * 4 - 1), float((gl_VertexID & 2) * 2 - 1));
  gl_Position = vec4(corner, 0.0, 1.0);
}
)";
// A point's single fragment; ops/texture.glsl names `point_word`.
constexpr std::string_view kPut = R"(#version 300 es
precision highp int;
flat in uint point_word;
layout(location = 0) out uint word;
void main() { word = point_word; }
)";

bool scatters(const Shader& shader) { return !shader.essl300_points.empty(); }

}  // namespace

Kernels::Kernels(std::shared_ptr<Context> context) : context_(std::move(context)) {}

Result<std::unique_ptr<Kernels>> Kernels::create(std::shared_ptr<Context> context) {
  std::unique_ptr<Kernels> kernels(new Kernels(context));
  SHUNT_TRY_ASSIGN(kernels->nothing_, Texture::create(std::move(context), sizeof(std::uint32_t)));
  return kernels;
}

Kernels::~Kernels() {
  for (const auto& [shader, kernel] : kernels_)
    for (const GLuint program : {kernel.program, kernel.first_pass})
      if (program != 0) context_->call().DeleteProgram(program);
}

Result<Kernel> Kernels::of(const SpecializedShader& shader) {
  Kernel& kernel = kernels_[shader];
  if (kernel.program == 0) {
    SHUNT_TRY_ASSIGN(kernel, make(shader));
  }
  return kernel;
}

Result<Kernel> Kernels::make(const SpecializedShader& made_of) const {
  const Shader& shader = *made_of.shader;
  const auto source = [&](std::string_view text) { return specialized(text, made_of.values); };
  Kernel kernel{.scatters = scatters(shader)};
  if (!shader.essl300_first.empty()) {
    SHUNT_TRY_ASSIGN(kernel.first_pass, link(shader.name, kCover, source(shader.essl300_first)));
  }
  auto program = kernel.scatters ? link(shader.name, source(shader.essl300_points), kPut)
                                 : link(shader.name, kCover, source(shader.essl300));
  if (program) {
    kernel.program = *program;
    return kernel;
  }
  if (kernel.first_pass != 0) context_->call().DeleteProgram(kernel.first_pass);
  return std::unexpected(std::move(program).error());
}

Result<GLuint> Kernels::link(std::string_view name, std::string_view vertices, std::string_view fragments) const {
  const Functions& call = context_->call();
  const GLuint program = call.CreateProgram();
  Status done = compile(program, kVertexShader, vertices);
  if (done) done = compile(program, kFragmentShader, fragments);
  if (done) {
    call.LinkProgram(program);
    if (!gl_succeeded(program, kLinkStatus, call.GetProgramiv))
      done = fail(Code::internal, "it does not link: " + gl_log_of(program, call.GetProgramiv, call.GetProgramInfoLog));
  }
  if (done) bind(program);
  // The results of a lost context mean nothing.
  if (Status alive = context_->check("linkProgram"); !alive) done = std::move(alive);
  if (done) return program;
  call.DeleteProgram(program);
  return fail_at(fmt::format("kernel {} on {}", name, context_->renderer()), std::move(done).error());
}

Status Kernels::compile(GLuint program, GLenum type, std::string_view source) const {
  const Functions& call = context_->call();
  const GLchar* const text = source.data();
  const auto length = static_cast<GLint>(source.size());
  const GLuint object = call.CreateShader(type);
  call.ShaderSource(object, 1, &text, &length);
  call.CompileShader(object);
  Status done;
  if (gl_succeeded(object, kCompileStatus, call.GetShaderiv))
    call.AttachShader(program, object);
  else
    done = fail(Code::internal, "it does not compile: " + gl_log_of(object, call.GetShaderiv, call.GetShaderInfoLog));
  call.DeleteShader(object);
  return done;
}

void Kernels::bind(GLuint program) const {
  const Functions& call = context_->call();
  call.UseProgram(program);
  for (std::uint32_t operand = 0; operand < kMaxShaderOperands; ++operand) {
    const std::string name = fmt::format("texture_{}", kOutputBinding + operand);
    const GLint location = call.GetUniformLocation(program, name.c_str());
    if (location >= 0) call.Uniform1i(location, static_cast<GLint>(operand));
  }
  const auto bind_block = [&](const char* name, GLuint binding) {
    const GLuint block = call.GetUniformBlockIndex(program, name);
    if (block != kInvalidIndex) call.UniformBlockBinding(program, block, binding);
  };
  bind_block("Call", kCallBinding);
  bind_block("Step", kParametersBinding);
}

}  // namespace shunt::webgl
