// Owns at most one copy of each weight per memory pool and layout, and lends it to prepared programs.
//
// A device that can address the source's memory gets it without a copy; others get a copy whose source pages
// are released as they are consumed. The source must outlive the store, and the store every program that
// uses its buffers. One thread at a time.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "devices/device.h"
#include "shunt/graph.h"
#include "shunt/weights.h"

namespace shunt {

class WeightStore {
 public:
  // `source` may be null for graphs without weights.
  explicit WeightStore(WeightSource* source);

  // A weight, or rows of one. Errors: invalid where the source has no such tensor or another dtype or shape;
  // unsupported for another layout than the source's rows; io; out_of_memory.
  [[nodiscard]] Result<Binding> acquire(const TensorInfo& weight, Device& device);

  // Bytes of a weight, or of rows of one, from its source. Errors: invalid as for acquire(); io.
  [[nodiscard]] Status read(const TensorInfo& weight, std::uint64_t offset, std::span<std::byte> to) const;

  // Gives up all copies. REQUIRES: no program uses them.
  void clear();

  // Weights that had to be copied, in bytes; the rest is read where the source has it.
  [[nodiscard]] std::uint64_t copied_bytes() const { return copied_bytes_; }
  // Errors: io once the source lost bytes that programs read.
  [[nodiscard]] Status health() const { return source_ == nullptr ? Status{} : source_->health(); }

 private:
  struct Key {
    std::string name;
    std::string pool;
    Layout layout;
    auto operator<=>(const Key&) const = default;
  };

  struct Part {
    std::size_t index = 0;  // of the source's tensor
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
  };

  [[nodiscard]] Result<Part> find(const TensorInfo& weight) const;
  [[nodiscard]] Result<std::unique_ptr<Buffer>> load(const Part& part, Device& device);

  WeightSource* source_;
  std::map<std::string, std::size_t, std::less<>> index_of_;
  std::map<Key, std::unique_ptr<Buffer>> copies_;
  std::uint64_t copied_bytes_ = 0;
};

}  // namespace shunt
