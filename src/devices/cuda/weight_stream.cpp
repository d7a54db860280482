#include "devices/cuda/weight_stream.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>
#include <vector>

#include "ops/layout.h"
#include "ops/strips.h"

namespace shunt::cuda {
namespace {

// Bounds the memory of the tables that are kept for the next step: a few MiB.
constexpr std::size_t kMostCalls = 4096;
// Others end with their copies.
constexpr std::size_t kMostSpareMarks = 1024;

// Returns the bytes of a piece of `bytes`, of which so many are a strip.
std::uint64_t piece_of(std::uint64_t bytes, std::uint64_t unit) {
  return std::min(bytes, std::max(WeightStream::kPieceBytes / unit * unit, unit));
}

// Returns the pages that belong to the memory alone: others may have pinned those at its ends, for any device.
std::span<const std::byte> whole_pages_of(std::span<const std::byte> memory) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::size_t before = std::min<std::size_t>(memory.size(), (page - begin % page) % page);
  const std::size_t rest = memory.size() - before;
  return memory.subspan(before, rest / page * page);
}

}  // namespace

// The work of the upload streams for one weight, in order.
class WeightStream::Copy {
 public:
  struct Piece {
    std::size_t stream = 0;
    Address to = 0;
    const std::byte* from = nullptr;
    std::uint64_t bytes = 0;
    Address call = 0;  // that lays out all bytes of the stream since its last call; 0: none
    std::uint64_t rows_bytes = 0;
  };

  // Leaves its marks to others in `spare`.
  Copy(std::shared_ptr<Context> context, DType dtype, Marks arrived, std::shared_ptr<std::vector<Marks>> spare)
      : context_(std::move(context)),
        dtype_(dtype),
        arrived_(std::move(arrived)),
        spare_(std::move(spare)),
        batch_(1, [this](std::size_t) { done_.store(run(), std::memory_order_release); }) {}

  ~Copy() {
    if (spare_->size() < spare_->capacity()) spare_->push_back(std::move(arrived_));
  }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;

  void add(const Piece& piece) { pieces_.push_back(piece); }
  // Rows become strips by the calls in `table`, from where they arrive.
  void lay_out(FunctionHandle kernel, std::shared_ptr<CudaBuffer> table, std::shared_ptr<CudaBuffer> arrival) {
    kernel_ = kernel;
    table_ = std::move(table);
    arrival_ = std::move(arrival);
  }
  [[nodiscard]] TaskQueue::Batch& batch() { return batch_; }
  [[nodiscard]] int query() const {
    int done = done_.load(std::memory_order_acquire);
    for (const std::unique_ptr<Mark>& mark : arrived_)
      if (done == kSuccess) done = mark->query();
    return done;
  }

 private:
  // Returns the first error.
  [[nodiscard]] int run() const {
    context_->enter();
    for (const Piece& piece : pieces_) {
      const StreamHandle stream = context_->upload_stream(piece.stream);
      if (piece.bytes != 0)
        if (const int error = context_->call().copy_to_device(piece.to, piece.from, piece.bytes, stream); error != 0)
          return error;
      if (piece.call != 0)
        if (const int error =
                StripWriter::launch(context_->call(), kernel_, stream, piece.call, piece.rows_bytes, dtype_);
            error != 0)
          return error;
    }
    for (std::size_t stream = 0; stream < arrived_.size(); ++stream)
      if (const int error = arrived_[stream]->record(context_->upload_stream(stream)); error != 0) return error;
    return kSuccess;
  }

  const std::shared_ptr<Context> context_;
  const DType dtype_;
  FunctionHandle kernel_ = nullptr;
  std::shared_ptr<CudaBuffer> table_;
  std::shared_ptr<CudaBuffer> arrival_;
  std::vector<Piece> pieces_;
  Marks arrived_;
  const std::shared_ptr<std::vector<Marks>> spare_;
  std::atomic<int> done_{kNotReady};  // given to the streams, or an error
  TaskQueue::Batch batch_;
};

WeightStream::~WeightStream() = default;

int WeightStream::query(const Copy& copy) { return copy.query(); }

void WeightStream::upload(Copy& copy, std::size_t stream, Address to, std::span<const std::byte> from,
                          std::span<const std::byte> whole_pages) const {
  while (!from.empty()) {
    const std::span<const std::byte> alike = ranges_.first_alike(from);
    const std::byte* stop = alike.data() + alike.size();
    for (const std::byte* const border : {whole_pages.data(), whole_pages.data() + whole_pages.size()})
      if (border > from.data()) stop = std::min(stop, border);
    const auto bytes = static_cast<std::size_t>(stop - from.data());
    copy.add({.stream = stream, .to = to, .from = from.data(), .bytes = bytes});
    from = from.subspan(bytes);
    to += bytes;
  }
}

