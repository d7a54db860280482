// EGL and OpenGL, opened at run time: the types, constants and functions in use, so that none of their headers is
// needed, and their errors as ours.
//
// EGL 1.4 with extensions, OpenGL 4.3, OpenGL ES 3.1: https://registry.khronos.org. Plain tables of pointers; any
// thread. GL functions act on the context that is current on the calling thread (context.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/system/shared_library.h"

namespace shunt::gl {

using EglBool = unsigned;
using EglInt = std::int32_t;
using EglEnum = unsigned;
using EglDisplay = void*;
using EglContext = void*;
using EglSurface = void*;
using EglConfig = void*;
using EglDevice = void*;
using AnyFunction = void (*)();

using GLenum = unsigned;
using GLbitfield = unsigned;
using GLboolean = unsigned char;
using GLubyte = unsigned char;
using GLchar = char;
using GLint = int;
using GLsizei = int;
using GLuint = unsigned;
using GLint64 = std::int64_t;
using GLuint64 = std::uint64_t;
using GLintptr = std::intptr_t;
using GLsizeiptr = std::intptr_t;
using GLsync = struct SyncObject*;

// X(result, name, parameters) of libEGL itself, and of its extensions.
#define SHUNT_EGL_FUNCTIONS(X)                                                     \
  X(AnyFunction, GetProcAddress, (const char*))                                    \
  X(EglInt, GetError, ())                                                          \
  X(const char*, QueryString, (EglDisplay, EglInt))                                \
  X(EglBool, Initialize, (EglDisplay, EglInt*, EglInt*))                           \
  X(EglBool, BindAPI, (EglEnum))                                                   \
  X(EglEnum, QueryAPI, ())                                                         \
  X(EglContext, CreateContext, (EglDisplay, EglConfig, EglContext, const EglInt*)) \
  X(EglBool, DestroyContext, (EglDisplay, EglContext))                             \
  X(EglBool, MakeCurrent, (EglDisplay, EglSurface, EglSurface, EglContext))        \
  X(EglContext, GetCurrentContext, ())                                             \
  X(EglDisplay, GetCurrentDisplay, ())                                             \
  X(EglSurface, GetCurrentSurface, (EglInt))
#define SHUNT_EGL_EXTENSIONS(X)                                         \
  X(EglDisplay, GetPlatformDisplayEXT, (EglEnum, void*, const EglInt*)) \
  X(EglBool, QueryDevicesEXT, (EglInt, EglDevice*, EglInt*))

// X(result, name, parameters) of functions that every context must have, and of those that only some have.
#define SHUNT_GL_FUNCTIONS(X)                                                  \
  X(GLenum, GetError, ())                                                      \
  X(const GLubyte*, GetString, (GLenum))                                       \
  X(const GLubyte*, GetStringi, (GLenum, GLuint))                              \
  X(void, GetIntegerv, (GLenum, GLint*))                                       \
  X(void, GetInteger64v, (GLenum, GLint64*))                                   \
  X(GLuint, CreateShader, (GLenum))                                            \
  X(void, ShaderSource, (GLuint, GLsizei, const GLchar* const*, const GLint*)) \
  X(void, CompileShader, (GLuint))                                             \
  X(void, GetShaderiv, (GLuint, GLenum, GLint*))                               \
  X(void, GetShaderInfoLog, (GLuint, GLsizei, GLsizei*, GLchar*))              \
  X(void, DeleteShader, (GLuint))                                              \
  X(GLuint, CreateProgram, ())                                                 \
  X(void, AttachShader, (GLuint, GLuint))                                      \
  X(void, LinkProgram, (GLuint))                                               \
  X(void, GetProgramiv, (GLuint, GLenum, GLint*))                              \
  X(void, GetProgramInfoLog, (GLuint, GLsizei, GLsizei*, GLchar*))             \
  X(void, DeleteProgram, (GLuint))                                             \
  X(void, UseProgram, (GLuint))                                                \
  X(void, GenBuffers, (GLsizei, GLuint*))                                      \
  X(void, DeleteBuffers, (GLsizei, const GLuint*))                             \
  X(void, BindBuffer, (GLenum, GLuint))                                        \
  X(void, BindBufferRange, (GLenum, GLuint, GLuint, GLintptr, GLsizeiptr))     \
  X(void, BufferData, (GLenum, GLsizeiptr, const void*, GLenum))               \
  X(void, BufferSubData, (GLenum, GLintptr, GLsizeiptr, const void*))          \
  X(void*, MapBufferRange, (GLenum, GLintptr, GLsizeiptr, GLbitfield))         \
  X(GLboolean, UnmapBuffer, (GLenum))                                          \
  X(void, DispatchCompute, (GLuint, GLuint, GLuint))                           \
  X(void, MemoryBarrier, (GLbitfield))                                         \
  X(GLsync, FenceSync, (GLenum, GLbitfield))                                   \
  X(GLenum, ClientWaitSync, (GLsync, GLbitfield, GLuint64))                    \
  X(void, DeleteSync, (GLsync))                                                \
  X(void, Flush, ())
#define SHUNT_GL_OPTIONAL_FUNCTIONS(X)                                    \
  X(void, GetBufferSubData, (GLenum, GLintptr, GLsizeiptr, void*))        \
  X(void, ClearBufferData, (GLenum, GLenum, GLenum, GLenum, const void*)) \
  X(GLenum, GetGraphicsResetStatus, ())                                   \
  X(void, GetUnsignedBytei_vEXT, (GLenum, GLuint, GLubyte*))

// NOLINTBEGIN(readability-identifier-naming): these are the APIs' names.
#define SHUNT_GL_MEMBER(result, name, parameters) result(*name) parameters = nullptr;
struct EglFunctions {
  SHUNT_EGL_FUNCTIONS(SHUNT_GL_MEMBER)
  SHUNT_EGL_EXTENSIONS(SHUNT_GL_MEMBER)
};
struct Functions {
  SHUNT_GL_FUNCTIONS(SHUNT_GL_MEMBER)
  SHUNT_GL_OPTIONAL_FUNCTIONS(SHUNT_GL_MEMBER)
};
#undef SHUNT_GL_MEMBER
// NOLINTEND(readability-identifier-naming)

inline constexpr EglInt kEglNone = 0x3038;
inline constexpr EglInt kEglExtensions = 0x3055;
inline constexpr EglInt kEglDraw = 0x3059;
inline constexpr EglInt kEglRead = 0x305A;
inline constexpr EglInt kEglContextMajorVersion = 0x3098;
inline constexpr EglInt kEglContextMinorVersion = 0x30FB;
inline constexpr EglInt kEglContextProfileMask = 0x30FD;
inline constexpr EglInt kEglCoreProfile = 0x0001;
inline constexpr EglInt kEglResetNotificationKhr = 0x31BD;  // for OpenGL contexts
inline constexpr EglInt kEglResetNotificationExt = 0x3138;  // for OpenGL ES contexts
inline constexpr EglInt kEglLoseContextOnReset = 0x31BF;
inline constexpr EglEnum kEglOpenGlEs = 0x30A0;
inline constexpr EglEnum kEglOpenGl = 0x30A2;
inline constexpr EglEnum kEglPlatformDevice = 0x313F;
inline constexpr EglEnum kEglPlatformSurfaceless = 0x31DD;

inline constexpr GLenum kNoError = 0;
inline constexpr GLenum kOutOfMemory = 0x0505;
inline constexpr GLenum kContextLost = 0x0507;
inline constexpr GLenum kUnsignedInt = 0x1405;
inline constexpr GLenum kVendor = 0x1F00;
inline constexpr GLenum kRenderer = 0x1F01;
inline constexpr GLenum kVersion = 0x1F02;
inline constexpr GLenum kExtensions = 0x1F03;
inline constexpr GLenum kMajorVersion = 0x821B;
inline constexpr GLenum kMinorVersion = 0x821C;
inline constexpr GLenum kExtensionCount = 0x821D;
inline constexpr GLenum kR32Ui = 0x8236;
inline constexpr GLenum kRedInteger = 0x8D94;
inline constexpr GLenum kGuiltyContextReset = 0x8253;
inline constexpr GLenum kDynamicCopy = 0x88EA;
inline constexpr GLenum kUniformBuffer = 0x8A11;
inline constexpr GLenum kUniformBufferAlignment = 0x8A34;
inline constexpr GLenum kCompileStatus = 0x8B81;
inline constexpr GLenum kLinkStatus = 0x8B82;
inline constexpr GLenum kCopyWriteBuffer = 0x8F37;
inline constexpr GLenum kDedicatedMemoryKib = 0x9047;  // GL_NVX_gpu_memory_info
inline constexpr GLenum kTotalMemoryKib = 0x9048;
inline constexpr GLenum kAvailableMemoryKib = 0x9049;
inline constexpr GLenum kComputeSharedBytes = 0x8262;
inline constexpr GLenum kShaderStorageBuffer = 0x90D2;
inline constexpr GLenum kComputeStorageBlocks = 0x90DB;
inline constexpr GLenum kComputeInvocations = 0x90EB;
inline constexpr GLenum kStorageBufferBindings = 0x90DD;
inline constexpr GLenum kStorageBlockBytes = 0x90DE;
inline constexpr GLenum kStorageBufferAlignment = 0x90DF;
inline constexpr GLenum kSyncGpuCommandsComplete = 0x9117;
inline constexpr GLenum kAlreadySignaled = 0x911A;
inline constexpr GLenum kTimeoutExpired = 0x911B;
inline constexpr GLenum kConditionSatisfied = 0x911C;
inline constexpr GLenum kWaitFailed = 0x911D;
inline constexpr GLenum kComputeShader = 0x91B9;
inline constexpr GLenum kDeviceUuid = 0x9597;  // GL_EXT_memory_object
inline constexpr GLbitfield kMapRead = 0x0001;
inline constexpr GLbitfield kShaderStorageBarrier = 0x2000;
inline constexpr GLbitfield kAllBarriers = 0xFFFFFFFF;
inline constexpr GLbitfield kSyncFlushCommands = 0x0001;

// Returns whether a space-separated list of extensions has this one. `list` may be null.
[[nodiscard]] bool lists(const char* list, std::string_view extension);

// A display that a context can be created on.
struct Display {
  EglDisplay handle = nullptr;
  std::string name;  // for messages
  bool is_last_resort = false;
};

// libEGL. Its displays are never terminated, because other users in the process may share them. It stays loaded,
// because unloading would leak what they hold.
class Egl {
 public:
  // Errors: unsupported, with the stage where it stopped and what would help.
  [[nodiscard]] static Result<std::shared_ptr<const Egl>> open();

  [[nodiscard]] const EglFunctions& call() const { return functions_; }
  // Loaders answer for any name: version and extensions tell whether a context has an optional function. Errors:
  // unsupported, with the name of the missing function.
  [[nodiscard]] Result<Functions> functions() const;
  // REQUIRES: `name` is a function of this type.
  template <class Function>
  [[nodiscard]] Function function(const char* name) const {
    return reinterpret_cast<Function>(functions_.GetProcAddress(name));
  }
  // Returns the displays without a window: each processor that EGL knows, then EGL's default.
  [[nodiscard]] std::vector<Display> displays() const;

 private:
  Egl() = default;
  EglFunctions functions_;
};

// Makes the error "what: EGL_BAD_ALLOC (0x3003)" with the matching code. REQUIRES: the last call failed.
[[nodiscard]] std::unexpected<Error> egl_error(const EglFunctions& egl, std::string_view what);
// Makes the error "what: GL_OUT_OF_MEMORY (0x0505)" with the matching code. REQUIRES: error is not kNoError.
[[nodiscard]] std::unexpected<Error> gl_error(GLenum error, std::string_view what);

}  // namespace shunt::gl
