#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "devices/cache_folder.h"
#include "plan/profile.h"

namespace shunt {

Result<std::filesystem::path> profile_path() {
  SHUNT_TRY_ASSIGN(const std::filesystem::path folder, cache_folder());
  return folder / "calibration.json";
}

Result<Profile> load_profile(const std::filesystem::path& path, std::string& warning) {
  std::error_code failed;
  if (!std::filesystem::exists(path, failed)) return Profile{};
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream) return fail(Code::io, fmt::format("{} cannot be read", path.string()));
  auto profile = profile_from_json(text.view());
  if (profile) return profile;
  std::filesystem::path aside = path;
  aside += ".broken";
  std::filesystem::rename(path, aside, failed);
  warning = fmt::format(
      "the measurements of this machine in {} cannot be used: {}; they {} {}; `shunt calibrate` makes new ones",
      path.string(), profile.error().message, failed ? "could not be moved to" : "are now in", aside.string());
  return Profile{};
}

Status save_profile(const Profile& profile, const std::filesystem::path& path) {
  const std::string text = to_json(profile);
  return write_whole_file(path, std::as_bytes(std::span(text)));
}

}  // namespace shunt
