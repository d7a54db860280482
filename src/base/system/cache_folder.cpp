#include "base/system/cache_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

namespace shunt {
namespace {

std::filesystem::path named_by(const char* variable) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment is set before threads are
  const char* const folder = std::getenv(variable);
  return folder == nullptr ? "" : folder;
}

std::filesystem::path chosen_folder() {
  if (std::filesystem::path folder = named_by("SHUNT_CACHE_DIR"); !folder.empty()) return folder;
  if (const std::filesystem::path caches = named_by("XDG_CACHE_HOME"); caches.is_absolute()) return caches / "shunt";
  if (const std::filesystem::path home = named_by("HOME"); home.is_absolute()) return home / ".cache" / "shunt";
  return {};
}

// Folders created on the way are private to the user too.
std::error_code make_private(const std::filesystem::path& folder) {
  std::error_code failed;
  if (std::filesystem::is_directory(folder, failed)) return {};
  const std::filesystem::path above = folder.parent_path();
  if (!above.empty() && above != folder)
    if (const std::error_code why = make_private(above)) return why;
  // EEXIST: another process created it first.
  if (mkdir(folder.c_str(), S_IRWXU) == 0 || errno == EEXIST) return {};
  return {errno, std::generic_category()};
}

std::unexpected<Error> io_error(const std::filesystem::path& path, std::string_view why) {
  return fail(Code::io, fmt::format("{}: {}", path.string(), why));
}

}  // namespace

Result<std::filesystem::path> cache_folder() {
  std::filesystem::path folder = chosen_folder();
  if (folder.empty()) return fail(Code::io, "no cache folder is known; set SHUNT_CACHE_DIR or HOME");
  if (const std::error_code why = make_private(folder))
    return io_error(folder, fmt::format("{}; set SHUNT_CACHE_DIR to a writable folder", why.message()));
  std::error_code failed;
  if (!std::filesystem::is_directory(folder, failed))
    return io_error(folder, "it is not a folder; set SHUNT_CACHE_DIR to a writable one");
  return folder;
}

}  // namespace shunt
