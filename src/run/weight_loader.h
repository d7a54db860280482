// Copies weights from their source to devices: threads read some pieces into the device's memory for uploads while
// earlier ones travel (devices/upload.h), whichever weights they belong to.
//
// Between the first call and finish() it holds that memory and the threads. One thread at a time.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/stopwatch.h"
#include "base/system/task_queue.h"
#include "devices/upload.h"
#include "shunt/weights.h"
#include "trace/span.h"

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
  // `source` must outlive it; null: there is nothing to copy. So must `recorder`, which may be null.
  explicit WeightLoader(WeightSource* source, trace::Recorder* recorder = nullptr);
  ~WeightLoader();
  WeightLoader(const WeightLoader&) = delete;
  WeightLoader& operator=(const WeightLoader&) = delete;

  // Prepares a device for copies of so many bytes in all, before their memory is allocated.
  void expect(Device& device, std::uint64_t bytes);
  // Begins to copy a weight to a buffer of the device. Its name is for messages. Errors: of the source or a device,
  // also of a weight before it, which they name; nothing is on its way then.
  [[nodiscard]] Status copy(const std::string& name, const WeightPart& part, Device& device, const Binding& to);
  // Waits until all bytes have arrived. Errors: the same.
  [[nodiscard]] Status finish();
  // Ends what was begun and not finished, whose buffers may then be freed. Does nothing after finish().
  void abandon() noexcept;

  // Bytes copied so far, and the time that took, each from the first call to finish().
  struct Loaded {
    std::uint64_t bytes = 0;
    double seconds = 0;
  };
  [[nodiscard]] const Loaded& loaded() const { return loaded_; }

 private:
  // A weight on its way to a device.
  struct Copy {
    std::string name;
    WeightPart part;
    Device* device;
    Upload* upload;
  };
  // A piece that threads read into the memory that the upload has lent.
  struct Reading;

  [[nodiscard]] Status read(const Copy& copy, const Binding& to);
  [[nodiscard]] Result<Upload*> upload_to(Device& device);
  // Lends the next piece of `bytes`. Sends pieces that are read, and others until the upload has room for one.
  [[nodiscard]] Result<std::span<std::byte>> take(const Copy& copy, std::uint64_t bytes, std::uint64_t unit);
  // Waits until the first piece is read, and sends it.
  [[nodiscard]] Status send_first();
  [[nodiscard]] Status send_all();
  // Waits for what was sent, and frees what was held meanwhile.
  [[nodiscard]] Status end();

  [[nodiscard]] trace::Span stage(std::string_view what, const Device& device, std::uint64_t bytes = 0) const {
    return {recorder_, trace::Kind::load, what, device.info().id, bytes};
  }

  WeightSource* source_;
  trace::Recorder* recorder_;
  std::map<Device*, std::unique_ptr<Upload>> uploads_;
  std::list<Reading> reading_;
  std::optional<TaskQueue> readers_;  // ends before what they read into
  std::optional<Stopwatch> since_;    // the first call
  Loaded loaded_;
};

}  // namespace shunt
