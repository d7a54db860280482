#include "devices/upload.h"

#include <array>
#include <utility>
#include <vector>

#include "ops/strips.h"

namespace shunt {
namespace {

class WritingUpload final : public Upload {
 public:
  explicit WritingUpload(Device& device) : device_(device) {}
  ~WritingUpload() override {
    // The device may still read the pieces. Whoever wants to know how that ends has called finish().
    [[maybe_unused]] const Status ended = finish();
  }
  WritingUpload(const WritingUpload&) = delete;
  WritingUpload& operator=(const WritingUpload&) = delete;

  [[nodiscard]] Result<std::span<std::byte>> take(std::uint64_t bytes, std::uint64_t unit) override {
    if (is_lent_) return std::span<std::byte>();
    Piece& piece = pieces_[next_];
    SHUNT_TRY(piece.written.wait());
    piece.content.resize(piece_bytes(bytes, unit));
    is_lent_ = true;
    return piece.content;
  }

  [[nodiscard]] Status send(const Binding& to, const MatrixRows& rows) override {
    Piece& piece = pieces_[next_];
    next_ = (next_ + 1) % pieces_.size();
    is_lent_ = false;
    if (to.layout == Layout::strips) {
      piece.rows.resize(piece.content.size());
      std::swap(piece.rows, piece.content);
      rows_to_strips(rows.dtype, rows.columns, piece.rows, piece.content);
    }
    piece.written = device_.write(to, piece.content);
    return piece.written.poll() ? piece.written.status() : Status();
  }

  [[nodiscard]] Status finish() override {
    Status all;
    for (Piece& piece : pieces_)
      if (Status written = piece.written.wait(); all) all = std::move(written);
    pieces_ = {};
    return all;
  }

 private:
  struct Piece {
    std::vector<std::byte> content;
    std::vector<std::byte> rows;  // from which it was laid out
    Event written{Status()};
  };

  Device& device_;
  std::array<Piece, 2> pieces_;
  std::size_t next_ = 0;
  bool is_lent_ = false;  // the next one
};

}  // namespace

std::unique_ptr<Upload> upload_by_writing(Device& device) { return std::make_unique<WritingUpload>(device); }

}  // namespace shunt
