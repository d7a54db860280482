// The folder of what may be computed again: what drivers made of kernels, what was found out about a machine.
//
// Plain functions; any thread, as long as none changes the environment. Files in it are whole or absent.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "shunt/status.h"

namespace shunt {

// $SHUNT_CACHE_DIR, else $XDG_CACHE_HOME/shunt, else $HOME/.cache/shunt. Made where it is not there, for its user
// alone. Errors: io, with what to do; a caller goes on without it.
[[nodiscard]] Result<std::filesystem::path> cache_folder();

// Writes a file so that others see it as it was or whole, never in part. Errors: io.
[[nodiscard]] Status write_whole_file(const std::filesystem::path& file, std::span<const std::byte> content);

}  // namespace shunt