Result<std::shared_ptr<WeightStream::Copy>> WeightStream::copy(Address to, std::span<const std::byte> from,
                                                               Layout layout, const MatrixRows& rows,
                                                               const Settle& settle) {
  SHUNT_TRY_ASSIGN(Marks arrived, take_marks());
  auto copy = std::make_shared<Copy>(context_, rows.dtype, std::move(arrived), spare_marks_);
  if (layout == Layout::strips)
    SHUNT_TRY(upload_strips(*copy, to, from, rows, settle));
  else
    upload(*copy, 0, to, from, whole_pages_of(from));
  SHUNT_TRY(context_->delay_uploads_to_new_buffers());
  if (!thread_) thread_.emplace(1);
  while (!copies_.empty() && thread_->has_ended(copies_.front()->batch())) copies_.pop_front();
  copies_.push_back(copy);
  thread_->start(copy->batch());
  if (thread_->threads() == 0) thread_->wait(copy->batch());
  return copy;
}

Result<WeightStream::Marks> WeightStream::take_marks() {
  spare_marks_->reserve(kMostSpareMarks);
  Marks marks;
  if (!spare_marks_->empty()) {
    marks = std::move(spare_marks_->back());
    spare_marks_->pop_back();
    return marks;
  }
  for (std::unique_ptr<Mark>& mark : marks) {
    SHUNT_TRY_ASSIGN(mark, Mark::create(context_));
  }
  return marks;
}

void WeightStream::give_all() {
  for (; !copies_.empty(); copies_.pop_front()) thread_->wait(copies_.front()->batch());
}

Status WeightStream::upload_strips(Copy& copy, Address to, std::span<const std::byte> from, const MatrixRows& rows,
                                   const Settle& settle) {
  SHUNT_TRY_ASSIGN(const std::uint64_t row_bytes, bytes_of(rows.dtype, {rows.columns}));
  const std::uint64_t unit = kStripRows * row_bytes;
  const Key key{.to = to, .bytes = from.size(), .dtype = rows.dtype, .columns = rows.columns};
  SHUNT_TRY_ASSIGN(const FunctionHandle kernel, strips_.kernel_for(rows.dtype, settle));
  SHUNT_TRY_ASSIGN(std::shared_ptr<CudaBuffer> table, calls_of(key, unit, settle));
  Address call = table->address();
  copy.lay_out(kernel, std::move(table), arrived_);
  const std::span<const std::byte> whole_pages = whole_pages_of(from);
  for (std::size_t piece = 0; !from.empty(); ++piece) {
    const std::size_t stream = piece % Context::kUploadStreams;
    const std::uint64_t bytes = piece_of(from.size(), unit);
    upload(copy, stream, arrival(piece), from.first(bytes), whole_pages);
    copy.add({.stream = stream, .call = call, .rows_bytes = bytes});
    from = from.subspan(bytes);
    call += StripWriter::kCallBytes;
  }
  return {};
}

Result<std::shared_ptr<CudaBuffer>> WeightStream::calls_of(const Key& key, std::uint64_t unit, const Settle& settle) {
  const std::uint64_t most = Context::kUploadStreams * std::max(kPieceBytes, unit);
  if (arrived_ == nullptr || arrived_->bytes() < most) {
    calls_.clear();
    SHUNT_TRY_ASSIGN(arrived_, CudaBuffer::create(context_, most));
  }
  if (const auto known = calls_.find(key); known != calls_.end()) return known->second;
  std::vector<std::byte> calls;
  std::size_t piece = 0;
  for (std::uint64_t done = 0; done < key.bytes; done += piece_of(key.bytes - done, unit)) {
    calls.resize(calls.size() + StripWriter::kCallBytes);
    strips_.write_call(std::span(calls).last(StripWriter::kCallBytes), arrival(piece++), {key.dtype, key.columns},
                       key.to + done);
  }
  SHUNT_TRY_ASSIGN(std::shared_ptr<CudaBuffer> table, CudaBuffer::create(context_, calls.size()));
  SHUNT_TRY(transfer_.write(table->address(), calls, settle));
  if (calls_.size() >= kMostCalls) calls_.clear();
  return calls_.emplace(key, std::move(table)).first->second;
}

}  // namespace shunt::cuda
