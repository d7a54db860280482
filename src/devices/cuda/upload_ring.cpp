#include "devices/cuda/upload_ring.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "ops/strips.h"
#include "ops/strips/strip_moves.h"

namespace shunt::cuda {
namespace {

// Enough that the bus is busy while the host fills one piece and another is moved to its place.
constexpr std::size_t kMostPieces = 4;

// What rows_to_strips is given, at the beginning of a piece.
struct LayOut {
  CudaCall call;
  RowsToStripsArgs args;
};
constexpr std::uint64_t kCallBytes = 256;  // keeps what follows aligned for the bus
static_assert(sizeof(LayOut) <= kCallBytes);

Result<CudaEntry> rows_to_strips_entry() {
  const auto module = std::ranges::find(cuda_modules(), "rows_to_strips", &CudaModule::name);
  if (module == cuda_modules().end()) return fail(Code::unsupported, "this build has no kernel rows_to_strips");
  return CudaEntry{.module = &*module, .name = "shunt_rows_to_strips"};
}

}  // namespace

Result<std::span<std::byte>> UploadRing::take(std::uint64_t bytes, std::uint64_t unit, const Settle& settle) {
  SHUNT_TRY(turn(settle));
  Piece& piece = pieces_[current_];
  const std::uint64_t wanted = piece_bytes(bytes, unit);
  if (piece.pinned->memory().size() < kCallBytes + wanted) {
    SHUNT_TRY_ASSIGN(piece, make_piece(wanted));
  }
  return piece.pinned->memory().subspan(kCallBytes, wanted);
}

Status UploadRing::turn(const Settle& settle) {
  const std::size_t next = pieces_.empty() ? 0 : (current_ + 1) % pieces_.size();
  const bool is_free = !pieces_.empty() && (!pieces_[next].was_sent || pieces_[next].pinned->query() != kNotReady);
  if (!is_free && pieces_.size() < kMostPieces) {
    auto made = make_piece(kUploadPieceBytes);
    if (made) {
      current_ = pieces_.empty() ? 0 : current_ + 1;  // the piece after it is still the oldest
      pieces_.insert(std::next(pieces_.begin(), static_cast<std::ptrdiff_t>(current_)), std::move(*made));
      return {};
    }
    if (pieces_.empty() || made.error().code != Code::out_of_memory) return std::unexpected(std::move(made).error());
  }
  current_ = next;
  return std::exchange(pieces_[current_].was_sent, false) ? settle(*pieces_[current_].pinned) : Status();
}

Result<UploadRing::Piece> UploadRing::make_piece(std::uint64_t bytes) {
  Piece piece;
  SHUNT_TRY_ASSIGN(piece.pinned, Pinned::create(context_, kCallBytes + bytes));
  SHUNT_TRY_ASSIGN(piece.arrived, CudaBuffer::create(context_, kCallBytes + bytes));
  SHUNT_TRY(piece.pinned->mark());
  return piece;
}

Status UploadRing::send(Address to, std::uint64_t bytes, Layout layout, const MatrixRows& rows) {
  Piece& piece = pieces_[current_];
  const DriverFunctions& call = context_->call();
  const Moves* moves = nullptr;
  FunctionHandle kernel = nullptr;
  if (layout == Layout::strips) {
    SHUNT_TRY_ASSIGN(moves, moves_of(rows.dtype));
    SHUNT_TRY_ASSIGN(const CudaEntry entry, rows_to_strips_entry());
    SHUNT_TRY_ASSIGN(kernel, kernels_.of(entry, 0));
    const LayOut made{
        .call = {.output = to, .inputs = {piece.arrived->address() + kCallBytes}, .constants = moves->table->address()},
        .args = {.part_bytes = moves->part_bytes,
                 .chunks = rows.columns / strip_chunk(rows.dtype).columns,
                 .words = moves->words}};
    std::memcpy(piece.pinned->memory().data(), &made, sizeof(made));
  }
  SHUNT_TRY(piece.pinned->delay_uploads());
  SHUNT_TRY(check(call.copy_to_device(piece.arrived->address(), piece.pinned->memory().data(), kCallBytes + bytes,
                                      context_->upload_stream()),
                  "uploading weights"));
  SHUNT_TRY(context_->wait_for_uploads());
  piece.was_sent = true;
  SHUNT_TRY(moves == nullptr
                ? check(call.copy_within(to, piece.arrived->address() + kCallBytes, bytes, context_->stream()),
                        "moving weights to their place")
                : lay_out(piece, bytes, *moves, kernel));
  return piece.pinned->mark();
}

Status UploadRing::lay_out(const Piece& piece, std::uint64_t bytes, const Moves& moves, FunctionHandle kernel) const {
  Address call = piece.arrived->address();
  CudaShares shares;
  void* arguments[] = {&call, &shares};
  const auto chunks = static_cast<unsigned>(bytes / (std::uint64_t{moves.words} * 4));
  return check(context_->call().launch(kernel, chunks, 1, 1, kRowsToStripsThreads, 1, 1, 0, context_->stream(),
                                       arguments, nullptr),
               "laying out weights");
}

Result<const UploadRing::Moves*> UploadRing::moves_of(DType dtype) {
  if (const auto found = moves_.find(dtype); found != moves_.end()) return &found->second;
  const StripMoves of = strip_moves(dtype);
  const std::uint64_t bytes = of.table.size() * sizeof(of.table.front());
  Moves made{.part_bytes = of.part_bytes, .words = of.words};
  SHUNT_TRY_ASSIGN(made.source, Pinned::create(context_, bytes));
  SHUNT_TRY_ASSIGN(made.table, CudaBuffer::create(context_, bytes));
  std::ranges::copy(std::as_bytes(std::span(of.table)), made.source->memory().begin());
  SHUNT_TRY(check(
      context_->call().copy_to_device(made.table->address(), made.source->memory().data(), bytes, context_->stream()),
      "copying a layout"));
  return &moves_.emplace(dtype, std::move(made)).first->second;
}

Status UploadRing::finish(const Settle& settle) {
  for (Piece& piece : pieces_)
    if (std::exchange(piece.was_sent, false)) SHUNT_TRY(settle(*piece.pinned));
  pieces_.clear();
  moves_.clear();
  return {};
}

}  // namespace shunt::cuda
