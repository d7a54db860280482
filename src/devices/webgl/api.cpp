// For builds outside of browsers; bindings/web/instead/ replaces it in browsers.
#include "devices/webgl/api.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/system/shared_library.h"

namespace shunt::webgl {

Result<Functions> open_api() {
  constexpr const char* kVariable = "SHUNT_WEBGL_LIBRARY";
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment is set before threads are
  const char* const file = std::getenv(kVariable);
  if (file == nullptr || *file == '\0') return fail(Code::unsupported, "WebGL2 is a browser's API");
  SHUNT_TRY_ASSIGN(const SharedLibrary library, SharedLibrary::open(file, kVariable, "it must be a library's file"));
  const auto functions = library.find<const Functions* (*)()>("shunt_webgl_functions");
  if (functions == nullptr)
    return fail(Code::unsupported, fmt::format("{} of {} lacks shunt_webgl_functions", file, kVariable));
  const Functions* const found = functions();
  if (found == nullptr) return fail(Code::unsupported, "there is no context of OpenGL ES 3.0 without a window");
  return *found;
}

}  // namespace shunt::webgl
