#include "devices/cuda/upload_ring.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ops/strips.h"
#include "ops/strips/strip_moves.h"

namespace shunt::cuda {
namespace {

// Enough that the bus is busy while the host fills those that are lent and another is moved to its place.
constexpr std::size_t kMostPieces = 7;

// The call of rows_to_strips, at the beginning of a piece.
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
  const std::uint64_t wanted = piece_bytes(bytes, unit);
  SHUNT_TRY_ASSIGN(Piece piece, next_piece(wanted, settle));
  lent_.push_back(std::move(piece));
  return lent_.back().pinned->memory().subspan(kCallBytes, wanted);
}

Result<UploadRing::Piece> UploadRing::next_piece(std::uint64_t bytes, const Settle& settle) {
  const std::uint64_t new_bytes = std::max(bytes, kUploadPieceBytes);
  const bool is_ready = !idle_.empty() && idle_.front().pinned->query() != kNotReady;
  if (!is_ready && idle_.size() + lent_.size() < kMostPieces) {
    auto made = make_piece(new_bytes);
    if (made || idle_.empty() || made.error().code != Code::out_of_memory) return made;
  }
  SHUNT_TRY(settle(*idle_.front().pinned));
  Piece piece = std::move(idle_.front());
  idle_.pop_front();
  if (piece.pinned->memory().size() < kCallBytes + bytes) return make_piece(new_bytes);
  return piece;
}

Result<UploadRing::Piece> UploadRing::make_piece(std::uint64_t bytes) {
  Piece piece;
  SHUNT_TRY_ASSIGN(piece.arrived, CudaBuffer::create(context_, kCallBytes + bytes));
  SHUNT_TRY_ASSIGN(piece.pinned, pin(kCallBytes + bytes));
  SHUNT_TRY(piece.pinned->mark());
  return piece;
}

Result<std::unique_ptr<Pinned>> UploadRing::pin(std::uint64_t bytes) {
  if (block_ == nullptr || block_->bytes().size() - block_used_ < bytes) {
    const std::size_t made = idle_.size() + lent_.size();
    SHUNT_TRY_ASSIGN(block_, PinnedMemory::create(context_, made == 0 ? bytes : (kMostPieces - made) * bytes));
    block_used_ = 0;
  }
  const std::span<std::byte> part = block_->bytes().subspan(block_used_, bytes);
  block_used_ += bytes;
  return Pinned::create(context_, block_, part);
}

Status UploadRing::send(Address to, std::uint64_t bytes, Layout layout, const MatrixRows& rows) {
  idle_.push_back(std::move(lent_.front()));
  lent_.pop_front();
  Piece& piece = idle_.back();
  const DriverFunctions& call = context_->call();
  if (layout == Layout::strips) SHUNT_TRY(write_call(piece, to, rows));
  SHUNT_TRY(piece.pinned->delay_uploads());
  SHUNT_TRY(check(call.copy_to_device(piece.arrived->address(), piece.pinned->memory().data(), kCallBytes + bytes,
                                      context_->upload_stream()),
                  "uploading weights"));
  SHUNT_TRY(context_->wait_for_uploads());
  if (layout == Layout::strips)
    SHUNT_TRY(lay_out(piece, bytes / strip_chunk(rows.dtype).bytes));
  else
    SHUNT_TRY(check(call.copy_within(to, piece.arrived->address() + kCallBytes, bytes, context_->stream()),
                    "moving weights to their place"));
  return piece.pinned->mark();
}

Status UploadRing::write_call(const Piece& piece, Address to, const MatrixRows& rows) {
  SHUNT_TRY_ASSIGN(const Moves* const moves, moves_of(rows.dtype));
  const StripChunk chunk = strip_chunk(rows.dtype);
  const LayOut made{
      .call = {.output = to, .inputs = {piece.arrived->address() + kCallBytes}, .constants = moves->table->address()},
      .args = {
          .part_bytes = chunk.bytes / kStripRows, .chunks = rows.columns / chunk.columns, .words = chunk.bytes / 4}};
  std::memcpy(piece.pinned->memory().data(), &made, sizeof(made));
  return {};
}

Status UploadRing::lay_out(const Piece& piece, std::uint64_t chunks) {
  SHUNT_TRY_ASSIGN(const CudaEntry entry, rows_to_strips_entry());
  SHUNT_TRY_ASSIGN(const FunctionHandle kernel, kernels_.of(entry, 0));
  Address call = piece.arrived->address();
  CudaShares shares;
  CudaCopies copies{};  // which that kernel does not read
  void* arguments[] = {&call, &shares, &copies};
  return check(context_->call().launch(kernel, static_cast<unsigned>(chunks), 1, 1, kRowsToStripsThreads, 1, 1, 0,
                                       context_->stream(), arguments, nullptr),
               "laying out weights");
}

Result<const UploadRing::Moves*> UploadRing::moves_of(DType dtype) {
  if (const auto found = moves_.find(dtype); found != moves_.end()) return &found->second;
  const StripMoves of = strip_moves(dtype);
  const std::uint64_t bytes = of.table.size() * sizeof(of.table.front());
  Moves made;
  SHUNT_TRY_ASSIGN(made.source, Pinned::create(context_, bytes));
  SHUNT_TRY_ASSIGN(made.table, CudaBuffer::create(context_, bytes));
  std::ranges::copy(std::as_bytes(std::span(of.table)), made.source->memory().begin());
  SHUNT_TRY(check(
      context_->call().copy_to_device(made.table->address(), made.source->memory().data(), bytes, context_->stream()),
      "copying a layout"));
  return &moves_.emplace(dtype, std::move(made)).first->second;
}

Status UploadRing::finish(const Settle& settle) {
  for (const std::deque<Piece>* const pieces : {&idle_, &lent_})
    for (const Piece& piece : *pieces) SHUNT_TRY(settle(*piece.pinned));
  idle_.clear();
  lent_.clear();
  moves_.clear();
  block_.reset();
  return {};
}

}  // namespace shunt::cuda
