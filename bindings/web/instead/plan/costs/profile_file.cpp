// A browser keeps no files.
#include "plan/costs/profile.h"

namespace shunt {

Result<std::filesystem::path> profile_path() { return fail(Code::io, "browsers keep no files"); }
Result<Profile> load_profile(const std::filesystem::path&, std::string&) { return Profile{}; }

}  // namespace shunt
