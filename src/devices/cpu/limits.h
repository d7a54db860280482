// What the processor cores and their memory reach at best, measured: the bounds that ops are compared with.
//
// Owns threads and a buffer that no cache holds. Each call measures once and takes milliseconds; whoever compares
// measures again and again, in turn with what is compared, and takes medians. One call at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/system/thread_pool.h"
#include "devices/device.h"

namespace shunt::cpu {

// So many bytes do not fit the last-level cache: at least twice its size, as far as the system tells it.
[[nodiscard]] std::uint64_t beyond_cache_bytes();

class Limits {
 public:
  // With `threads` threads, the caller's included; 0: one per core this process may use. Errors: out_of_memory.
  [[nodiscard]] static Result<std::unique_ptr<Limits>> create(std::uint32_t threads);

  [[nodiscard]] std::uint32_t threads() const { return pool_.threads(); }

  // Bytes per second while all threads together read memory, each a stretch of its own, once.
  [[nodiscard]] double read_bytes_per_s();
  // Operations per second while the first `threads` threads multiply and add F32 in registers, on the widest
  // vectors there are; a multiply-add counts as two. REQUIRES: 0 < threads <= threads().
  [[nodiscard]] double flops_per_s(std::uint32_t threads);
  // Microseconds that a parallel region takes in which nothing happens: the median of some hundreds in a row, so that
  // the threads are awake.
  [[nodiscard]] double fork_join_us();

 private:
  Limits(std::uint32_t threads, std::unique_ptr<Buffer> buffer)
      : pool_(threads, {}), buffer_(std::move(buffer)), results_(pool_.threads() * kLineFloats) {}

  // One cache line for each thread's result.
  static constexpr std::size_t kLineFloats = 16;

  ThreadPool pool_;
  std::unique_ptr<Buffer> buffer_;
  std::vector<float> results_;  // kept, so that what made them cannot be left out
};

}  // namespace shunt::cpu
