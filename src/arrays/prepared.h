// Computes one call on one device: by a program prepared for a bucket, between copies of inputs and results. If the
// device is the CPU and the arrays are large, it works in the caller's own memory.
//
// A Prepared uses memory of a DeviceMemory that must outlive it. One thread at a time.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>

#include "arrays/work.h"
#include "plan/costs/cost.h"
#include "run/executable.h"

namespace shunt::arrays {

// The memory that the programs of one device share.
struct DeviceMemory {
  WeightStore weights{nullptr};
  StateStore state;
  ArenaStore arenas;
};

class Prepared {
 public:
  // Errors: unsupported, out_of_memory and those of the device.
  [[nodiscard]] static Result<std::unique_ptr<Prepared>> create(const Bucket& bucket, Device& device,
                                                                DeviceMemory& memory, trace::Recorder* recorder);

  // Computes the results for read(). REQUIRES: a work of the bucket.
  [[nodiscard]] Status run(const Task& work, std::optional<std::chrono::nanoseconds> timeout);
  // REQUIRES: run() succeeded, and `results` has work.results() elements.
  [[nodiscard]] Status read(const Task& work, std::span<float> results) const;

 private:
  explicit Prepared(std::unique_ptr<Executable> executable) : executable_(std::move(executable)) {}
  [[nodiscard]] Status write(std::string_view input, std::span<const float> values);

  std::unique_ptr<Executable> executable_;
  std::vector<float> staging_;  // the rest of a sum's input, padded with zeros; the transpose of a matmul's b
};

// Predicts the time of a call, including copies from and to the host's memory. Errors: unsupported, with what is
// lacking.
[[nodiscard]] Result<double> predict_us(const Task& work, Device& device, const DeviceCost& cost);

// Returns whether `results` may be computed in place, with inputs read where they are.
[[nodiscard]] bool can_run_in_place(const Device& device, const Task& work);
// REQUIRES: can_run_in_place(), and work.results() elements. Errors: unsupported if the device cannot import memory.
[[nodiscard]] Status run_in_place(Device& device, const Task& work, std::span<float> results);

}  // namespace shunt::arrays
