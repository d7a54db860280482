// What a command of the program is. One thread.
#pragma once

#include <functional>
#include <string>

#include "command_line.h"
#include "shunt/status.h"

namespace shunt::cli {

// Does a command's work once its options are parsed. An error ends the program with exit code 1; a
// WrongUsage thrown from it means exit code 2.
using Action = std::function<Status()>;

// One function per row: adds the command's options to `line` and returns what to do.
#define SHUNT_COMMAND(function, name, summary, example) [[nodiscard]] Action function(CommandLine& line);
#include "commands.def"

// The value, where the caller's own words are all that can be wrong with it.
template <class T>
[[nodiscard]] T or_refuse(Result<T> result) {
  if (!result) refuse(result.error().message);
  return std::move(*result);
}

}  // namespace shunt::cli
