#include <fmt/format.h>

#include "devices/webgl/api.h"

namespace shunt::webgl {
namespace {

// X(our code, name, number).
#define SHUNT_WEBGL_ERRORS(X)                        \
  X(internal, INVALID_ENUM, 0x0500)                  \
  X(internal, INVALID_VALUE, 0x0501)                 \
  X(internal, INVALID_OPERATION, 0x0502)             \
  X(out_of_memory, OUT_OF_MEMORY, kOutOfMemory)      \
  X(internal, INVALID_FRAMEBUFFER_OPERATION, 0x0506) \
  X(device_lost, CONTEXT_LOST_WEBGL, kContextLost)

}  // namespace

std::unexpected<Error> webgl_error(GLenum error, std::string_view what) {
#define SHUNT_WEBGL_ERROR(code, name, number) \
  if (error == (number)) return fail(Code::code, fmt::format("{}: {} ({:#06x})", what, #name, error));
  SHUNT_WEBGL_ERRORS(SHUNT_WEBGL_ERROR)
#undef SHUNT_WEBGL_ERROR
  return fail(Code::internal, fmt::format("{}: an error ({:#06x})", what, error));
}

}  // namespace shunt::webgl
