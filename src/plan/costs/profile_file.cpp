#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/system/cache_folder.h"
#include "base/system/file_lock.h"
#include "base/system/text_file.h"
#include "base/system/whole_file.h"
#include "plan/costs/profile.h"

namespace shunt {
namespace {

bool are_of_one_device(const DeviceProfile& one, const DeviceProfile& other) {
  return one.id == other.id && one.name == other.name && one.driver == other.driver && one.threads == other.threads;
}

// Shapes are stored as a list for each kind.
template <class Shape>
using Kinds = std::map<std::string, std::vector<Shape>, std::less<>>;

template <class Shape>
bool has_shape(const Kinds<Shape>& kinds, const std::string& kind, const Cost& cost) {
  const auto shapes = kinds.find(kind);
  return shapes != kinds.end() &&
         std::ranges::any_of(shapes->second, [&](const Shape& shape) { return is_same_shape(shape.cost, cost); });
}

// Adds to `found` what `now` has and neither `found` nor `before`, which may be null, has.
template <class Shape>
void add_shapes(const Kinds<Shape>& now, const Kinds<Shape>* before, Kinds<Shape>& found) {
  for (const auto& [kind, shapes] : now)
    for (const Shape& shape : shapes)
      if (!has_shape(found, kind, shape.cost) && !(before != nullptr && has_shape(*before, kind, shape.cost)))
        found[kind].push_back(shape);
}

// Returns `found` with the shapes that `now` has and neither `found` nor `before` has.
DeviceProfile merged(const DeviceProfile& now, DeviceProfile found, const DeviceProfile* before) {
  if (!are_of_one_device(now, found) || (now.is_brief && !found.is_brief)) return found;
  if (found.is_brief && !now.is_brief) return now;
  const bool goes_on = before != nullptr && are_of_one_device(*before, found);
  add_shapes(now.ops, goes_on ? &before->ops : nullptr, found.ops);
  add_shapes(now.choices, goes_on ? &before->choices : nullptr, found.choices);
  for (const auto& [op, why] : now.refused)
    if (!(goes_on && before->refused.contains(op))) found.refused.emplace(op, why);
  const auto has = [](const DeviceProfile& profile, const std::string& fingerprint) {
    return std::ranges::find(profile.confirmed, fingerprint) != profile.confirmed.end();
  };
  for (const std::string& fingerprint : now.confirmed)
    if (!has(found, fingerprint) && !(goes_on && has(*before, fingerprint))) found.confirmed.push_back(fingerprint);
  return found;
}

}  // namespace

Result<std::filesystem::path> profile_path() {
  SHUNT_TRY_ASSIGN(const std::filesystem::path folder, cache_folder());
  return folder / "calibration.json";
}

Result<Profile> load_profile(const std::filesystem::path& path, std::string& warning) {
  std::error_code failed;
  if (!std::filesystem::exists(path, failed)) return Profile{};
  SHUNT_TRY_ASSIGN(const std::string text, read_text_file(path.string()));
  auto profile = profile_from_json(text);
  if (profile) return profile;
  std::filesystem::path aside = path;
  aside += ".broken";
  std::filesystem::rename(path, aside, failed);
  warning = fmt::format(
      "the measurements of this machine in {} cannot be used: {}; they {} {}; run `shunt calibrate` to measure again",
      path.string(), profile.error().message, failed ? "could not be moved to" : "are now in", aside.string());
  return Profile{};
}

Status save_profile(const Profile& profile, const std::filesystem::path& path) {
  const std::string text = to_json(profile);
  return write_whole_file(path.string(), std::as_bytes(std::span(text)), Readers::user);
}

Status add_to_profile(const std::filesystem::path& path, const DeviceProfile& found, const DeviceProfile* before) {
  SHUNT_TRY_ASSIGN(const FileLock lock, FileLock::take(path));
  std::string warning;  // for a file that was broken a moment ago
  SHUNT_TRY_ASSIGN(Profile profile, load_profile(path, warning));
  const auto now = std::ranges::find(profile.devices, found.id, &DeviceProfile::id);
  profile.set(now == profile.devices.end() ? found : merged(*now, found, before));
  return save_profile(profile, path);
}

}  // namespace shunt
