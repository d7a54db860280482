// WebGL2 without a browser: a library for SHUNT_WEBGL_LIBRARY with the functions of one OpenGL ES 3.0 context, created
// on first use and current on that thread from then on. Reading what is being written, which WebGL forbids and OpenGL
// ES leaves undefined, is an error here too.
#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <map>
#include <utility>

#include "devices/webgl/api.h"

namespace shunt::webgl {
namespace {

constexpr int kEglNone = 0x3038;
constexpr int kEglContextMajorVersion = 0x3098;
constexpr unsigned kEglOpenGlEs = 0x30A0;
constexpr unsigned kEglPlatformSurfaceless = 0x31DD;
constexpr unsigned kRenderer = 0x1F01;
constexpr GLenum kInvalidOperation = 0x0502;
constexpr std::size_t kUnits = 32;

using AnyFunction = void (*)();
using GetProcAddress = AnyFunction (*)(const char*);

// The bindings that the rules depend on.
struct Bound {
  Functions real;
  const unsigned char* (*GetString)(GLenum) = nullptr;  // NOLINT(readability-identifier-naming)
  std::map<GLuint, GLuint> texture_of;                  // by framebuffer
  GLuint framebuffer = 0;
  std::array<GLuint, kUnits> textures{};
  std::size_t unit = 0;
  GLenum error = kNoError;

  [[nodiscard]] GLuint drawn_to() { return texture_of[framebuffer]; }
};
Bound& bound() {
  static Bound state;
  return state;
}

GLenum get_error() {
  const GLenum own = std::exchange(bound().error, kNoError);
  return own != kNoError ? own : bound().real.GetError();
}
void active_texture(GLenum unit) {
  bound().unit = unit - kTexture0;
  bound().real.ActiveTexture(unit);
}
void bind_texture(GLenum target, GLuint name) {
  bound().textures.at(bound().unit) = name;
  bound().real.BindTexture(target, name);
}
void bind_framebuffer(GLenum target, GLuint name) {
  bound().framebuffer = name;
  bound().real.BindFramebuffer(target, name);
}
void framebuffer_texture(GLenum target, GLenum attachment, GLenum kind, GLuint texture, GLint level) {
  bound().texture_of[bound().framebuffer] = texture;
  bound().real.FramebufferTexture2D(target, attachment, kind, texture, level);
}
void draw_arrays(GLenum mode, GLint first, GLsizei count) {
  for (const GLuint texture : bound().textures)
    if (texture != 0 && texture == bound().drawn_to()) bound().error = kInvalidOperation;
  bound().real.DrawArrays(mode, first, count);
}
void copy_texture(GLenum target, GLint level, GLint to_x, GLint to_y, GLint x, GLint y, GLsizei width, GLsizei height) {
  if (bound().textures.at(bound().unit) == bound().drawn_to()) bound().error = kInvalidOperation;
  bound().real.CopyTexSubImage2D(target, level, to_x, to_y, x, y, width, height);
}
GLboolean is_context_lost() { return 0; }
void describe_gpu(GLsizei capacity, GLchar* text) {
  const auto* const name = reinterpret_cast<const char*>(bound().GetString(kRenderer));
  static_cast<void>(std::snprintf(text, static_cast<std::size_t>(capacity), "%s", name));
}

// A context without a window, and how to make it current and release it.
struct Context {
  void* display = nullptr;
  void* handle = nullptr;
  unsigned (*make_current)(void*, void*, void*, void*) = nullptr;

  [[nodiscard]] bool take() const { return make_current(display, nullptr, nullptr, handle) != 0; }
  void leave() const { static_cast<void>(make_current(display, nullptr, nullptr, nullptr)); }
};
Context& context() {
  static Context only;
  return only;
}

bool start(GetProcAddress find) {
  const auto get_display = reinterpret_cast<void* (*)(unsigned, void*, const int*)>(find("eglGetPlatformDisplayEXT"));
  const auto initialize = reinterpret_cast<unsigned (*)(void*, int*, int*)>(find("eglInitialize"));
  const auto bind_api = reinterpret_cast<unsigned (*)(unsigned)>(find("eglBindAPI"));
  const auto create = reinterpret_cast<void* (*)(void*, void*, void*, const int*)>(find("eglCreateContext"));
  Context& made = context();
  made.make_current = reinterpret_cast<unsigned (*)(void*, void*, void*, void*)>(find("eglMakeCurrent"));
  if (get_display == nullptr || initialize == nullptr || bind_api == nullptr || create == nullptr ||
      made.make_current == nullptr)
    return false;
  made.display = get_display(kEglPlatformSurfaceless, nullptr, nullptr);
  if (made.display == nullptr || initialize(made.display, nullptr, nullptr) == 0 || bind_api(kEglOpenGlEs) == 0)
    return false;
  constexpr int kAttributes[] = {kEglContextMajorVersion, 3, kEglNone};
  made.handle = create(made.display, nullptr, nullptr, kAttributes);
  return made.handle != nullptr && made.take();
}

const Functions* open() {
  void* const library = dlopen("libEGL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  const auto find = reinterpret_cast<GetProcAddress>(dlsym(library, "eglGetProcAddress"));
  if (find == nullptr || !start(find)) return nullptr;
  Functions& real = bound().real;
#define SHUNT_WEBGL_LOAD(result, name, parameters) real.name = reinterpret_cast<result(*) parameters>(find("gl" #name));
  SHUNT_WEBGL_FUNCTIONS(SHUNT_WEBGL_LOAD)
#undef SHUNT_WEBGL_LOAD
  bound().GetString = reinterpret_cast<const unsigned char* (*)(GLenum)>(find("glGetString"));
  static Functions functions;
  functions = real;
  functions.GetError = get_error;
  functions.ActiveTexture = active_texture;
  functions.BindTexture = bind_texture;
  functions.BindFramebuffer = bind_framebuffer;
  functions.FramebufferTexture2D = framebuffer_texture;
  functions.DrawArrays = draw_arrays;
  functions.CopyTexSubImage2D = copy_texture;
  functions.IsContextLost = is_context_lost;
  functions.DescribeGpu = describe_gpu;
  return &functions;
}

}  // namespace
}  // namespace shunt::webgl

extern "C" const shunt::webgl::Functions* shunt_webgl_functions() {
  static const shunt::webgl::Functions* const kFunctions = shunt::webgl::open();
  return kFunctions != nullptr && shunt::webgl::context().take() ? kFunctions : nullptr;
}

extern "C" void shunt_webgl_leave() {
  if (shunt::webgl::context().handle != nullptr) shunt::webgl::context().leave();
}
