// What happens where the standard library finds no memory.
//
// The core throws nothing itself. An allocation that fails passes through it as std::bad_alloc up to its border
// (bindings/c/, cli/), which answers out_of_memory. Where something has to be put in order on the way, such as an event
// that others wait for, guarded() stops it.
#pragma once

#include <type_traits>

#include "shunt/status.h"

namespace shunt {

// So short that it takes no memory itself.
[[nodiscard]] inline Error out_of_memory() { return {.code = Code::out_of_memory, .message = "out of memory"}; }

// The result of `work`, or of `otherwise` where that throws. A build without exceptions ends there instead.
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
