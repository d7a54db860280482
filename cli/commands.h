// The rows of commands.def as values.
#pragma once

#include <string_view>

#include "command.h"

namespace shunt::cli {

struct Command {
  Action (*attach)(CommandLine& line);
  std::string_view name;
  std::string_view summary;
  std::string_view example;
};

inline constexpr Command kCommands[] = {
#define SHUNT_COMMAND(function, name, summary, example) {function, name, summary, example},
#include "commands.def"
};

}  // namespace shunt::cli
