// Runs a program of the system as a filter.
//
// Plain functions; any thread.
#pragma once

#include <span>
#include <string>

#include "shunt/status.h"

namespace shunt {

struct ToolResult {
  int exit = 0;        // exit status, or 128 plus the signal that ended it
  std::string output;  // bytes
  std::string errors;
};

// Runs arguments[0], found as a shell finds it, on `input` and waits for it. Errors: io if it is missing or cannot be
// started.
[[nodiscard]] Result<ToolResult> run_tool(std::span<const char* const> arguments, std::span<const char> input);

}  // namespace shunt
