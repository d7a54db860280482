#include "devices/webgpu/api.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace shunt::webgpu {
namespace {

constexpr std::string_view kLibrary = "libwebgpu_wrapper.so";
constexpr const char* kVariable = "SHUNT_WEBGPU_LIBRARY";
// Dawn dropped it when it changed the structures of api.h: a library without it would read ours wrongly.
constexpr const char* kMarkOfVersion = "wgpuGetInstanceCapabilities";

std::vector<std::string> places() {
  if (const char* named = std::getenv(kVariable); named != nullptr && *named != '\0') return {named};
  std::vector<std::string> all;
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    all.push_back(program.parent_path() / kLibrary);
    all.push_back(program.parent_path() / ".." / "lib" / kLibrary);
  }
  all.emplace_back(kLibrary);
  return all;
}

}  // namespace

Result<Functions> open_library() {
  void* library = nullptr;
  std::string place;
  std::string why;
  for (const std::string& each : places()) {
    place = each;
    // Dawn and the drivers that it loads have threads and exit handlers of their own, so it is never unloaded.
    library = dlopen(each.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library != nullptr) break;
    if (const char* said = dlerror(); said != nullptr) why = said;
  }
  if (library == nullptr)
    return fail(Code::unsupported,
                fmt::format("Dawn cannot be opened ({}); npm ci --prefix tools/npm fetches it, and {} or a copy beside "
                            "the program names it",
                            why, kVariable));
  if (dlsym(library, kMarkOfVersion) == nullptr)
    return fail(Code::unsupported,
                fmt::format("{} is not Dawn's library of May 2025; take bun-webgpu-linux-x64 0.1.7", place));
  Functions functions;
#define SHUNT_WEBGPU_LOAD(answer, name, arguments)                                           \
  functions.name = reinterpret_cast<decltype(functions.name)>(dlsym(library, "wgpu" #name)); \
  if (functions.name == nullptr) return fail(Code::unsupported, fmt::format("{} lacks wgpu{}", place, #name));
  SHUNT_WEBGPU_FUNCTIONS(SHUNT_WEBGPU_LOAD)
#undef SHUNT_WEBGPU_LOAD
  return functions;
}

}  // namespace shunt::webgpu
