#include "devices/webgpu/api.h"

#include <fmt/format.h>

#include "base/system/shared_library.h"

namespace shunt::webgpu {
namespace {

// Dawn dropped it when it changed the structures of api.h: a library without it would misread ours.
constexpr const char* kMarkOfVersion = "wgpuGetInstanceCapabilities";

}  // namespace

Result<Functions> open_library() {
  SHUNT_TRY_ASSIGN(const SharedLibrary library,
                   SharedLibrary::open("libwebgpu_wrapper.so", "SHUNT_WEBGPU_LIBRARY",
                                       "npm ci --prefix tools/npm fetches Dawn's; name it in SHUNT_WEBGPU_LIBRARY"));
  if (library.find<void (*)()>(kMarkOfVersion) == nullptr)
    return fail(Code::unsupported,
                fmt::format("{} is not Dawn's library of May 2025; take bun-webgpu-linux-x64 0.1.7", library.name()));
  const std::string& file = library.name();
  Functions functions;
#define SHUNT_WEBGPU_LOAD(answer, name, arguments)                       \
  functions.name = library.find<decltype(functions.name)>("wgpu" #name); \
  if (functions.name == nullptr) return fail(Code::unsupported, fmt::format("{} lacks wgpu{}", file, #name));
  SHUNT_WEBGPU_FUNCTIONS(SHUNT_WEBGPU_LOAD)
#undef SHUNT_WEBGPU_LOAD
  return functions;
}

}  // namespace shunt::webgpu
