// Cache of what APIs offered when they were last started: a file in the cache folder.
//
// An entry belongs to an API and to the environment variables that drivers read. It is valid until the next boot, while
// these are unchanged: the files the API was loaded from, and the places where drivers are announced, including places
// named by those variables; if the API did not start in time, for ten minutes at most. A damaged file, or one of
// another version, is ignored. One thread.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/json.h"
#include "devices/discovery/probe.h"

namespace shunt {

class KnownApis {
 public:
  // Reads what is known for the current environment.
  KnownApis();

  // Returns nullopt if nothing is known, or if it is no longer valid.
  [[nodiscard]] std::optional<ApiReport> find(const ApiRow& api) const;
  // Keeps the reports, beside those of other APIs. Errors: io; the next process will have to probe again.
  [[nodiscard]] Status keep(std::span<const ProbedApi> found) const;

 private:
  std::string surroundings_;
  Json entries_;
};

}  // namespace shunt
