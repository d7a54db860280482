// How a command is used, in words: its help page, and what is wrong with a call. One thread.
#pragma once

#include <string>
#include <string_view>

#include "command_line.h"

namespace shunt::cli {

// Usage, arguments, options by group, and the example. An option's default is part of its meaning.
[[nodiscard]] std::string help_page(const CommandLine& line, std::string_view example);

// "-n, --tokens N", or the name of an argument.
[[nodiscard]] std::string names_and_value(const Option& option);

}  // namespace shunt::cli
