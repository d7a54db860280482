// WebGL2: the types, constants and functions in use, and their errors as ours.
//
// WebGL 2.0 (https://registry.khronos.org/webgl/specs/latest/2.0/), under the names of OpenGL ES 3.0, whose functions
// do the same. All parameters are integers and pointers, so that the browser's side is one line per function. A table
// of pointers to one context, which stays current; one thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "shunt/status.h"

namespace shunt::webgl {

using GLenum = unsigned;
using GLbitfield = unsigned;
using GLboolean = unsigned char;
using GLchar = char;
using GLint = int;
using GLsizei = int;
using GLuint = unsigned;
using GLintptr = std::intptr_t;
using GLsizeiptr = std::intptr_t;
using GLsync = struct WebGlSync*;  // a number in a browser

// X(result, name, parameters). The last two are not in OpenGL ES:
//   IsContextLost  as in WebGL
//   DescribeGpu    writes the name of what computes, zero-terminated, into that many characters
#define SHUNT_WEBGL_FUNCTIONS(X)                                                                               \
  X(GLenum, GetError, ())                                                                                      \
  X(void, GetIntegerv, (GLenum name, GLint * value))                                                           \
  X(GLuint, CreateShader, (GLenum type))                                                                       \
  X(void, ShaderSource, (GLuint shader, GLsizei count, const GLchar* const* texts, const GLint* lengths))      \
  X(void, CompileShader, (GLuint shader))                                                                      \
  X(void, GetShaderiv, (GLuint shader, GLenum name, GLint * value))                                            \
  X(void, GetShaderInfoLog, (GLuint shader, GLsizei capacity, GLsizei * length, GLchar * text))                \
  X(void, DeleteShader, (GLuint shader))                                                                       \
  X(GLuint, CreateProgram, ())                                                                                 \
  X(void, AttachShader, (GLuint program, GLuint shader))                                                       \
  X(void, LinkProgram, (GLuint program))                                                                       \
  X(void, GetProgramiv, (GLuint program, GLenum name, GLint * value))                                          \
  X(void, GetProgramInfoLog, (GLuint program, GLsizei capacity, GLsizei * length, GLchar * text))              \
  X(void, DeleteProgram, (GLuint program))                                                                     \
  X(void, UseProgram, (GLuint program))                                                                        \
  X(GLint, GetUniformLocation, (GLuint program, const GLchar* name))                                           \
  X(void, Uniform1i, (GLint location, GLint value))                                                            \
  X(GLuint, GetUniformBlockIndex, (GLuint program, const GLchar* name))                                        \
  X(void, UniformBlockBinding, (GLuint program, GLuint block, GLuint binding))                                 \
  X(void, GenBuffers, (GLsizei count, GLuint * names))                                                         \
  X(void, DeleteBuffers, (GLsizei count, const GLuint* names))                                                 \
  X(void, BindBuffer, (GLenum target, GLuint name))                                                            \
  X(void, BindBufferRange, (GLenum target, GLuint binding, GLuint name, GLintptr begin, GLsizeiptr bytes))     \
  X(void, BufferData, (GLenum target, GLsizeiptr bytes, const void* from, GLenum usage))                       \
  X(void, BufferSubData, (GLenum target, GLintptr begin, GLsizeiptr bytes, const void* from))                  \
  X(void, GenTextures, (GLsizei count, GLuint * names))                                                        \
  X(void, DeleteTextures, (GLsizei count, const GLuint* names))                                                \
  X(void, ActiveTexture, (GLenum unit))                                                                        \
  X(void, BindTexture, (GLenum target, GLuint name))                                                           \
  X(void, TexStorage2D, (GLenum target, GLsizei levels, GLenum format, GLsizei width, GLsizei height))         \
  X(void, TexParameteri, (GLenum target, GLenum name, GLint value))                                            \
  X(void, TexSubImage2D,                                                                                       \
    (GLenum target, GLint level, GLint x, GLint y, GLsizei width, GLsizei height, GLenum format, GLenum type,  \
     const void* from))                                                                                        \
  X(void, CopyTexSubImage2D,                                                                                   \
    (GLenum target, GLint level, GLint to_x, GLint to_y, GLint x, GLint y, GLsizei width, GLsizei height))     \
  X(void, GenFramebuffers, (GLsizei count, GLuint * names))                                                    \
  X(void, DeleteFramebuffers, (GLsizei count, const GLuint* names))                                            \
  X(void, BindFramebuffer, (GLenum target, GLuint name))                                                       \
  X(void, FramebufferTexture2D,                                                                                \
    (GLenum target, GLenum attachment, GLenum texture_target, GLuint texture, GLint level))                    \
  X(GLenum, CheckFramebufferStatus, (GLenum target))                                                           \
  X(void, ClearBufferuiv, (GLenum what, GLint index, const GLuint* value))                                     \
  X(void, Viewport, (GLint x, GLint y, GLsizei width, GLsizei height))                                         \
  X(void, DrawArrays, (GLenum mode, GLint first, GLsizei count))                                               \
  X(void, ReadPixels, (GLint x, GLint y, GLsizei width, GLsizei height, GLenum format, GLenum type, void* to)) \
  X(GLsync, FenceSync, (GLenum condition, GLbitfield flags))                                                   \
  X(void, GetSynciv, (GLsync sync, GLenum name, GLsizei capacity, GLsizei * length, GLint * values))           \
  X(void, DeleteSync, (GLsync sync))                                                                           \
  X(void, Flush, ())                                                                                           \
  X(GLboolean, IsContextLost, ())                                                                              \
  X(void, DescribeGpu, (GLsizei capacity, GLchar * text))

// NOLINTBEGIN(readability-identifier-naming): these are the API's names.
struct Functions {
#define SHUNT_WEBGL_MEMBER(result, name, parameters) result(*name) parameters = nullptr;
  SHUNT_WEBGL_FUNCTIONS(SHUNT_WEBGL_MEMBER)
#undef SHUNT_WEBGL_MEMBER
};
// NOLINTEND(readability-identifier-naming)

// Opens a context of its own, current from then on, and returns its functions: the browser's, or natively those of the
// library named by SHUNT_WEBGL_LIBRARY (`const Functions* shunt_webgl_functions()`), which tests use. Errors:
// unsupported, with the stage where it stopped.
[[nodiscard]] Result<Functions> open_api();

inline constexpr GLenum kNoError = 0;
inline constexpr GLenum kOutOfMemory = 0x0505;
inline constexpr GLenum kContextLost = 0x9242;
inline constexpr GLenum kPoints = 0x0000;
inline constexpr GLenum kTriangles = 0x0004;
inline constexpr GLenum kTexture2D = 0x0DE1;
inline constexpr GLenum kMaxTextureSize = 0x0D33;
inline constexpr GLenum kUnsignedInt = 0x1405;
inline constexpr GLenum kColor = 0x1800;
inline constexpr GLint kNearest = 0x2600;
inline constexpr GLenum kMagFilter = 0x2800;
inline constexpr GLenum kMinFilter = 0x2801;
inline constexpr GLenum kR32Ui = 0x8236;
inline constexpr GLenum kTexture0 = 0x84C0;
inline constexpr GLenum kDynamicDraw = 0x88E8;
inline constexpr GLenum kUniformBuffer = 0x8A11;
inline constexpr GLenum kUniformBufferAlignment = 0x8A34;
inline constexpr GLenum kFragmentShader = 0x8B30;
inline constexpr GLenum kVertexShader = 0x8B31;
inline constexpr GLenum kCompileStatus = 0x8B81;
inline constexpr GLenum kLinkStatus = 0x8B82;
inline constexpr GLenum kFramebufferComplete = 0x8CD5;
inline constexpr GLenum kColorAttachment0 = 0x8CE0;
inline constexpr GLenum kFramebuffer = 0x8D40;
inline constexpr GLenum kRedInteger = 0x8D94;
inline constexpr GLenum kRgbaInteger = 0x8D99;
inline constexpr GLenum kSyncStatus = 0x9114;
inline constexpr GLenum kSyncGpuCommandsComplete = 0x9117;
inline constexpr GLint kUnsignaled = 0x9118;
inline constexpr GLint kSignaled = 0x9119;
inline constexpr GLuint kInvalidIndex = 0xFFFFFFFF;

// Makes the error "what: OUT_OF_MEMORY (0x0505)" with the matching code. REQUIRES: error is not kNoError.
[[nodiscard]] std::unexpected<Error> webgl_error(GLenum error, std::string_view what);

}  // namespace shunt::webgl
