#include "base/system/shared_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace shunt {
namespace {

std::vector<std::string> places_of(std::span<const char* const> names) {
  std::vector<std::string> places(names.begin(), names.end());
  std::error_code unknown;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  if (unknown) return places;
  for (const std::filesystem::path& folder : {program.parent_path(), program.parent_path().parent_path() / "lib"})
    for (const char* name : names) places.push_back((folder / name).string());
  return places;
}

}  // namespace

const char* SharedLibrary::named_by(const char* override_variable) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment is set before threads are
  const char* const file = std::getenv(override_variable);
  return file == nullptr || *file == '\0' ? nullptr : file;
}

Result<SharedLibrary> SharedLibrary::open(std::span<const char* const> names, const char* override_variable,
                                          std::string_view advice) {
  if (const char* const file = named_by(override_variable); file != nullptr) {
    if (void* handle = dlopen(file, RTLD_NOW | RTLD_LOCAL)) return SharedLibrary(handle, file);
    return fail(Code::io, fmt::format("{} of {} cannot be opened; {}", file, override_variable, advice));
  }
  for (std::string& place : places_of(names))
    if (void* handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) return SharedLibrary(handle, std::move(place));
  return fail(Code::io, fmt::format("{} was not found; {}", fmt::join(names, ", "), advice));
}

void* SharedLibrary::address_of(const char* symbol) const { return dlsym(handle_, symbol); }

}  // namespace shunt
