// Finds or makes the copy of each weight in a memory pool: at most one per pool and layout, shared by all holders.
//
// A device that can address the source's memory gets it without a copy; threads then bring its pages in ahead of use,
// unless only some rows are read. Others get a copy, and its source pages are released as they are consumed. Copies may
// be on their way until finish(). A copy ends with its last holder. The sessions and computations of one source on one
// runtime share a store (Runtime::weights_of). The source must outlive the store. One thread at a time.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "devices/device.h"
#include "run/read_ahead.h"
#include "run/weight_loader.h"
#include "shunt/graph.h"
#include "shunt/weights.h"

namespace shunt {

class WeightStore {
 public:
  // `source` may be null for graphs without weights, and `recorder` too; it must outlive the store.
  explicit WeightStore(WeightSource* source, trace::Recorder* recorder = nullptr);

  struct Weight {
    std::shared_ptr<Buffer> buffer;
    std::uint64_t bytes = 0;
    bool was_copied = false;  // by this call
  };
  // Tells that a weight will be acquired, so that the device can prepare for all that it will copy.
  void expect(const TensorInfo& weight, const Device& device, Layout layout);
  // Tells what programs read of a weight: all of it, or only some rows, such as an embedding's, which are not brought
  // in ahead.
  enum class Reads : std::uint8_t { all, some_rows };
  // Acquires a weight, or rows of one. Call finish() before programs use it. Errors: invalid if the source has no such
  // tensor or another dtype or shape; io; out_of_memory. REQUIRES: the weight can have the layout.
  [[nodiscard]] Result<Weight> acquire(const TensorInfo& weight, Device& device, Layout layout = Layout::rows,
                                       Reads reads = Reads::all);

  // Waits until all copies have arrived, and begins to bring in what is used in place. After an error, weights acquired
  // since the last call must not be used.
  [[nodiscard]] Status finish();
  void abandon() noexcept;

  // Reads bytes of a weight, or of rows of one, from its source. Errors: invalid as for acquire(); io.
  [[nodiscard]] Status read(const TensorInfo& weight, std::uint64_t offset, std::span<std::byte> to) const;

  // The bytes of all held copies in a pool, in all pools if it is empty; weights read from the source's own memory do
  // not count.
  [[nodiscard]] std::uint64_t copied_bytes(std::string_view pool = {}) const;
  // Bytes copied to devices so far and the time that took, of weights freed since as well.
  [[nodiscard]] const WeightLoader::Loaded& loaded() const { return loader_.loaded(); }
  // The bytes used in place that are on their way into memory. Safe from many threads.
  [[nodiscard]] std::uint64_t bytes_to_read() const { return read_ahead_ ? read_ahead_->left() : 0; }
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
    Reads reads;
  };

  [[nodiscard]] Result<WeightPart> find(const TensorInfo& weight) const;
  // Has a weight brought in that the device uses in place.
  void read_in_place(const WeightPart& part, Device& device);
  // Returns the copy that is held; null: there is none that works.
  [[nodiscard]] std::shared_ptr<Buffer> held(const Key& key) const;
  [[nodiscard]] Result<Weight> load(const std::string& name, const WeightPart& part, Device& device, Layout layout,
                                    Reads reads);

  WeightSource* source_;
  trace::Recorder* recorder_;
  std::map<std::string, std::size_t, std::less<>> index_of_;
  std::map<Key, Copy> copies_;
  std::map<const Device*, std::uint64_t> expected_;  // bytes of which it does not know yet
  WeightLoader loader_;
  std::optional<ReadAhead> read_ahead_;     // of what is used in place; none without a source
  const Device* reads_in_place_ = nullptr;  // of those acquired since the last finish()
};

}  // namespace shunt
