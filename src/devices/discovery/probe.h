// Starts an API safely: in a process of its own, which is killed when it takes too long.
//
// The process is a fork of this one, so nothing has to be installed for it. It has only the caller's thread. Plain
// functions; any thread.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "devices/discovery/registry.h"

namespace shunt {

struct ProbedApi {
  ApiReport report;
  std::vector<std::string> files;  // mapped after it started: its libraries and drivers
};

// Starts all of them at once. The report's stage and reason tell which crashed, hung or could not be tried.
[[nodiscard]] std::vector<ProbedApi> probe(std::span<const ApiRow* const> apis, std::chrono::milliseconds patience);

// Returns the APIs to start in another process: their library may crash or hang, and this process has not loaded it
// yet. Once it has, another process gains nothing, and the drivers might not work there.
[[nodiscard]] std::vector<const ApiRow*> to_probe(std::span<const ApiRow* const> apis);

// Starts the API in this process and describes what it offers; closes its devices again.
[[nodiscard]] ApiReport start_here(const ApiRow& api, const OpenOptions& options);

}  // namespace shunt
