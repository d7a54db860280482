#include "devices/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace shunt {
namespace {

std::string beside_the_program(const char* name) {
  std::error_code unknown;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  return unknown ? std::string() : (program.parent_path().parent_path() / "lib" / name).string();
}

}  // namespace

Result<Library> Library::open(const char* name, const char* override_variable, std::string_view advice) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment is set before threads are
  if (const char* file = std::getenv(override_variable); file != nullptr) {
    if (void* handle = dlopen(file, RTLD_NOW | RTLD_LOCAL)) return Library(handle);
    return fail(Code::unsupported, fmt::format("{} of {} cannot be opened", file, override_variable));
  }
  if (void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return Library(handle);
  const std::string carried = beside_the_program(name);
  if (void* handle = carried.empty() ? nullptr : dlopen(carried.c_str(), RTLD_NOW | RTLD_LOCAL)) return Library(handle);
  return fail(Code::unsupported, fmt::format("{} is not there; {}", name, advice));
}

void* Library::address_of(const char* symbol) const { return dlsym(handle_, symbol); }

}  // namespace shunt
