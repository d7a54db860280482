// The browser's WebGL2 behind the functions of devices/webgl/api.h: imports that webgl.mjs implements.
#include "devices/webgl/api.h"

#define SHUNT_WEBGL_IMPORT(result, name, parameters) \
  __attribute__((import_module("webgl"), import_name(#name))) result name parameters;
// NOLINTBEGIN(readability-identifier-naming): the names are the API's
namespace shunt::webgl::imports {
SHUNT_WEBGL_FUNCTIONS(SHUNT_WEBGL_IMPORT)
// Makes a context if there is none or it was lost. Returns zero if WebGL2 is absent.
SHUNT_WEBGL_IMPORT(int, Open, ())
}  // namespace shunt::webgl::imports
// NOLINTEND(readability-identifier-naming)
#undef SHUNT_WEBGL_IMPORT

namespace shunt::webgl {

Result<Functions> open_api() {
  if (imports::Open() == 0)
    return fail(Code::unsupported, "this browser has no WebGL2; chrome://gpu or about:support says why");
  Functions functions;
#define SHUNT_WEBGL_FILL(result, name, parameters) functions.name = imports::name;
  SHUNT_WEBGL_FUNCTIONS(SHUNT_WEBGL_FILL)
#undef SHUNT_WEBGL_FILL
  return functions;
}

}  // namespace shunt::webgl
