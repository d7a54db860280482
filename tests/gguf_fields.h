// Locates the fields of a GGUF file's header, so that each can be damaged separately: counts, lengths, types, values,
// names, extents and offsets. In a damaged header it finds the fields up to the damage. Plain functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace shunt {

struct GgufField {
  std::size_t at = 0;
  std::size_t bytes = 0;
};

// Values that code often gets wrong, as integers of any width.
inline constexpr std::uint64_t kTellingNumbers[] = {
    0,
    1,
    2,
    3,
    ~std::uint64_t{0},
    std::numeric_limits<std::int64_t>::max(),
    std::uint64_t{1} << 63U,
    std::numeric_limits<std::int32_t>::max(),
    std::uint64_t{1} << 31U,
    std::numeric_limits<std::uint32_t>::max(),
    std::uint64_t{1} << 32U,
    65536,
    0x7FC00000,  // NaN as a float
    0x7F800000,  // infinity
};

inline std::uint64_t number_at(std::span<const std::byte> file, const GgufField& field) {
  std::uint64_t number = 0;
  std::memcpy(&number, &file[field.at], std::min(field.bytes, sizeof number));
  return number;
}

inline void put_number(std::span<std::byte> file, const GgufField& field, std::uint64_t number) {
  std::memcpy(&file[field.at], &number, std::min(field.bytes, sizeof number));
}

class GgufFieldReader {
 public:
  explicit GgufFieldReader(std::span<const std::byte> file) : file_(file) {}

  std::vector<GgufField> read() {
    take(4);  // "GGUF"
    take(4);
    const std::uint64_t tensors = take(8);
    const std::uint64_t keys = take(8);
    for (std::uint64_t i = 0; i < keys && !ended_; ++i) {
      text();
      value(take(4));
    }
    for (std::uint64_t i = 0; i < tensors && !ended_; ++i) {
      text();
      const std::uint64_t rank = take(4);
      for (std::uint64_t axis = 0; axis < rank && !ended_; ++axis) take(8);
      take(4);
      take(8);
    }
    return std::move(fields_);
  }

 private:
  static constexpr std::uint64_t kString = 8, kArray = 9;
  static constexpr std::size_t kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  static constexpr std::uint64_t kEnds = 2;  // only the first and last elements of an array are fields

  std::uint64_t take(std::size_t bytes, bool is_field = true) {
    if (bytes > file_.size() - at_) ended_ = true;
    if (ended_ || bytes == 0) return 0;
    const GgufField field{.at = at_, .bytes = bytes};
    if (is_field) fields_.push_back(field);
    at_ += bytes;
    return number_at(file_, field);
  }

  void text(bool is_field = true) { take(take(8, is_field), is_field); }

  void value(std::uint64_t type, bool is_field = true) {
    if (type == kString) return text(is_field);
    if (type != kArray) {
      if (type >= std::size(kBytes)) ended_ = true;
      if (!ended_) take(kBytes[type], is_field);
      return;
    }
    const std::uint64_t of = take(4, is_field);
    const std::uint64_t count = take(8, is_field);
    if (of == kArray) ended_ = true;  // no test file nests arrays
    for (std::uint64_t i = 0; i < count && !ended_; ++i) value(of, is_field && (i < kEnds || i + kEnds >= count));
  }

  std::span<const std::byte> file_;
  std::size_t at_ = 0;
  bool ended_ = false;
  std::vector<GgufField> fields_;
};

inline std::vector<GgufField> gguf_fields(std::span<const std::byte> file) { return GgufFieldReader(file).read(); }

}  // namespace shunt
