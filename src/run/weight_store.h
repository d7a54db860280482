// Finds or makes the copy of each weight in a memory pool: at most one per pool and layout, shared by all holders.
//
// A device that can address the source's memory gets it without a copy. Others get a copy, and its source pages are
// released as they are consumed. A copy ends with its last holder. The sessions and computations of one source on one
// runtime share a store (Runtime::weights_of). The source must outlive the store. One thread at a time.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/system/thread_pool.h"
#include "devices/device.h"
#include "shunt/graph.h"
#include "shunt/weights.h"

namespace shunt {

class WeightStore {
 public:
  // `source` may be null for graphs without weights.
  explicit WeightStore(WeightSource* source);

  struct Weight {
    std::shared_ptr<Buffer> buffer;
    std::uint64_t bytes = 0;
    bool was_copied = false;  // by this call
  };
  // Acquires a weight, or rows of one. Errors: invalid if the source has no such tensor or another dtype or shape; io;
  // out_of_memory. REQUIRES: the weight can have the layout.
  [[nodiscard]] Result<Weight> acquire(const TensorInfo& weight, Device& device, Layout layout = Layout::rows);

  // Reads bytes of a weight, or of rows of one, from its source. Errors: invalid as for acquire(); io.
  [[nodiscard]] Status read(const TensorInfo& weight, std::uint64_t offset, std::span<std::byte> to) const;

  // The bytes of all held copies; weights read from the source's own memory do not count.
  [[nodiscard]] std::uint64_t copied_bytes() const;
  // Errors: io once the source has lost bytes that programs read.
  [[nodiscard]] Status health() const { return source_ == nullptr ? Status{} : source_->health(); }

 private:
  struct Key {
    std::string name;
    std::string pool;
    Layout layout;
    auto operator<=>(const Key&) const = default;
  };

  struct Copy {
    std::weak_ptr<Buffer> buffer;
    const Device* device;
    std::uint64_t copied_bytes;  // 0: the source's own memory
  };

  struct Part {
    std::size_t index = 0;  // of the source's tensor
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    DType dtype = DType::F32;
    std::uint32_t columns = 0;
    std::uint64_t row_bytes = 0;
  };

  [[nodiscard]] Result<Part> find(const TensorInfo& weight) const;
  [[nodiscard]] Result<Weight> load(const Part& part, Device& device, Layout layout);
  // Lays out whole strips of rows, with all cores.
  void lay_out(const Part& part, std::span<const std::byte> rows, std::span<std::byte> strips);

  WeightSource* source_;
  std::map<std::string, std::size_t, std::less<>> index_of_;
  std::map<Key, Copy> copies_;
  std::optional<ThreadPool> threads_;  // once weights are laid out
};

}  // namespace shunt
