// The form of x in linear in words, and the scratch of its tiles. They are the same for every instruction set, since
// scratch sizes depend on them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/linear/byte_blocking.h"
#include "shunt/tensor.h"

namespace shunt {

// Returns up to how many token rows this processor multiplies by weights of a dtype in words with the row kernel; 0:
// none.
[[nodiscard]] std::size_t word_rows(DType weight);

// Returns whether this processor has a tile kernel for weights of a dtype in words.
[[nodiscard]] bool has_word_tiles(DType weight);

// Up to this many token rows use the row kernel where more are multiplied in words as well.
inline constexpr std::size_t kDotRowsBesideWords = 8;
// Elements of x that share a scale.
inline constexpr std::size_t kWordBlock = 256;
// Elements of k at a time, in groups of 32.
inline constexpr std::size_t kWordElements = 128;
// The largest integer of x, which splits into two signed bytes: 127 * 256 + 127.
inline constexpr float kMostWord = 32639;

// Token rows of x as integers of 16 bits: elements are the scale of their block times the integer. The even elements of
// each kWordStep (group_words-inl.h) come before the odd ones, since that is how bytes widen to words without crossing
// lanes.
struct WordsOfX {
  std::byte* memory = nullptr;  // aligned to 64 bytes
  std::size_t rows = 0;
  std::size_t blocks = 0;  // of kWordBlock, per row

  // [kWordBlock] of a block, after which the next row's follow; zeros follow the last element.
  [[nodiscard]] std::int16_t* words(std::size_t row, std::size_t block) const {
    return reinterpret_cast<std::int16_t*>(memory) + (block * rows + row) * kWordBlock;
  }
  // [blocks][kSums], the sums of sixteen neighbours: of each eight of them, the even ones come first.
  [[nodiscard]] float* sums(std::size_t row) const {
    return reinterpret_cast<float*>(words(0, blocks)) + row * blocks * kSums;
  }
  // [blocks]
  [[nodiscard]] float* scales(std::size_t row) const { return sums(rows) + row * blocks; }

  static constexpr std::size_t kSums = kWordBlock / 16;
};

constexpr std::size_t word_blocks(std::size_t k) { return (k + kWordBlock - 1) / kWordBlock; }

// Returns the bytes of `rows` token rows with `k` columns.
constexpr std::size_t words_bytes(std::size_t rows, std::size_t k) {
  constexpr std::size_t kNumbers = WordsOfX::kSums + 1;
  return rows * word_blocks(k) * (kWordBlock * sizeof(std::int16_t) + kNumbers * sizeof(float));
}

// The same with integers split into signed bytes, integer = 256 * high + low, for weights that are unpacked to bytes
// (split_row-inl.h). On x86 each part of kWordElements has the bytes of its first halves, high then low, and those of
// its second halves; first halves are the first 16 elements of each group of 32. On Arm each group has its high bytes,
// then its low ones.
struct SplitX {
  std::byte* memory = nullptr;  // aligned to 64 bytes
  std::size_t rows = 0;
  std::size_t blocks = 0;  // of kWordBlock, per row

  // [2 * kWordElements] of a part; a row's parts follow each other in blocks as in WordsOfX.
  [[nodiscard]] std::int8_t* bytes(std::size_t row, std::size_t part) const {
    return reinterpret_cast<std::int8_t*>(memory) + ((part / 2 * rows + row) * 2 + part % 2) * 2 * kWordElements;
  }
  // [blocks * 2][kSums], minus the sums of eight integers, four in either half. Not used on Arm.
  [[nodiscard]] std::int32_t* sums(std::size_t row) const {
    return reinterpret_cast<std::int32_t*>(bytes(0, 2 * blocks)) + row * blocks * 2 * kSums;
  }
  // [blocks][kGroupSums], the sums of sixteen neighbours, on Arm. On x86 blocks have digits and block sums instead.
  [[nodiscard]] float* group_sums(std::size_t row) const {
    return reinterpret_cast<float*>(sums(rows)) + row * blocks * kGroupSums;
  }
  // [kDigits][kGroupSums], signed digits to the base of 256, the lowest first, of the sums of sixteen integers.
  [[nodiscard]] std::int8_t* digits(std::size_t row, std::size_t block) const {
    return reinterpret_cast<std::int8_t*>(group_sums(row) + block * kGroupSums);
  }
  // Four numbers, whose sum is minus the sum of a block's integers.
  [[nodiscard]] std::int32_t* block_sums(std::size_t row, std::size_t block) const {
    return reinterpret_cast<std::int32_t*>(digits(row, block) + kDigits * kGroupSums);
  }
  // [blocks]
  [[nodiscard]] float* scales(std::size_t row) const { return group_sums(rows) + row * blocks; }

  static constexpr std::size_t kSums = kWordElements / 8;
  static constexpr std::size_t kGroupSums = kWordBlock / 16;
  static constexpr std::size_t kDigits = 3;
  static_assert(kDigits * kGroupSums + 4 * sizeof(std::int32_t) == kGroupSums * sizeof(float));
};

// Returns the bytes of `rows` token rows with `k` columns, at least as many as words_bytes().
constexpr std::size_t split_bytes(std::size_t rows, std::size_t k) {
  constexpr std::size_t kNumbers = 2 * SplitX::kSums + SplitX::kGroupSums + 1;
  return rows * word_blocks(k) * (kWordBlock * sizeof(std::int16_t) + kNumbers * sizeof(float));
}

// Returns whether words multiply the dtype's weights by rounding them as well.
constexpr bool rounds_weight(DType weight) { return weight == DType::F16 || weight == DType::BF16; }

// Beside such weights: elements of either factor that share a scale, and the largest integer. The products of a group
// fit 32 bits.
inline constexpr std::size_t kFineGroup = 32;
inline constexpr std::int32_t kMostFine = 8191;
static_assert(std::int64_t{kFineGroup} * kMostFine * kMostFine <= 0x7FFFFFFF);
// From this many token rows on, rounding weights pays.
inline constexpr std::size_t kFineRows = 48;

// Token rows of x beside such weights: elements are the scale of their group times the integer.
struct FineWords {
  std::byte* memory = nullptr;  // aligned to 64 bytes, words_bytes(rows, k)
  std::size_t rows = 0;
  std::size_t blocks = 0;  // of kWordBlock, per row

  // [kWordBlock] of a block, after which the next row's follow; zeros follow the last element in its group.
  [[nodiscard]] std::int16_t* words(std::size_t row, std::size_t block) const {
    return reinterpret_cast<std::int16_t*>(memory) + (block * rows + row) * kWordBlock;
  }
  // Groups are counted over all blocks; the next row's scale follows.
  [[nodiscard]] float* scale(std::size_t row, std::size_t group) const {
    return reinterpret_cast<float*>(words(0, blocks)) + group * rows + row;
  }
};
static_assert(kWordBlock / kFineGroup <= WordsOfX::kSums);

// Tiles have the block sizes of those in bytes (byte_blocking.h). A thread holds a strip of weight rows, with the
// scales of its groups, and the sums of all token rows.
static_assert(kWordBlock == kByteElements);
inline constexpr std::size_t kWordStripBytes =
    kMostByteStripRows * (kByteElements * sizeof(std::int16_t) + kByteElements / 16 * sizeof(float));
// Returns the scratch of a thread.
constexpr std::size_t word_scratch(std::size_t rows) { return kWordStripBytes + rows * kByteBlockRows * sizeof(float); }

}  // namespace shunt
