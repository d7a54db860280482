#include "run/read_ahead.h"

#include <algorithm>
#include <utility>

namespace shunt {
namespace {

// However few cores there are: the threads wait for the disk, which gives most where many requests are on their way. A
// request may be as short as 128 KiB, the size that Linux reads ahead unless it is told otherwise.
constexpr std::uint32_t kThreads = 16;
// The bytes that a thread fetches at a time: several requests, and so few that all threads are where the caller will
// be next.
constexpr std::uint64_t kPieceBytes = std::uint64_t{512} << 10U;

}  // namespace

struct ReadAhead::Run {
  std::vector<Piece> pieces;
  TaskQueue::Batch batch;

  Run(std::vector<Piece> of, ReadAhead& ahead)
      : pieces(std::move(of)), batch(pieces.size(), [this, &ahead](std::size_t number) {
          ahead.fetch(pieces[number]);
          ahead.left_.fetch_sub(pieces[number].bytes, std::memory_order_relaxed);
        }) {}
};

ReadAhead::ReadAhead(WeightSource& source, const MemoryNodes& nodes) : source_(source), nodes_(nodes) {}

ReadAhead::~ReadAhead() = default;

void ReadAhead::add(std::size_t index, std::uint64_t offset, std::uint64_t bytes, std::uint32_t readers) {
  for (std::uint64_t at = 0; at < bytes;) {
    Piece piece{.index = index, .offset = offset + at, .bytes = std::min(kPieceBytes, bytes - at)};
    if (nodes_.count() != 0 && readers != 0) {
      const MemoryNodes::Stretch stretch = nodes_.stretch_at(at, bytes, readers);
      piece.node = stretch.node;
      piece.bytes = std::min(piece.bytes, stretch.end - at);
    } else if (nodes_.count() != 0) {
      piece.node = static_cast<std::uint32_t>((index + at / kPieceBytes) % nodes_.count());
    }
    at += piece.bytes;
    added_.push_back(piece);
  }
}

void ReadAhead::fetch(const Piece& piece) {
  if (nodes_.count() == 0) return source_.fetch(piece.index, piece.offset, piece.bytes);
  const MemoryNodes::Preference preference(nodes_, piece.node);
  source_.fetch(piece.index, piece.offset, piece.bytes);
  const std::span<const std::byte> mapped = source_.mapped(piece.index);
  if (!mapped.empty()) nodes_.move(mapped.subspan(piece.offset, piece.bytes), piece.node);
}

void ReadAhead::start(std::uint64_t most_bytes) {
  std::vector<Piece> pieces = std::exchange(added_, {});
  std::uint64_t bytes = 0;
  const auto exceeds = [&](const Piece& piece) {
    if (piece.bytes > most_bytes - bytes) return true;
    bytes += piece.bytes;
    return false;
  };
  pieces.erase(std::ranges::find_if(pieces, exceeds), pieces.end());
  if (pieces.empty()) return;
  while (!runs_.empty() && threads_->has_ended(runs_.front().batch)) runs_.pop_front();
  // Threads that others still need stay as many as they are.
  if (runs_.empty()) threads_.emplace(std::clamp<std::uint64_t>(bytes / kPieceBytes, 1, kThreads));
  Run& run = runs_.emplace_back(std::move(pieces), *this);
  left_.fetch_add(bytes, std::memory_order_relaxed);
  threads_->start(run.batch);
}

void ReadAhead::wait() {
  for (; !runs_.empty(); runs_.pop_front()) threads_->wait(runs_.front().batch);
}

}  // namespace shunt
