// A program of the system run as a filter: what goes in, what comes out.
//
// Plain functions; any thread.
#pragma once

#include <span>
#include <string>

#include "shunt/status.h"

namespace shunt {

struct ToolResult {
  int exit = 0;        // its exit status, or 128 and the number of the signal that ended it
  std::string output;  // bytes
  std::string errors;
};

// Runs arguments[0], found as a shell finds it, on `input` and waits for it. Errors: io where it is not there or cannot
// be started.
[[nodiscard]] Result<ToolResult> run_tool(std::span<const char* const> arguments, std::span<const char> input);

}  // namespace shunt
