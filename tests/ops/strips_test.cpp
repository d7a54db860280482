#include "ops/strips.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "ops/quantize/blocks.h"
#include "ops/strips/strip_moves.h"

#define SHUNT_KERNELS_ON_HOST
#include "ops/strip.cuh"

namespace shunt::strips_tests {
namespace {

std::vector<DType> dtypes_with_strips() {
  std::vector<DType> dtypes;
  for (std::size_t i = 0; i < shunt::dtypes().size(); ++i)
    if (strip_chunk(static_cast<DType>(i)).columns != 0) dtypes.push_back(static_cast<DType>(i));
  return dtypes;
}

struct Matrix {
  std::uint64_t rows;
  std::uint64_t columns;
  std::vector<std::byte> bytes;  // in rows
};

Matrix random_matrix(DType dtype, std::uint64_t rows, std::uint64_t chunks) {
  const std::uint64_t columns = chunks * strip_chunk(dtype).columns;
  Matrix matrix{rows, columns, {}};
  std::mt19937 random(static_cast<unsigned>(dtype));
  matrix.bytes.resize(bytes_of(dtype, {static_cast<std::uint32_t>(rows), static_cast<std::uint32_t>(columns)}).value());
  for (std::byte& byte : matrix.bytes) byte = static_cast<std::byte>(random());
  return matrix;
}

std::vector<std::byte> strips_of(DType dtype, const Matrix& matrix) {
  std::vector<std::byte> strips(matrix.bytes.size());
  rows_to_strips(dtype, matrix.columns, matrix.bytes, strips);
  return strips;
}

TEST(Strips, ExistForWholeChunksAndPairsOfStrips) {
  EXPECT_EQ(dtypes_with_strips().size(), 15U);
  EXPECT_TRUE(has_strips(DType::Q4_K, 32, 512));
  EXPECT_FALSE(has_strips(DType::Q4_K, 24, 512)) << "half a pair";
  EXPECT_FALSE(has_strips(DType::Q8_0, 32, 160)) << "whole blocks, but not a whole chunk";
  EXPECT_FALSE(has_strips(DType::Q8_0, 32, 0));
  EXPECT_FALSE(has_strips(DType::F32, 32, 512));
  EXPECT_FALSE(has_strips(DType::I32, 32, 512));
}

TEST(Strips, HaveTheBytesOfTheRowsInAnotherOrder) {
  for (const DType dtype : dtypes_with_strips()) {
    SCOPED_TRACE(name_of(dtype));
    const Matrix matrix = random_matrix(dtype, 16, 3);
    const std::vector<std::byte> strips = strips_of(dtype, matrix);
    EXPECT_NE(strips, matrix.bytes);
    std::vector<std::byte> rows(matrix.bytes.size());
    strips_to_rows(dtype, matrix.columns, strips, rows);
    EXPECT_EQ(rows, matrix.bytes);
  }
}

// Makes a chunk as the kernel does.
std::vector<std::byte> moved_chunk(const StripMoves& moves, std::span<const std::byte> rows) {
  const std::uint32_t stride = (moves.part_bytes + 3) / 4;
  std::vector<std::uint32_t> source(std::size_t{kStripRows} * stride);
  EXPECT_LE(source.size(), kMostStripSourceWords);
  for (std::size_t row = 0; row < kStripRows; ++row)
    std::memcpy(source.data() + row * stride, rows.data() + row * moves.part_bytes, moves.part_bytes);
  std::vector<std::uint32_t> chunk(moves.table.begin(), moves.table.begin() + moves.words);
  for (std::uint32_t word = 0; word < moves.words; ++word)
    for (std::uint32_t i = 0; i < moves.table[moves.words + word]; ++i) {
      const std::size_t at = (2 + std::size_t{2} * i) * moves.words + std::size_t{2} * word;
      const std::uint32_t from = moves.table[at + 1];
      chunk[word] ^= std::rotr(source[from & 0xFFFFU], static_cast<int>(from >> 16U)) & moves.table[at];
    }
  const auto bytes = std::as_bytes(std::span(chunk));
  return {bytes.begin(), bytes.end()};
}

TEST(Strips, AreMovedBits) {
  for (const DType dtype : dtypes_with_strips()) {
    const Matrix matrix = random_matrix(dtype, 8, 1);
    EXPECT_EQ(moved_chunk(strip_moves(dtype), matrix.bytes), strips_of(dtype, matrix)) << name_of(dtype);
  }
}

// A matrix whose scales and minima are not too large and no NaN, so that its elements can be compared.
Matrix moderate_matrix(DType dtype, std::uint64_t rows, std::uint64_t chunks) {
  Matrix matrix = random_matrix(dtype, rows, chunks);
  const auto moderate = [&](std::size_t block_bytes, std::initializer_list<std::size_t> halves) {
    for (std::size_t block = 0; block < matrix.bytes.size(); block += block_bytes)
      for (const std::size_t half : halves) matrix.bytes[block + half + 1] &= std::byte{0xBF};  // below 2
  };
  const std::size_t bytes = info_of(dtype).block_bytes;
  if (dtype == DType::Q2_K) moderate(bytes, {80, 82});
  if (dtype == DType::Q3_K) moderate(bytes, {108});
  if (dtype == DType::Q6_K) moderate(bytes, {208});
  if (dtype == DType::F16 || dtype == DType::BF16) moderate(bytes, {0});
  for (std::size_t at = 0; dtype == DType::MXFP4 && at < matrix.bytes.size(); at += bytes)
    matrix.bytes[at] = (matrix.bytes[at] & std::byte{0x1F}) | std::byte{0x60};
  for (const DType with_min : {DType::Q4_1, DType::Q5_1, DType::Q4_K, DType::Q5_K})
    if (dtype == with_min) moderate(bytes, {0, 2});
  for (const DType without : {DType::Q4_0, DType::Q5_0, DType::Q8_0, DType::IQ4_NL, DType::IQ4_XS})
    if (dtype == without) moderate(bytes, {0});
  return matrix;
}

std::vector<float> elements_of(DType dtype, const Matrix& matrix) {
  std::vector<float> elements(matrix.rows * matrix.columns);
  decode_row(dtype, matrix.bytes.data(), elements.size(), elements.data());
  return elements;
}

const std::uint8_t* data_of(const std::vector<std::byte>& bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}

TEST(Strips, HaveTheElementsOfTheRows) {
  for (const DType dtype : dtypes_with_strips()) {
    const Matrix matrix = moderate_matrix(dtype, 16, 3);
    const std::vector<std::byte> strips = strips_of(dtype, matrix);
    const std::vector<float> elements = elements_of(dtype, matrix);
    for (std::uint32_t row = 0; row < matrix.rows; ++row)
      for (std::uint32_t column = 0; column < matrix.columns; ++column)
        ASSERT_EQ(strip_element(static_cast<std::uint32_t>(dtype), data_of(strips),
                                static_cast<std::uint32_t>(matrix.columns), row, column),
                  elements[row * matrix.columns + column])
            << name_of(dtype) << " row " << row << " column " << column;
  }
}

float number_of(std::uint32_t of, std::uint32_t sixteen_bits) {
  return of == dtype::BF16 ? widen_bf16(sixteen_bits) : widen_f16(sixteen_bits);
}

// Checks what a warp decodes of a chunk: `elements` are of its rows, `columns` apart.
template <std::uint32_t of>
void expect_decoded(const std::uint8_t* chunk, const float* elements, std::uint64_t columns) {
  using Chunk = Strip<of>;
  for (std::uint32_t thread = 0; thread < 32; ++thread) {
    Chunk strip;
    strip.read(chunk, thread);
    for (std::uint32_t column = 0; column < Chunk::kColumns; ++column) {
      if (column % 16 / 4 != thread % 4) continue;
      const std::uint32_t step = column / 16;
      const StepHalves halves = strip.step(step);
      const std::uint32_t pair = column % 4 < 2 ? halves.low : halves.high;
      float value = number_of(of, column % 2 == 0 ? pair & 0xFFFFU : pair >> 16U);
      if (step % 2 == 1) value /= static_cast<float>(Chunk::kOddFactor);
      const std::uint32_t group = Chunk::kGroupColumns == 0 ? 0 : column / std::max(Chunk::kGroupColumns, 1U);
      value = value / Chunk::kOne * strip.scale(group) * strip.outer() + strip.offset(group);
      const float wanted = elements[thread / 4 * columns + column];
      ASSERT_NEAR(value, wanted, 1e-5F * std::abs(wanted) + 1e-4F)
          << name_of(static_cast<DType>(of)) << " thread " << thread << " column " << column;
      if constexpr (Chunk::kHasOffsets) {
        const std::uint32_t t = group / 2 % 4;
        const OffsetHalves minima = strip.minima(t);
        const std::uint32_t both = group < 8 ? minima.low : minima.high;
        const float min = (group % 2 == 0 ? low_half(both) : high_half(both)) * strip.offset_factor() / Chunk::kOne;
        ASSERT_NEAR(min, strip.offset(group), 1e-6F * std::abs(min)) << name_of(static_cast<DType>(of));
      }
    }
  }
}

TEST(Strips, AreDecodedByWarps) {
  for (const DType of : dtypes_with_strips()) {
    const Matrix matrix = moderate_matrix(of, 16, 2);
    const std::vector<std::byte> strips = strips_of(of, matrix);
    const std::vector<float> elements = elements_of(of, matrix);
    const StripChunk chunk = strip_chunk(of);
    for (std::uint32_t i = 0; i < 4; ++i) {
      const std::uint8_t* at = data_of(strips) + std::size_t{i} * chunk.bytes;
      const float* of_chunk =
          elements.data() + std::size_t{i / 2} * 8 * matrix.columns + std::size_t{i % 2} * chunk.columns;
#define SHUNT_EXPECT(name) \
  if (of == DType::name) expect_decoded<dtype::name>(at, of_chunk, matrix.columns);
      SHUNT_EXPECT(F16)
      SHUNT_EXPECT(BF16)
#define SHUNT_QUANTIZED_floating(name)
#define SHUNT_QUANTIZED_integer(name)
#define SHUNT_QUANTIZED_quantized(name) SHUNT_EXPECT(name)
#define SHUNT_DTYPE(name, gguf_id, block_elements, block_bytes, kind) SHUNT_QUANTIZED_##kind(name)
#include "ops/dtypes.def"
#undef SHUNT_QUANTIZED_floating
#undef SHUNT_QUANTIZED_integer
#undef SHUNT_QUANTIZED_quantized
#undef SHUNT_EXPECT
    }
  }
}

}  // namespace
}  // namespace shunt::strips_tests
