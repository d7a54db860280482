// The ring through which weights reach the device: pinned memory that the host fills, and as much memory of the device
// where it arrives.
//
// Pieces of any size follow each other in it, so that as many bytes travel whether weights are large or small. They
// arrive on the upload stream, so that the bus is busy while the device computes and the host fills other pieces. The
// device's stream moves each to its place, in rows or laid out as strips; so all that uses the place is in order there.
// Owned by an upload; one thread at a time.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "devices/cuda/strip_writer.h"
#include "devices/upload.h"
#include "trace/span.h"

namespace shunt::cuda {

class UploadRing {
 public:
  // Borrowed from the device, which outlives the ring. `recorder` may be null.
  struct Parts {
    std::shared_ptr<Context> context;
    StripWriter& strips;
    Settle settle;
    trace::Recorder* recorder;
    const std::string& device;  // its id
  };
  explicit UploadRing(Parts parts) : parts_(std::move(parts)) {}

  // Like Upload's calls. Memory of the device is reserved while that of the host is pinned.
  void expect(std::uint64_t bytes);
  [[nodiscard]] Result<std::span<std::byte>> take(std::uint64_t bytes, std::uint64_t unit);
  [[nodiscard]] Status send(Address to, std::uint64_t bytes, Layout layout, const MatrixRows& rows);
  [[nodiscard]] Status finish();

 private:
  // The memory of both sides.
  struct Block {
    std::shared_ptr<PinnedMemory> pinned;
    std::unique_ptr<CudaBuffer> arrived;
  };
  // A part of it: the call that lays the piece out, then the piece.
  struct Piece {
    const Block* block = nullptr;
    std::uint64_t begin = 0;
    std::unique_ptr<Pinned> pinned;  // marked where the piece was moved to its place
    [[nodiscard]] Address arrived() const { return block->arrived->address() + begin; }
  };
  [[nodiscard]] trace::Span stage(std::string_view what, std::uint64_t bytes = 0) const {
    return {parts_.recorder, trace::Kind::load, what, parts_.device, bytes};
  }
  [[nodiscard]] const DriverFunctions& call() const { return parts_.context->call(); }
  [[nodiscard]] Result<std::shared_ptr<PinnedMemory>> pin(std::uint64_t bytes);
  // Makes a block for the next pieces.
  [[nodiscard]] Status add_block(std::uint64_t bytes);
  // Returns where so many bytes of the last block are free behind the last piece; nullopt: nowhere.
  [[nodiscard]] std::optional<std::uint64_t> free_place(std::uint64_t bytes) const;
  // Waits until they are; nullopt: pieces that are lent must be sent first.
  [[nodiscard]] Result<std::optional<std::uint64_t>> make_room(std::uint64_t bytes);

  const Parts parts_;
  std::shared_ptr<PinnedMemory> pinned_;  // for the first block
  std::deque<Block> blocks_;              // the last one is that of the next pieces
  bool is_little_ = false;                // that one, so there is more memory to be had
  std::uint64_t end_ = 0;                 // of the last piece in it
  std::deque<Piece> sent_;                // the oldest first
  std::deque<Piece> lent_;                // those after them
  std::uint64_t lent_bytes_ = 0;
};

}  // namespace shunt::cuda
