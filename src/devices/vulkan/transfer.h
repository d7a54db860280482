// Bytes between the caller's memory and the device's, in order with programs: through the mapping where there is one,
// else through pieces of staging memory, several of which are on their way at a time.
//
// Small writes wait for the next program and go along with it; large ones go at once, on the queue for copies. What
// programs in flight do not touch is copied while they run. Owned by one device; one thread at a time.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "base/system/thread_pool.h"
#include "devices/shaders/hazards.h"
#include "devices/vulkan/buffer.h"

namespace shunt::vulkan {

// Waits until the queues are there, or says why they will not get there.
using Settle = std::function<Status(const Moment& moment)>;

// Bytes on their way to the host.
struct Arrival {
  std::unique_ptr<VulkanBuffer> piece;
  std::span<std::byte> to;
  Moment at;
};

// A copy, in memory that the host addresses, of what a program leaves in a buffer.
struct Brought {
  const VulkanBuffer* buffer = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::shared_ptr<VulkanBuffer> piece;
  std::uint64_t place = 0;  // in the piece
};

class Transfer {
 public:
  explicit Transfer(std::shared_ptr<Context> context) : context_(std::move(context)) {}

  // Zeroes a buffer before all else that is done with it.
  void clear(const VulkanBuffer& buffer);
  // The span is free when it returns.
  [[nodiscard]] Status write(VulkanBuffer& to, std::uint64_t offset, std::span<const std::byte> from,
                             const Settle& settle);
  // What has yet to arrive, in its order; the rest is there when it returns.
  [[nodiscard]] Result<std::vector<Arrival>> read(VulkanBuffer& from, std::uint64_t offset, std::span<std::byte> to,
                                                  const Settle& settle);
  // Hands the bytes over and keeps the piece for later reads. REQUIRES: they have arrived.
  void finish(Arrival arrival);

  // Starts a program after what was asked for before. `touches` is what it reads and writes, `results` what it brings
  // along.
  [[nodiscard]] Result<Moment> submit(VkCommandBuffer program, const std::shared_ptr<const Hazards>& touches,
                                      std::span<const Brought> results);
  // Begins all that waits for a program.
  [[nodiscard]] Status flush() { return begin_on(context_->transfer()); }

 private:
  struct Copy {
    std::shared_ptr<const BufferHandle> source;  // null: zeroes
    std::shared_ptr<const BufferHandle> target;
    VkBufferCopy region{};
    Access reads;  // of the caller's buffers
    Access writes;
  };
  // Work of the compute queue that may still run.
  struct Computing {
    std::uint64_t number;
    std::shared_ptr<const Hazards> touches;
  };
  // What is true as long as nothing else changes the buffer.
  struct BroughtBy {
    std::uint64_t number;  // of the program, on the compute queue
    Brought what;
  };
  static constexpr std::size_t kPieces = 8;

  void add(Copy copy);
  // Null where no program that is over brought it.
  [[nodiscard]] Result<const std::byte*> find_brought(const VulkanBuffer& from, std::uint64_t offset,
                                                      std::uint64_t bytes);
  [[nodiscard]] Status stage(VulkanBuffer& to, std::uint64_t offset, std::span<const std::byte> from,
                             const Settle& settle);
  // What is large with several threads.
  void copy(std::span<std::byte> to, std::span<const std::byte> from);
  [[nodiscard]] Status next_piece(const Settle& settle);
  [[nodiscard]] Result<std::unique_ptr<VulkanBuffer>> take_read_piece();
  [[nodiscard]] Status forget_what_is_over();
  // The last work of the compute queue that must be over before this.
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
  std::array<Moment, kPieces> busy_;  // until when each piece of it is read
  std::size_t piece_ = 0;
  std::uint64_t used_bytes_ = 0;  // of the piece
  std::vector<std::unique_ptr<VulkanBuffer>> for_reads_;
  std::unique_ptr<ThreadPool> copiers_;  // null until something is large
};

}  // namespace shunt::vulkan
