// Turns "the file shrank under its mapping" from a signal into a flag.
//
// Reading a mapped page that the file no longer has raises SIGBUS. While a range is guarded, the handler replaces such
// a page by zeros, marks the range broken and resumes the read. Every other SIGBUS goes to the previous handler.
// Signals belong to the whole process, and so does this registry: lock-free slots that the handler can read at any
// time. The handler is installed once, with the first range. All calls are safe from many threads.
#pragma once

#include <cstddef>
#include <span>

#include "shunt/status.h"

namespace shunt {

class SigbusGuard {
 public:
  // Guards whole pages: `mapping` begins on a page. Errors: out_of_memory if all slots are taken.
  [[nodiscard]] static Result<SigbusGuard> watch(std::span<const std::byte> mapping);
  SigbusGuard(SigbusGuard&& other) noexcept;
  SigbusGuard& operator=(SigbusGuard&&) = delete;
  // REQUIRES: nobody reads the mapping any more.
  ~SigbusGuard();

  // Returns whether a page of the range was missing.
  [[nodiscard]] bool broken() const;

 private:
  explicit SigbusGuard(std::size_t slot) : slot_(slot) {}
  std::size_t slot_;
};

}  // namespace shunt
