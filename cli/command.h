// What a command of the program is. One thread.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "shunt/status.h"

namespace shunt::cli {

// Does a command's work once its options are parsed. An error ends the program with exit code 1; a
// CLI::ParseError thrown from it (see refuse) means wrong usage, exit code 2.
using Action = std::function<Status()>;

// One function per row: adds the command's options to `app` and returns what to do.
#define SHUNT_COMMAND(function, name, summary, example) [[nodiscard]] Action function(CLI::App& app);
#include "commands.def"

// Wrong usage that shows only after parsing.
[[noreturn]] inline void refuse(const std::string& message) { throw CLI::ParseError(message, 2); }

// The value, where the caller's own words are all that can be wrong with it.
template <class T>
[[nodiscard]] T or_refuse(Result<T> result) {
  if (!result) refuse(result.error().message);
  return std::move(*result);
}

}  // namespace shunt::cli
