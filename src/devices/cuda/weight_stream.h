// Copies weights from the host's memory to where a step reads them, while the device and the host compute.
//
// The upload streams carry them. Memory that is pinned travels by itself at the speed of the bus, other memory as fast
// as the driver copies it. Rows that become strips arrive in memory of their own, a piece at a time, and a kernel moves
// each to its place while the next piece arrives. A thread of its own starts all that, because the host's, which
// computes meanwhile, has no time for it. Owned by one device; one thread at a time.
#pragma once

#include <array>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/system/task_queue.h"
#include "devices/cuda/pinned_ranges.h"
#include "devices/cuda/strip_writer.h"
#include "devices/cuda/transfer.h"

namespace shunt::cuda {

class WeightStream {
 public:
  // Long pieces, so that the host, which computes meanwhile, has little to start.
  static constexpr std::uint64_t kPieceBytes = std::uint64_t{8} << 20U;
  // The memory of its own.
  static constexpr std::uint64_t kArrivalBytes = Context::kUploadStreams * kPieceBytes;

  // These must outlive it.
  WeightStream(std::shared_ptr<Context> context, StripWriter& strips, Transfer& transfer, const PinnedRanges& ranges)
      : context_(std::move(context)), strips_(strips), transfer_(transfer), ranges_(ranges) {}
  ~WeightStream();
  WeightStream(const WeightStream&) = delete;
  WeightStream& operator=(const WeightStream&) = delete;

  // A weight on its way.
  class Copy;
  // An event of each upload stream.
  using Marks = std::array<std::unique_ptr<Mark>, Context::kUploadStreams>;
  // Begins a copy. REQUIRES: `from` stays as it is until it has arrived.
  [[nodiscard]] Result<std::shared_ptr<Copy>> copy(Address to, std::span<const std::byte> from, Layout layout,
                                                   const MatrixRows& rows, const Settle& settle);
  // Returns when all copies were given to the device: the thread reads no more memory then that is not pinned.
  void give_all();
  // Returns kSuccess once it has arrived, kNotReady before, or an error of the device.
  [[nodiscard]] static int query(const Copy& copy);

 private:
  // Rows that become strips.
  struct Key {
    Address to;
    std::uint64_t bytes;
    DType dtype;
    std::uint32_t columns;
    auto operator<=>(const Key&) const = default;
  };

  // Adds copies from host memory on a stream. Each ends where a pinned range or the whole pages of the weight do.
  void upload(Copy& copy, std::size_t stream, Address to, std::span<const std::byte> from,
              std::span<const std::byte> whole_pages) const;
  [[nodiscard]] Status upload_strips(Copy& copy, Address to, std::span<const std::byte> from, const MatrixRows& rows,
                                     const Settle& settle);
  // Returns where a piece of rows arrives.
  [[nodiscard]] Address arrival(std::size_t piece) const {
    return arrived_->address() + piece % Context::kUploadStreams * (arrived_->bytes() / Context::kUploadStreams);
  }
  [[nodiscard]] Result<Marks> take_marks();
  // Returns the calls, in memory of the device, that lay out the pieces.
  [[nodiscard]] Result<std::shared_ptr<CudaBuffer>> calls_of(const Key& key, std::uint64_t unit, const Settle& settle);

  std::shared_ptr<Context> context_;
  StripWriter& strips_;
  Transfer& transfer_;
  const PinnedRanges& ranges_;
  std::shared_ptr<CudaBuffer> arrived_;  // a piece of rows of each stream
  std::map<Key, std::shared_ptr<CudaBuffer>> calls_;
  // Reused from copies that have ended: creating events takes long while the thread uses the driver.
  std::shared_ptr<std::vector<Marks>> spare_marks_ = std::make_shared<std::vector<Marks>>();
  std::list<std::shared_ptr<Copy>> copies_;  // that the thread may not have given to the device
  std::optional<TaskQueue> thread_;          // ends before them
};

}  // namespace shunt::cuda
