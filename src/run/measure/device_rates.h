// Measures how long a device takes to start work and how fast it moves bytes, through the device contract. It times
// programs that do next to nothing, and copies of F32 of many sizes.
//
// Each object owns its memory on the device, which must outlive it. measure() is one repetition, so that callers can
// alternate with other measurements and take medians. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "devices/device.h"

namespace shunt {

// A program of copies back and forth between the halves of a buffer, each of which reads what the one before wrote.
class CopyChain {
 public:
  // Each copy moves `bytes`: half of them read, half written. Errors: unsupported with the device's reason; those of
  // allocate and prepare. REQUIRES: bytes is a multiple of 8, copies > 0.
  [[nodiscard]] static Result<std::unique_ptr<CopyChain>> create(Device& device, std::uint64_t bytes,
                                                                 std::uint32_t copies);
  // Nanoseconds from submit() until the program is done, by the device's clock.
  [[nodiscard]] Result<double> run_ns();
  [[nodiscard]] std::uint32_t copies() const { return copies_; }

 private:
  CopyChain(Device& device, std::uint32_t copies) : device_(device), copies_(copies) {}

  Device& device_;
  std::uint32_t copies_;
  std::unique_ptr<Buffer> buffer_;
  std::unique_ptr<Program> program_;
};

struct LaunchCost {
  double program_us = 0;  // from submit() until a program of one tiny op is done
  double op_us = 0;       // each further tiny op that waits for the previous one
};

class LaunchBench {
 public:
  // The first runs are over when it returns. Errors: those of CopyChain::create and of a run.
  [[nodiscard]] static Result<std::unique_ptr<LaunchBench>> create(Device& device);
  [[nodiscard]] Result<LaunchCost> measure();
  // Measures LaunchCost::program_us after a pause. Errors: those of a run.
  [[nodiscard]] Result<double> measure_after_pause();

 private:
  LaunchBench() = default;

  std::unique_ptr<CopyChain> one_;
  std::unique_ptr<CopyChain> some_;
  std::unique_ptr<CopyChain> twice_;  // twice as many copies as some_
};

// Measures one point of the curve.
class CopyBench {
 public:
  // Puts as many copies into a program as make it take 2 ms, but at least one. The first runs are over when it returns.
  // `launch`, the cost of a program without its copies, is not counted.
  [[nodiscard]] static Result<std::unique_ptr<CopyBench>> create(Device& device, std::uint64_t bytes,
                                                                 const LaunchCost& launch);
  // Microseconds per copy.
  [[nodiscard]] Result<double> measure_us();

 private:
  explicit CopyBench(const LaunchCost& launch);

  double start_ns_;
  std::unique_ptr<CopyChain> chain_;
};

// Returns the sizes of the curve, in bytes that a copy moves. They are powers of 4 from 4 KiB to 1 GiB, up to a quarter
// of the free memory and the largest binding.
[[nodiscard]] std::vector<std::uint64_t> curve_sizes(const Device& device);

}  // namespace shunt
