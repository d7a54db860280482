// Copies weights from their source to devices: threads read one piece into the device's memory for uploads while
// earlier ones travel (devices/upload.h), whichever weights they belong to.
//
// Between the first copy() and finish() it holds that memory and the threads. One thread at a time.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>

#include "base/stopwatch.h"
#include "base/system/thread_pool.h"
#include "devices/upload.h"
#include "shunt/weights.h"

namespace shunt {

// A tensor of a source, or rows of one.
struct WeightPart {
  std::size_t index = 0;  // of the source's tensor
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  MatrixRows rows;
  std::uint64_t row_bytes = 0;
};

class WeightLoader {
 public:
  // `source` must outlive it; null: there is nothing to copy.
  explicit WeightLoader(WeightSource* source) : source_(source) {}

  // Reads the weight and sends it to a buffer of the device. Its source may then release it, but the bytes may still be
  // on their way; after an error, none are. Errors: of the source, of the device.
  [[nodiscard]] Status copy(const WeightPart& part, Device& device, const Binding& to);
  // Waits until all bytes have arrived. Its error names the device.
  [[nodiscard]] Status finish();

  // What was copied so far, and the time from each first copy() until its finish().
  struct Loaded {
    std::uint64_t bytes = 0;
    double seconds = 0;
  };
  [[nodiscard]] const Loaded& loaded() const { return loaded_; }

 private:
  [[nodiscard]] Status send(const WeightPart& part, Device& device, const Binding& to);
  [[nodiscard]] Result<Upload*> upload_to(Device& device);
  // Reads with as many threads as that is worth.
  [[nodiscard]] Status read(std::size_t index, std::uint64_t offset, std::span<std::byte> to);

  WeightSource* source_;
  std::map<Device*, std::unique_ptr<Upload>> uploads_;
  std::optional<ThreadPool> threads_;
  std::optional<Stopwatch> since_;  // the first copy()
  Loaded loaded_;
};

}  // namespace shunt
