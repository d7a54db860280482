// The browser's WebGPU behind the functions of devices/webgpu/api.h: imports that webgpu.mjs implements.
#include "devices/webgpu/api.h"

#define SHUNT_WEBGPU_IMPORT(answer, name, arguments) \
  __attribute__((import_module("webgpu"), import_name(#name))) answer name arguments;
// NOLINTBEGIN(readability-identifier-naming): the names are the API's
namespace shunt::webgpu::imports {
SHUNT_WEBGPU_FUNCTIONS(SHUNT_WEBGPU_IMPORT)
// Returns a value of enum Availability. Suspends WebAssembly, because requesting an adapter takes a while.
SHUNT_WEBGPU_IMPORT(std::uint32_t, Availability, ())
}  // namespace shunt::webgpu::imports
// NOLINTEND(readability-identifier-naming)
#undef SHUNT_WEBGPU_IMPORT

namespace shunt::webgpu {
namespace {

enum class Availability : std::uint32_t { no_webgpu, no_adapter, available };

}  // namespace

Result<Functions> open_library() {
  switch (static_cast<Availability>(imports::Availability())) {
    case Availability::no_webgpu:
      return fail(Code::unsupported,
                  "this browser has no WebGPU, or the page comes neither over https nor from this machine; today's "
                  "Chrome, Edge, Firefox and Safari have it");
    case Availability::no_adapter:
      return fail(
          Code::unsupported,
          "this browser's WebGPU offers no GPU; chrome://gpu says why, and Chrome's flag --enable-unsafe-webgpu "
          "lets it compute on the CPU");
    case Availability::available:
      break;
  }
  // Called through lambdas: otherwise clang drops the import of an uncalled function whose parameter types are
  // templates not instantiated yet.
  Functions functions;
#define SHUNT_WEBGPU_FILL(answer, name, arguments) \
  functions.name = [](auto... values) -> answer { return imports::name(values...); };
  SHUNT_WEBGPU_FUNCTIONS(SHUNT_WEBGPU_FILL)
#undef SHUNT_WEBGPU_FILL
  return functions;
}

}  // namespace shunt::webgpu
