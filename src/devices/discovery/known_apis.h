// What was found out about APIs earlier, as long as it holds: a file in the folder of caches.
//
// An entry belongs to an API and to the environment variables that drivers read. It holds while the files that the API
// was loaded from, and the places where drivers are announced, those that the variables name too, are as they were,
// until the system is started again. A file that is damaged or of another version is as none. One thread.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/json.h"
#include "devices/discovery/probe.h"

namespace shunt {

class KnownApis {
 public:
  // Reads what is known in the environment as it is now.
  KnownApis();

  // Nothing where nothing is known, or what is known no longer holds.
  [[nodiscard]] std::optional<ApiReport> find(const ApiRow& api) const;
  // Keeps them beside what is known of others. Errors: io; the next process will have to look again.
  [[nodiscard]] Status keep(std::span<const ProbedApi> found) const;

 private:
  std::string surroundings_;
  Json entries_;
};

}  // namespace shunt
