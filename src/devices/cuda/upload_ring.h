// The ring of pieces through which weights reach the device: pinned memory that the host fills, each piece with memory
// of the device where it arrives.
//
// Pieces arrive on the upload stream, so that the bus is busy while the device computes and the host fills other
// pieces. The device's stream moves each to its place, in rows or laid out as strips; so all that uses the place is in
// order there. Owned by an upload; one thread at a time.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <span>

#include "devices/cuda/program.h"
#include "devices/cuda/transfer.h"
#include "devices/upload.h"

namespace shunt::cuda {

class UploadRing {
 public:
  static constexpr std::size_t kMostLent = 4;

  // `kernels` must outlive it.
  UploadRing(std::shared_ptr<Context> context, Kernels& kernels) : context_(std::move(context)), kernels_(kernels) {}

  // Like Upload's calls.
  [[nodiscard]] Result<std::span<std::byte>> take(std::uint64_t bytes, std::uint64_t unit, const Settle& settle);
  [[nodiscard]] Status send(Address to, std::uint64_t bytes, Layout layout, const MatrixRows& rows);
  [[nodiscard]] Status finish(const Settle& settle);

 private:
  struct Piece {
    std::unique_ptr<Pinned> pinned;       // the call that lays it out, then its bytes; marked where it was moved last
    std::unique_ptr<CudaBuffer> arrived;  // the same
  };
  // The StripMoves of a dtype, on their way to the device.
  struct Moves {
    std::unique_ptr<Pinned> source;
    std::unique_ptr<CudaBuffer> table;
  };
  // Returns the next piece to lend: a new one while there are few and the oldest one's bytes have not been moved yet.
  [[nodiscard]] Result<Piece> next_piece(std::uint64_t bytes, const Settle& settle);
  [[nodiscard]] Result<Piece> make_piece(std::uint64_t bytes);
  // Pins the first piece alone, so that little is pinned for few bytes, and the others at once, which takes less time.
  [[nodiscard]] Result<std::unique_ptr<Pinned>> pin(std::uint64_t bytes);
  [[nodiscard]] Result<const Moves*> moves_of(DType dtype);
  // Writes the call that lays out rows at the beginning of their piece.
  [[nodiscard]] Status write_call(const Piece& piece, Address to, const MatrixRows& rows);
  // Makes the device's stream run it once it has arrived.
  [[nodiscard]] Status lay_out(const Piece& piece, std::uint64_t chunks);

  std::shared_ptr<Context> context_;
  Kernels& kernels_;
  std::deque<Piece> idle_;  // sent, the oldest first
  std::deque<Piece> lent_;
  std::map<DType, Moves> moves_;
  std::shared_ptr<PinnedMemory> block_;  // of which the next pieces are made
  std::uint64_t block_used_ = 0;         // bytes of it
};

}  // namespace shunt::cuda
