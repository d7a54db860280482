#include "ops/strips.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "ops/quantize/blocks.h"

namespace shunt {
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

}  // namespace
}  // namespace shunt
