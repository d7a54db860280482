// Moves bytes between the caller's memory and the device's, in order with programs: through the mapping if there is
// one, else through pieces of staging memory, several of which are in flight at a time.
//
// Small writes wait for the next program and are submitted with it; large ones start at once, on the copy queue. Memory
// that programs in flight do not touch is copied while they run. Owned by one device; one thread at a time.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "base/system/thread_pool.h"
#include "devices/hazards.h"
#include "devices/vulkan/buffer.h"

namespace shunt::vulkan {

// Waits until the queues have reached the moment, or returns why they will not.
using Settle = std::function<Status(const Moment& moment)>;

// Bytes on their way to the host.
struct Arrival {
  std::unique_ptr<VulkanBuffer> piece;
  std::span<std::byte> to;
  Moment at;
};

// A copy, in host-visible memory, of what a program leaves in a buffer.
struct Brought {
  const VulkanBuffer* buffer = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::shared_ptr<VulkanBuffer> piece;
  std::uint64_t place = 0;  // offset in the piece
};

class Transfer {
 public:
  explicit Transfer(std::shared_ptr<Context> context) : context_(std::move(context)) {}

  // Zeroes a buffer before anything else is done with it.
  void clear(const VulkanBuffer& buffer);
  // The span may be reused after this returns.
  [[nodiscard]] Status write(VulkanBuffer& to, std::uint64_t offset, std::span<const std::byte> from,
                             const Settle& settle);
  // Returns the parts still to arrive, in order; the rest has arrived on return.
  [[nodiscard]] Result<std::vector<Arrival>> read(VulkanBuffer& from, std::uint64_t offset, std::span<std::byte> to,
                                                  const Settle& settle);
  // Copies the bytes out and keeps the piece for later reads. REQUIRES: they have arrived.
  void finish(Arrival arrival);

  // Starts a program after all earlier requests. `touches` is what it reads and writes, `results` what it copies back
  // with it.
  [[nodiscard]] Result<Moment> submit(VkCommandBuffer program, const std::shared_ptr<const Hazards>& touches,
                                      std::span<const Brought> results);
  // Begins all copies that wait for a program.
  [[nodiscard]] Status flush() { return begin_on(context_->transfer()); }

 private:
  struct Copy {
    std::shared_ptr<const BufferHandle> source;  // null: zeros
    std::shared_ptr<const BufferHandle> target;
    VkBufferCopy region{};
    Access reads;  // of the caller's buffers
    Access writes;
  };
  // Work of the compute queue that may still be running.
  struct Computing {
    std::uint64_t number;
    std::shared_ptr<const Hazards> touches;
  };
  // Valid as long as nothing else changes the buffer.
  struct BroughtBy {
    std::uint64_t number;  // of the program, on the compute queue
    Brought what;
  };
  static constexpr std::size_t kPieces = 8;

  void add(Copy copy);
  // Returns null if no finished program copied it back.
  [[nodiscard]] Result<const std::byte*> find_brought(const VulkanBuffer& from, std::uint64_t offset,
                                                      std::uint64_t bytes);
  [[nodiscard]] Status stage(VulkanBuffer& to, std::uint64_t offset, std::span<const std::byte> from,
                             const Settle& settle);
  // Copies, with several threads if it is large.
  void copy(std::span<std::byte> to, std::span<const std::byte> from);
  [[nodiscard]] Status next_piece(const Settle& settle);
  [[nodiscard]] Result<std::unique_ptr<VulkanBuffer>> take_read_piece();
  [[nodiscard]] Status forget_what_is_over();
  // Returns the last work of the compute queue that must end before this.
  [[nodiscard]] Result<Moment> computed_before(const Hazards& touches);
  [[nodiscard]] Queue& queue_for_read(std::uint64_t bytes, const Moment& after);
  void record(VkCommandBuffer commands) const;
  [[nodiscard]] Status begin_on(Queue& queue);
  [[nodiscard]] Result<Point> begin(Queue& queue, VkCommandBuffer program);
  void has_begun(const Point& point, const std::shared_ptr<const Hazards>& touches);

  std::shared_ptr<Context> context_;
  std::vector<Copy> waiting_;
  Hazards waiting_touches_;
  std::uint64_t waiting_bytes_ = 0;
  std::deque<Computing> computing_;
  std::vector<BroughtBy> brought_;
  std::unique_ptr<VulkanBuffer> staging_;
  std::array<Moment, kPieces> busy_;  // when the reads of each piece end
  std::size_t piece_ = 0;
  std::uint64_t used_bytes_ = 0;  // of the current piece
  std::vector<std::unique_ptr<VulkanBuffer>> for_reads_;
  std::unique_ptr<ThreadPool> copiers_;  // null until the first large copy
};

}  // namespace shunt::vulkan
