// Measured upper bounds of the processor cores and their memory, which ops are compared with.
//
// Owns threads and a buffer too large for any cache. Each call measures once and takes milliseconds. To compare, repeat
// it, alternating with what is compared, and take medians. One call at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/system/thread_pool.h"
#include "devices/cpu/engine.h"
#include "devices/device.h"

namespace shunt::cpu {

// More bytes than fit the last-level cache: at least twice its size, if the system reports it.
[[nodiscard]] std::uint64_t beyond_cache_bytes();

// The size of the largest cache that a core has for itself; 1 MiB if the system does not tell.
[[nodiscard]] std::uint64_t own_cache_bytes();

class Limits {
 public:
  // Measures with `threads` threads, including the caller's; 0: one per core this process may use. Errors:
  // out_of_memory.
  [[nodiscard]] static Result<std::unique_ptr<Limits>> create(std::uint32_t threads);

  [[nodiscard]] std::uint32_t threads() const { return pool_.threads(); }

  // Returns bytes per second while all threads read memory, each a separate range, once.
  [[nodiscard]] double read_bytes_per_s();
  // Returns operations per second while the first `threads` threads multiply and add F32 in registers, on the widest
  // vectors available; a multiply-add counts as two. REQUIRES: 0 < threads <= threads().
  [[nodiscard]] double flops_per_s(std::uint32_t threads);
  // Returns the microseconds that an empty parallel region takes: the median of several hundred in a row, so that the
  // threads are awake.
  [[nodiscard]] double fork_join_us();

 private:
  Limits(std::uint32_t threads, std::unique_ptr<Buffer> buffer)
      : pool_(threads, {}), buffer_(std::move(buffer)), results_(pool_.threads() * kLineFloats) {
    spread_over(MemoryNodes::of_this_machine(), pool_);
  }

  // One cache line per thread's result.
  static constexpr std::size_t kLineFloats = 16;

  ThreadPool pool_;
  std::unique_ptr<Buffer> buffer_;
  std::vector<float> results_;  // kept so that the compiler cannot drop the work
};

}  // namespace shunt::cpu
