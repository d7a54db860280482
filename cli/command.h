// The interface of a command. One thread.
#pragma once

#include <functional>
#include <string>

#include "command_line.h"
#include "shunt/status.h"

namespace shunt::cli {

// Does a command's work once its options are parsed. An error ends the program with exit code 1, a thrown WrongUsage
// with exit code 2.
using Action = std::function<Status()>;

// One function per row: adds the command's options to `line` and returns the action.
#define SHUNT_COMMAND(function, name, summary, example) [[nodiscard]] Action function(CommandLine& line);
#include "commands.def"

// Returns the value. An error is refused as wrong usage, so use it only if nothing but the user's input can be wrong.
template <class T>
[[nodiscard]] T or_refuse(Result<T> result) {
  if (!result) refuse(result.error().message);
  return std::move(*result);
}

}  // namespace shunt::cli
