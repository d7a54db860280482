// Starting an API where it can do no harm: in a process of its own, which is ended when it takes too long.
//
// The process is a copy of this one (fork), so that nothing has to be installed for it; of this one's threads it has
// only the caller's. Plain functions; any thread.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "devices/discovery/registry.h"

namespace shunt {

struct ProbedApi {
  ApiReport report;
  std::vector<std::string> files;  // that were mapped when it had started: its libraries and drivers
};

// Starts all of them at once. What crashed, hung or could not be tried is in the report's stage and reason.
[[nodiscard]] std::vector<ProbedApi> probe(std::span<const ApiRow* const> apis, std::chrono::milliseconds patience);

// Those of them that are to be started in another process: their library may do harm, and this process has not loaded
// it yet. Once it has, nothing is gained by another process, whose drivers might not work.
[[nodiscard]] std::vector<const ApiRow*> to_probe(std::span<const ApiRow* const> apis);

// Starts it here and describes what it offers; its devices end again.
[[nodiscard]] ApiReport start_here(const ApiRow& api, const OpenOptions& options);

}  // namespace shunt
