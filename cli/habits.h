// Translates llama.cpp's options (habits.def) into Shunt's. One thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "command_line.h"

namespace shunt::cli {

// Returns the words of a call with llama.cpp's options replaced by those of the command `line`. Prints a note for each
// option that is not needed. Throws WrongUsage for options that Shunt does not support.
[[nodiscard]] std::vector<std::string> in_our_words(const CommandLine& line, std::span<const std::string> words);

}  // namespace shunt::cli
