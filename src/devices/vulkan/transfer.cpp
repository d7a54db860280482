#include "devices/vulkan/transfer.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace shunt::vulkan {
namespace {

constexpr std::uint64_t kPieceBytes = std::uint64_t{4} << 20U;
constexpr std::uint64_t kSmallBytes = std::uint64_t{256} << 10U;  // up to this, copied with a program
constexpr std::size_t kMostArrivals = 4;                          // of one read
constexpr std::uint32_t kMostCopiers = 4;                         // threads; a link is faster than a single thread

bool is_nothing(const Moment& moment) { return moment.compute == 0 && moment.transfer == 0; }

}  // namespace

void Transfer::add(Copy copy) {
  waiting_touches_.note(copy.reads);
  waiting_touches_.note(copy.writes);
  waiting_bytes_ += copy.source == nullptr ? 0 : copy.region.size;
  waiting_.push_back(std::move(copy));
}

Result<const std::byte*> Transfer::find_brought(const VulkanBuffer& from, std::uint64_t offset, std::uint64_t bytes) {
  for (const auto& [number, what] : brought_) {
    if (what.buffer != &from || offset < what.offset || offset + bytes > what.offset + what.bytes) continue;
    SHUNT_TRY_ASSIGN(const bool over, context_->compute().has_reached(number));
    if (over) return what.piece->host().data() + what.place + (offset - what.offset);
  }
  return nullptr;
}

void Transfer::clear(const VulkanBuffer& buffer) {
  add({.source = nullptr,
       .target = buffer.handle(),
       .reads = {},
       .writes = {&buffer, 0, (std::max<std::uint64_t>(buffer.bytes(), 4) + 3) / 4 * 4, true}});
}

Status Transfer::write(VulkanBuffer& to, std::uint64_t offset, std::span<const std::byte> from, const Settle& settle) {
  if (from.empty()) return {};
  if (to.host().empty()) return stage(to, offset, from, settle);
  Hazards touches;
  touches.note(Access::write({&to, offset, from.size()}));
  SHUNT_TRY_ASSIGN(const Moment before, computed_before(touches));
  if (!is_nothing(before)) SHUNT_TRY(settle(before));
  std::memcpy(to.host().data() + offset, from.data(), from.size());
  return {};
}

Status Transfer::stage(VulkanBuffer& to, std::uint64_t offset, std::span<const std::byte> from, const Settle& settle) {
  if (staging_ == nullptr) {
    SHUNT_TRY_ASSIGN(staging_, VulkanBuffer::create(context_, kPieces * kPieceBytes, Place::staging));
  }
  while (!from.empty()) {
    if (used_bytes_ == kPieceBytes) SHUNT_TRY(next_piece(settle));
    const std::uint64_t bytes = std::min<std::uint64_t>(from.size(), kPieceBytes - used_bytes_);
    const std::uint64_t place = piece_ * kPieceBytes + used_bytes_;
    copy(staging_->host().subspan(place, bytes), from.first(bytes));
    add({.source = staging_->handle(),
         .target = to.handle(),
         .region = {place, to.first_byte() + offset, bytes},
         .reads = {},
         .writes = Access::write({&to, offset, bytes})});
    used_bytes_ += bytes;
    offset += bytes;
    from = from.subspan(bytes);
  }
  return waiting_bytes_ < kSmallBytes ? Status{} : flush();
}

void Transfer::copy(std::span<std::byte> to, std::span<const std::byte> from) {
  if (from.size() < kSmallBytes) {
    std::memcpy(to.data(), from.data(), from.size());
    return;
  }
  if (copiers_ == nullptr)
    copiers_ = std::make_unique<ThreadPool>(std::clamp(usable_cores() / 4, 1U, kMostCopiers),
                                            std::span<const std::uint32_t>());
  copiers_->run([&](std::uint32_t thread) {
    const std::size_t begin = from.size() * thread / copiers_->threads();
    const std::size_t end = from.size() * (thread + 1) / copiers_->threads();
    std::memcpy(to.data() + begin, from.data() + begin, end - begin);
  });
}

Status Transfer::next_piece(const Settle& settle) {
  SHUNT_TRY(flush());
  piece_ = (piece_ + 1) % kPieces;
  used_bytes_ = 0;
  return settle(busy_[piece_]);
}

Result<std::vector<Arrival>> Transfer::read(VulkanBuffer& from, std::uint64_t offset, std::span<std::byte> to,
                                            const Settle& settle) {
  std::vector<Arrival> arrivals;
  if (to.empty()) return arrivals;
  Hazards touches;
  touches.note(Access::read({&from, offset, to.size()}));
  SHUNT_TRY_ASSIGN(const Moment before, computed_before(touches));
  if (!from.host().empty()) {
    if (!is_nothing(before)) SHUNT_TRY(settle(before));
    std::memcpy(to.data(), from.host().data() + offset, to.size());
    return arrivals;
  }
  if (!waiting_touches_.has(touches)) {
    SHUNT_TRY_ASSIGN(const std::byte* const brought, find_brought(from, offset, to.size()));
    if (brought != nullptr) {
      std::memcpy(to.data(), brought, to.size());
      return arrivals;
    }
  }
  Queue& queue = queue_for_read(to.size(), before);
  for (std::uint64_t at = 0; at < to.size(); at += kPieceBytes) {
    if (arrivals.size() == kMostArrivals) {
      SHUNT_TRY(settle(arrivals.front().at));
      finish(std::move(arrivals.front()));
      arrivals.erase(arrivals.begin());
    }
    const std::uint64_t bytes = std::min(kPieceBytes, to.size() - at);
    SHUNT_TRY_ASSIGN(std::unique_ptr<VulkanBuffer> piece, take_read_piece());
    add({.source = from.handle(),
         .target = piece->handle(),
         .region = {from.first_byte() + offset + at, 0, bytes},
         .reads = Access::read({&from, offset + at, bytes}),
         .writes = {}});
    SHUNT_TRY(begin_on(queue));
    // Waits only for this queue's work.
    const bool computes = &queue == &context_->compute();
    arrivals.push_back({std::move(piece), to.subspan(at, bytes),
                        computes ? Moment{.compute = queue.submitted()} : Moment{.transfer = queue.submitted()}});
  }
  return arrivals;
}

