// The folder for data that can be recomputed: drivers' compiled kernels, what was found about a machine.
//
// Plain functions; any thread, as long as none changes the environment. Files in it are whole or absent
// (base/system/whole_file.h).
#pragma once

#include <filesystem>

#include "shunt/status.h"

namespace shunt {

// Returns $SHUNT_CACHE_DIR, else $XDG_CACHE_HOME/shunt, else $HOME/.cache/shunt, created if missing, for its user
// alone. Errors: io, with what to do; callers continue without it.
[[nodiscard]] Result<std::filesystem::path> cache_folder();

}  // namespace shunt
