// Checks of fuzz targets: where one fails, the process ends and the fuzzer keeps the input.
#pragma once

#include <cstdlib>

#include "shunt/status.h"

namespace shunt {

inline void require(bool holds) {
  if (!holds) std::abort();
}

// An answer, or an error that says something.
template <class T>
bool answered(const Result<T>& result) {
  require(result.has_value() || !result.error().message.empty());
  return result.has_value();
}

}  // namespace shunt
