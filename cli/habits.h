// Options as users of llama.cpp's programs know them (habits.def), in words of ours. One thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "command_line.h"

namespace shunt::cli {

// The words of a call of the command `line`, with each habit in words that it has. Says what is not needed. Throws
// WrongUsage where something cannot be had.
[[nodiscard]] std::vector<std::string> in_our_words(const CommandLine& line, std::span<const std::string> words);

}  // namespace shunt::cli
