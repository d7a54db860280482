// What was found out about APIs earlier, as long as it holds: a file in the folder of caches.
//
// An entry belongs to an API and to the environment variables that drivers read. It holds while the files that the API
// was loaded from, and the places where drivers are announced, are as they were, until the system is started again.
// A file that is damaged or of another version is as none. Plain functions; any thread.
#pragma once

#include <optional>
#include <span>

#include "devices/probe.h"

namespace shunt {

// Nothing for an API of which nothing is known, or no longer holds; one per name.
[[nodiscard]] std::vector<std::optional<ApiReport>> known_reports(std::span<const ApiRow* const> apis);

// Keeps them beside what is known of others. Errors: io; the next process will have to look again.
[[nodiscard]] Status keep_reports(std::span<const ProbedApi> found);

}  // namespace shunt
