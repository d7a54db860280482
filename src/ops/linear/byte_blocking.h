// Block sizes of linear in bytes, and the form of x in it. They are the same for every instruction set, since scratch
// sizes depend on them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shunt {

// Up to this many token rows use the dot kernel where more are multiplied in bytes.
inline constexpr std::size_t kDotRowsBesideBytes = 8;
// Elements of k at a time: such a part of a strip (8 KiB) stays in the first-level cache.
inline constexpr std::size_t kByteElements = 256;
// Elements of x that share a scale.
inline constexpr std::size_t kByteXGroup = 32;
// Weight rows whose sums a thread keeps: a multiple of every strip.
inline constexpr std::size_t kByteBlockRows = 96;
// The most weight rows of a strip, and its bytes with scales and offsets of groups of 16.
inline constexpr std::size_t kMostByteStripRows = 32;
inline constexpr std::size_t kByteStripBytes =
    kMostByteStripRows * (kByteElements + 2 * kByteElements / 16 * sizeof(float));

// How bytes of a dtype's weights are grouped: elements are scale * (byte - centre), or scale * byte + offset if that
// is 0.
struct ByteGroups {
  std::size_t elements = 0;
  std::int32_t centre = 0;
  bool operator==(const ByteGroups&) const = default;
};

// The part of a product that a group of x adds for all rows of the weight alike.
union GroupSum {
  std::int32_t below_centre;  // minus the centre times the sum of the rounded elements
  float times_scale;          // their sum times their scale
};

// Token rows of x as integers of 8 bits: elements are the scale of their group times the integer.
struct RoundedX {
  std::int8_t* bytes = nullptr;  // [blocks of kByteElements][rows][kByteElements]
  float* scales = nullptr;       // [groups of kByteXGroup][rows]
  GroupSum* sums = nullptr;      // [groups of the weight][rows]
  std::size_t rows = 0;

  [[nodiscard]] std::int8_t* block(std::size_t block, std::size_t row) const {
    return bytes + (block * rows + row) * kByteElements;
  }
  [[nodiscard]] float& scale(std::size_t group, std::size_t row) const { return scales[group * rows + row]; }
  [[nodiscard]] GroupSum& sum(std::size_t group, std::size_t row) const { return sums[group * rows + row]; }
};

constexpr std::size_t byte_blocks(std::size_t k) { return (k + kByteElements - 1) / kByteElements; }

// Returns the bytes of `rows` token rows with `k` columns, at most.
constexpr std::size_t rounded_bytes(std::size_t rows, std::size_t k) {
  constexpr std::size_t kNumbers = kByteElements / kByteXGroup + kByteElements / 16;
  return byte_blocks(k) * rows * (kByteElements + kNumbers * sizeof(float));
}
// REQUIRES: `memory` has rounded_bytes(rows, k).
inline RoundedX rounded_x(std::byte* memory, std::size_t rows, std::size_t k) {
  RoundedX x{.rows = rows};
  const std::size_t blocks = byte_blocks(k);
  x.bytes = reinterpret_cast<std::int8_t*>(memory);
  x.scales = reinterpret_cast<float*>(memory + blocks * rows * kByteElements);
  x.sums = reinterpret_cast<GroupSum*>(x.scales + blocks * rows * (kByteElements / kByteXGroup));
  return x;
}

// Returns the scratch of a thread.
constexpr std::size_t byte_scratch(std::size_t rows) { return kByteStripBytes + rows * kByteBlockRows * sizeof(float); }

}  // namespace shunt
