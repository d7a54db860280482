#include "devices/cuda/upload_ring.h"

#include <algorithm>
#include <utility>

#include "base/system/task_queue.h"

namespace shunt::cuda {
namespace {

constexpr std::uint64_t kCallBytes = StripWriter::kCallBytes;

// Enough that the bus is busy while the host fills what is lent and another piece is moved to its place.
constexpr std::uint64_t kRingBytes = 7 * (kCallBytes + kUploadPieceBytes);
constexpr std::uint64_t kMostLent = kRingBytes / 7 * 4;
// So that little is pinned for few bytes.
constexpr std::uint64_t kLittleBytes = std::uint64_t{1} << 20U;

// Returns the bytes of the ring that a piece with so many takes.
constexpr std::uint64_t room_for(std::uint64_t bytes) {
  return (kCallBytes + bytes + kCallBytes - 1) / kCallBytes * kCallBytes;
}

}  // namespace

void UploadRing::expect(std::uint64_t bytes) {
  const trace::Span preparing = stage("preparing", bytes);
  TaskQueue::Batch reserving(1, [this, bytes](std::size_t) {
    const trace::Span span = stage("reserving", bytes);
    parts_.context->reserve(bytes);
  });
  TaskQueue thread(1);
  thread.start(reserving);
  // An error comes again when the first piece is taken.
  if (pinned_ == nullptr && blocks_.empty() && bytes > kLittleBytes)
    if (auto pinned = pin(kRingBytes)) pinned_ = std::move(*pinned);
  thread.wait(reserving);
}

Result<std::span<std::byte>> UploadRing::take(std::uint64_t bytes, std::uint64_t unit) {
  const std::uint64_t content = piece_bytes(bytes, unit);
  const std::uint64_t wanted = room_for(content);
  if (!lent_.empty() && lent_bytes_ + wanted > kMostLent) return std::span<std::byte>();
  SHUNT_TRY_ASSIGN(const std::optional<std::uint64_t> place, make_room(wanted));
  if (!place) return std::span<std::byte>();
  const Block& block = blocks_.back();
  Piece piece{.block = &block, .begin = *place, .pinned = nullptr};
  SHUNT_TRY_ASSIGN(piece.pinned, Pinned::create(parts_.context, block.pinned,
                                                block.pinned->bytes().subspan(*place, kCallBytes + content)));
  end_ = *place + wanted;
  lent_bytes_ += wanted;
  lent_.push_back(std::move(piece));
  return lent_.back().pinned->memory().subspan(kCallBytes);
}

Result<std::optional<std::uint64_t>> UploadRing::make_room(std::uint64_t bytes) {
  std::optional<std::uint64_t> place = free_place(bytes);
  const bool is_too_small = blocks_.empty() || blocks_.back().pinned->bytes().size() < bytes;
  if (!place && (is_too_small || is_little_)) {
    is_little_ = blocks_.empty() && pinned_ == nullptr && bytes <= kLittleBytes;
    Status added = add_block(is_little_ ? kLittleBytes : std::max(bytes, kRingBytes));
    // Without memory for a ring, one of a single piece does, or the little one that there is.
    if (!added && added.error().code == Code::out_of_memory) added = is_too_small ? add_block(bytes) : Status();
    SHUNT_TRY(std::move(added));
    place = free_place(bytes);
  }
  while (!place && !sent_.empty()) {
    const trace::Span waiting = stage("waiting for the device");
    SHUNT_TRY(parts_.settle(*sent_.front().pinned));
    sent_.pop_front();
    place = free_place(bytes);
  }
  return place;
}

Result<std::shared_ptr<PinnedMemory>> UploadRing::pin(std::uint64_t bytes) {
  const trace::Span pinning = stage("pinning", bytes);
  return PinnedMemory::create(parts_.context, bytes);
}

Status UploadRing::add_block(std::uint64_t bytes) {
  Block block;
  SHUNT_TRY_ASSIGN(block.arrived, CudaBuffer::create(parts_.context, bytes));
  if (pinned_ == nullptr || pinned_->bytes().size() != bytes) {
    SHUNT_TRY_ASSIGN(pinned_, pin(bytes));
  }
  block.pinned = std::move(pinned_);
  SHUNT_TRY(parts_.context->delay_uploads());
  blocks_.push_back(std::move(block));
  end_ = 0;
  return {};
}

std::optional<std::uint64_t> UploadRing::free_place(std::uint64_t bytes) const {
  if (blocks_.empty()) return std::nullopt;
  const Block* const block = &blocks_.back();
  const std::uint64_t block_bytes = block->pinned->bytes().size();
  std::optional<std::uint64_t> first;  // where the oldest piece of the block begins
  for (const std::deque<Piece>* const pieces : {&sent_, &lent_}) {
    const auto piece = std::ranges::find(*pieces, block, &Piece::block);
    if (!first && piece != pieces->end()) first = piece->begin;
  }
  const auto if_before = [&](std::uint64_t begin, std::uint64_t end) {
    return bytes <= end - begin ? std::optional(begin) : std::nullopt;
  };
  if (!first) return if_before(0, block_bytes);
  if (end_ <= *first) return if_before(end_, *first);
  const auto behind = if_before(end_, block_bytes);
  return behind ? behind : if_before(0, *first);
}

Status UploadRing::send(Address to, std::uint64_t bytes, Layout layout, const MatrixRows& rows) {
  sent_.push_back(std::move(lent_.front()));
  lent_.pop_front();
  lent_bytes_ -= room_for(bytes);
  const Piece& piece = sent_.back();
  const bool in_strips = layout == Layout::strips;
  FunctionHandle kernel = nullptr;
  if (in_strips) {
    SHUNT_TRY_ASSIGN(kernel, parts_.strips.kernel_for(rows.dtype, parts_.settle));
    parts_.strips.write_call(piece.pinned->memory(), piece.arrived() + kCallBytes, rows, to);
  }
  Context& context = *parts_.context;
  const std::span<const std::byte> memory = piece.pinned->memory();
  SHUNT_TRY(check(call().copy_to_device(piece.arrived(), memory.data(), memory.size(), context.upload_stream()),
                  "uploading weights"));
  SHUNT_TRY(context.wait_for_uploads());
  if (in_strips)
    SHUNT_TRY(check(StripWriter::launch(call(), kernel, context.stream(), piece.arrived(), bytes, rows.dtype),
                    "laying out weights"));
  else
    SHUNT_TRY(check(call().copy_within(to, piece.arrived() + kCallBytes, bytes, context.stream()),
                    "moving weights to their place"));
  return piece.pinned->mark();
}

Status UploadRing::finish() {
  for (const Piece& piece : sent_) SHUNT_TRY(parts_.settle(*piece.pinned));
  const trace::Span freeing = stage("freeing");
  sent_.clear();
  lent_.clear();
  lent_bytes_ = 0;
  pinned_.reset();
  blocks_.clear();
  return {};
}

}  // namespace shunt::cuda
