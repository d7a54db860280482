#include "devices/gl/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

namespace shunt::gl {
namespace {

constexpr EglInt kMostDevices = 32;

// X(our code, name, number).
#define SHUNT_EGL_ERRORS(X)                    \
  X(unsupported, EGL_NOT_INITIALIZED, 0x3001)  \
  X(internal, EGL_BAD_ACCESS, 0x3002)          \
  X(out_of_memory, EGL_BAD_ALLOC, 0x3003)      \
  X(internal, EGL_BAD_ATTRIBUTE, 0x3004)       \
  X(internal, EGL_BAD_CONFIG, 0x3005)          \
  X(internal, EGL_BAD_CONTEXT, 0x3006)         \
  X(internal, EGL_BAD_CURRENT_SURFACE, 0x3007) \
  X(internal, EGL_BAD_DISPLAY, 0x3008)         \
  X(internal, EGL_BAD_MATCH, 0x3009)           \
  X(internal, EGL_BAD_PARAMETER, 0x300C)       \
  X(internal, EGL_BAD_SURFACE, 0x300D)         \
  X(device_lost, EGL_CONTEXT_LOST, 0x300E)
#define SHUNT_GL_ERRORS(X)                              \
  X(internal, GL_INVALID_ENUM, 0x0500)                  \
  X(internal, GL_INVALID_VALUE, 0x0501)                 \
  X(internal, GL_INVALID_OPERATION, 0x0502)             \
  X(out_of_memory, GL_OUT_OF_MEMORY, kOutOfMemory)      \
  X(internal, GL_INVALID_FRAMEBUFFER_OPERATION, 0x0506) \
  X(device_lost, GL_CONTEXT_LOST, kContextLost)

struct ErrorRow {
  Code code;
  std::string_view name;
  unsigned number;
};
#define SHUNT_ERROR_ROW(code, name, number) {Code::code, #name, number},
constexpr ErrorRow kEglErrors[] = {SHUNT_EGL_ERRORS(SHUNT_ERROR_ROW)};
constexpr ErrorRow kGlErrors[] = {SHUNT_GL_ERRORS(SHUNT_ERROR_ROW)};
#undef SHUNT_ERROR_ROW

std::unexpected<Error> error_of(std::span<const ErrorRow> rows, unsigned number, std::string_view what) {
  for (const ErrorRow& row : rows)
    if (row.number == number) return fail(row.code, fmt::format("{}: {} ({:#06x})", what, row.name, number));
  return fail(Code::internal, fmt::format("{}: an error ({:#06x})", what, number));
}

}  // namespace

bool lists(const char* list, std::string_view extension) {
  std::string_view rest = list == nullptr ? "" : list;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    if (word == extension) return true;
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
  }
  return false;
}

Result<std::shared_ptr<const Egl>> Egl::open() {
  SHUNT_TRY_ASSIGN(SharedLibrary library,
                   SharedLibrary::open("libEGL.so.1", "SHUNT_EGL_LIBRARY", "on Debian and Ubuntu install libegl1"));
  std::shared_ptr<Egl> opened(new Egl);
  EglFunctions& egl = opened->functions_;
#define SHUNT_EGL_LOAD(result, name, parameters)              \
  egl.name = library.find<result(*) parameters>("egl" #name); \
  if (egl.name == nullptr) return fail(Code::unsupported, "libEGL.so.1 lacks egl" #name "; install another");
  SHUNT_EGL_FUNCTIONS(SHUNT_EGL_LOAD)
#undef SHUNT_EGL_LOAD
#define SHUNT_EGL_LOAD(result, name, parameters) egl.name = opened->function<result(*) parameters>("egl" #name);
  SHUNT_EGL_EXTENSIONS(SHUNT_EGL_LOAD)
#undef SHUNT_EGL_LOAD
  if (egl.GetPlatformDisplayEXT == nullptr || !lists(egl.QueryString(nullptr, kEglExtensions), "EGL_EXT_platform_base"))
    return fail(Code::unsupported,
                "libEGL.so.1 has no driver that does without a window (EGL_EXT_platform_base); "
                "install libegl-mesa0 or the vendor's");
  return opened;
}

Result<Functions> Egl::functions() const {
  Functions functions;
#define SHUNT_GL_LOAD(result, name, parameters)                \
  functions.name = function<result(*) parameters>("gl" #name); \
  if (functions.name == nullptr) return fail(Code::unsupported, "the driver lacks gl" #name "; install a newer one");
  SHUNT_GL_FUNCTIONS(SHUNT_GL_LOAD)
#undef SHUNT_GL_LOAD
#define SHUNT_GL_LOAD(result, name, parameters) functions.name = function<result(*) parameters>("gl" #name);
  SHUNT_GL_OPTIONAL_FUNCTIONS(SHUNT_GL_LOAD)
#undef SHUNT_GL_LOAD
  return functions;
}

std::vector<Display> Egl::displays() const {
  const char* const extensions = functions_.QueryString(nullptr, kEglExtensions);
  std::vector<Display> found;
  const auto add = [&](EglEnum platform, void* native, std::string name, bool is_last_resort) {
    if (EglDisplay display = functions_.GetPlatformDisplayEXT(platform, native, nullptr); display != nullptr)
      found.push_back({display, std::move(name), is_last_resort});
  };
  const bool enumerates = lists(extensions, "EGL_EXT_device_enumeration") || lists(extensions, "EGL_EXT_device_base");
  std::array<EglDevice, kMostDevices> devices{};
  EglInt count = 0;
  if (enumerates && functions_.QueryDevicesEXT != nullptr && lists(extensions, "EGL_EXT_platform_device") &&
      functions_.QueryDevicesEXT(kMostDevices, devices.data(), &count) != 0)
    for (EglInt i = 0; i < count; ++i)
      add(kEglPlatformDevice, devices[static_cast<std::size_t>(i)], fmt::format("EGL device {}", i), false);
  if (lists(extensions, "EGL_MESA_platform_surfaceless"))
    add(kEglPlatformSurfaceless, nullptr, "EGL without surfaces", true);
  return found;
}

std::unexpected<Error> egl_error(const EglFunctions& egl, std::string_view what) {
  return error_of(kEglErrors, static_cast<unsigned>(egl.GetError()), what);
}

std::unexpected<Error> gl_error(GLenum error, std::string_view what) { return error_of(kGlErrors, error, what); }

}  // namespace shunt::gl
