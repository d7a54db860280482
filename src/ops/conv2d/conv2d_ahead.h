// Cache lines that are asked for while a convolution multiplies, spread evenly over its tiles: what comes next, so that
// memory and arithmetic work at the same time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace shunt {

// The lines that a tile asks for: lines[0] and lines[1] with every four elements, of which `step` are new.
struct LinesAhead {
  const std::byte* const* lines;
  std::size_t step;
};

class Ahead {
 public:
  static constexpr std::size_t kMostLines = 3960;
  static constexpr std::size_t kElements = 4;  // for which a tile asks for at most kLines lines
  static constexpr std::size_t kLines = 2;

  static constexpr std::size_t kLineBytes = 64;
  static constexpr std::size_t kSlots = 4096;
  static constexpr std::size_t kFloats = kSlots * sizeof(const std::byte*) / sizeof(float);

  // `lines` [kSlots] is scratch.
  explicit Ahead(const std::byte** lines) : lines_(lines) {}

  void clear() { count_ = 0; }
  // Adds the lines of so many bytes; lines beyond the most are left out.
  void add(const std::byte* first, std::size_t bytes) {
    if (bytes == 0) return;
    const std::size_t before = reinterpret_cast<std::uintptr_t>(first) % kLineBytes;
    const std::size_t lines = std::min((before + bytes + kLineBytes - 1) / kLineBytes, kMostLines - count_);
    const std::byte** const out = lines_ + count_;
    for (std::size_t i = 0; i < lines; ++i) out[i] = first - before + i * kLineBytes;
    count_ += lines;
  }

  // Divides the lines among so many tiles of so many elements. Tiles ask for them at the lowest rate that suffices;
  // those that need not take turns.
  void spread(std::uint64_t tiles, std::size_t elements) {
    const std::size_t rounds = elements / kElements;
    next_ = 0;
    step_ = count_ <= tiles * rounds ? 1 : kLines;
    share_ = rounds * step_;
    tiles_ = std::max<std::uint64_t>(1, tiles);
    tile_ = 0;
    // The last tile may ask for more than there are.
    for (std::size_t i = 0; i <= share_; ++i) lines_[count_ + i] = count_ != 0 ? lines_[count_ - 1] : nullptr;
  }

  // Returns the lines of the next tile.
  LinesAhead take() {
    ++tile_;
    if (next_ >= count_ || next_ * tiles_ >= count_ * tile_) return {lines_, 0};
    const LinesAhead lines{lines_ + next_, step_};
    next_ += share_;
    return lines;
  }

 private:
  const std::byte** lines_;
  std::size_t count_ = 0;
  std::size_t next_ = 0;
  std::size_t step_ = 0;
  std::size_t share_ = 0;
  std::uint64_t tiles_ = 1;
  std::uint64_t tile_ = 0;
};

}  // namespace shunt
