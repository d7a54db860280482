// Handles running out of memory.
//
// The core throws nothing itself. A failed allocation passes through it as std::bad_alloc up to its border
// (bindings/c/, cli/), which returns out_of_memory. If something must be put in order on the way, such as an event that
// others wait for, guarded() catches it.
#pragma once

#include <type_traits>

#include "shunt/status.h"

namespace shunt {

// Short enough to need no allocation.
[[nodiscard]] inline Error out_of_memory() { return {.code = Code::out_of_memory, .message = "out of memory"}; }

// Returns the result of `work`, or of `otherwise` if it throws. Without exceptions, a build ends there instead.
template <class Work, class Otherwise>
std::invoke_result_t<const Work&> guarded(const Work& work, const Otherwise& otherwise) {
#if defined(__cpp_exceptions)
  try {
    return work();
  } catch (...) {
    return otherwise();
  }
#else
  static_cast<void>(otherwise);
  return work();
#endif
}

}  // namespace shunt
