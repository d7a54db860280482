// The help page of a command. One thread.
#pragma once

#include <string>
#include <string_view>

#include "command_line.h"

namespace shunt::cli {

// Returns usage, arguments, options by group, and the example. Meanings include the defaults.
[[nodiscard]] std::string help_page(const CommandLine& line, std::string_view example);

// "-n, --tokens N", or the name of an argument.
[[nodiscard]] std::string names_and_value(const Option& option);

}  // namespace shunt::cli