void Transfer::finish(Arrival arrival) {
  copy(arrival.to, arrival.piece->host().first(arrival.to.size()));
  for_reads_.push_back(std::move(arrival.piece));
}

Result<std::unique_ptr<VulkanBuffer>> Transfer::take_read_piece() {
  if (for_reads_.empty()) return VulkanBuffer::create(context_, kPieceBytes, Place::read_back);
  std::unique_ptr<VulkanBuffer> piece = std::move(for_reads_.back());
  for_reads_.pop_back();
  return piece;
}

Status Transfer::forget_what_is_over() {
  while (!computing_.empty()) {
    SHUNT_TRY_ASSIGN(const bool over, context_->compute().has_reached(computing_.front().number));
    if (!over) break;
    computing_.pop_front();
  }
  return {};
}

Result<Moment> Transfer::computed_before(const Hazards& touches) {
  SHUNT_TRY(forget_what_is_over());
  Moment last;
  for (const Computing& each : computing_)
    if (each.touches->has(touches)) last.compute = each.number;
  return last;
}

// A read that does not depend on running work overtakes it on the other queue, whose cost is small for large reads.
Queue& Transfer::queue_for_read(std::uint64_t bytes, const Moment& after) {
  const bool is_next = computing_.empty() || after.compute == computing_.back().number;
  return bytes <= kSmallBytes && is_next ? context_->compute() : context_->transfer();
}

void Transfer::record(VkCommandBuffer commands) const {
  const DeviceFunctions& call = context_->call();
  bool to_host = false;
  Hazards since_barrier;
  full_barrier(call, commands);
  for (const Copy& copy : waiting_) {
    if (copy.target.use_count() == 1) continue;  // the buffer is gone
    if (since_barrier.has(copy.reads) || since_barrier.has(copy.writes)) {
      full_barrier(call, commands);
      since_barrier.clear();
    }
    since_barrier.note(copy.reads);
    since_barrier.note(copy.writes);
    to_host |= copy.writes.buffer == nullptr;
    if (copy.source == nullptr)
      call.CmdFillBuffer(commands, copy.target->get(), 0, VK_WHOLE_SIZE, 0);
    else
      call.CmdCopyBuffer(commands, copy.source->get(), copy.target->get(), 1, &copy.region);
  }
  if (to_host) host_barrier(call, commands);
}

Status Transfer::begin_on(Queue& queue) {
  if (waiting_.empty()) return {};
  auto touches = std::make_shared<const Hazards>(waiting_touches_);
  SHUNT_TRY_ASSIGN(const Point point, begin(queue, VK_NULL_HANDLE));
  has_begun(point, touches);
  return {};
}

Result<Moment> Transfer::submit(VkCommandBuffer program, const std::shared_ptr<const Hazards>& touches,
                                std::span<const Brought> results) {
  SHUNT_TRY(forget_what_is_over());
  auto copies = waiting_.empty() ? nullptr : std::make_shared<const Hazards>(waiting_touches_);
  SHUNT_TRY_ASSIGN(const Point point, begin(context_->compute(), program));
  if (copies != nullptr) has_begun(point, copies);
  has_begun(point, touches);
  for (const Brought& each : results) brought_.push_back({point.number, each});
  return Moment{.compute = point.number};
}

// Begins the copies, then a program if there is one.
Result<Point> Transfer::begin(Queue& queue, VkCommandBuffer program) {
  Point after;
  if (context_->has_transfer_queue() && &queue == &context_->compute()) {
    after = {&context_->transfer(), context_->transfer().submitted()};
    SHUNT_TRY_ASSIGN(const bool over, after.queue->has_reached(after.number));
    if (over) after = {};
  } else if (context_->has_transfer_queue()) {
    SHUNT_TRY_ASSIGN(const Moment computed, computed_before(waiting_touches_));
    after = {&context_->compute(), computed.compute};
  }
  VkCommandBuffer copies = VK_NULL_HANDLE;
  if (!waiting_.empty()) {
    SHUNT_TRY_ASSIGN(copies, queue.begin());
    record(copies);
    const VkResult ended = context_->call().EndCommandBuffer(copies);
    if (ended != VK_SUCCESS) {
      queue.discard(copies);
      return error_of(ended, "vkEndCommandBuffer");
    }
  }
  return queue.submit(copies, program, after);
}

void Transfer::has_begun(const Point& point, const std::shared_ptr<const Hazards>& touches) {
  if (point.queue == &context_->compute()) computing_.push_back({point.number, touches});
  std::erase_if(brought_, [&](const BroughtBy& each) {
    const Brought& what = each.what;
    return touches->has(Access{what.buffer, what.offset, what.offset + what.bytes, false});
  });
  busy_[piece_] = context_->submitted();
  waiting_.clear();
  waiting_touches_.clear();
  waiting_bytes_ = 0;
}

}  // namespace shunt::vulkan
