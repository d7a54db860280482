// The folder of what may be computed again: what drivers made of kernels, what was found out about a machine.
//
// Plain functions; any thread, as long as none changes the environment. Files in it are whole or absent
// (base/system/whole_file.h).
#pragma once

#include <filesystem>

#include "shunt/status.h"

namespace shunt {

// $SHUNT_CACHE_DIR, else $XDG_CACHE_HOME/shunt, else $HOME/.cache/shunt. Made where it is not there, for its user
// alone. Errors: io, with what to do; a caller goes on without it.
[[nodiscard]] Result<std::filesystem::path> cache_folder();

}  // namespace shunt
