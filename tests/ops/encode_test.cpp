#include "ops/quantize/encode.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "models/gguf/gguf.h"
#include "ops/quantize/blocks.h"

namespace shunt::encode_tests {
namespace {

std::vector<DType> encodable() {
  std::vector<DType> list;
  for (std::size_t i = 0; i < dtypes().size(); ++i)
    if (encoder_of(static_cast<DType>(i)) != nullptr) list.push_back(static_cast<DType>(i));
  return list;
}

std::vector<float> through(DType dtype, const std::vector<float>& x) {
  std::vector<std::byte> blocks(x.size() / info_of(dtype).block_elements * info_of(dtype).block_bytes);
  encode_row(dtype, x.data(), x.size(), blocks.data());
  std::vector<float> y(x.size());
  decode_row(dtype, blocks.data(), x.size(), y.data());
  return y;
}

double square_error(const std::vector<float>& x, const std::vector<float>& y) {
  double error = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double difference = static_cast<double>(x[i]) - static_cast<double>(y[i]);
    error += difference * difference;
  }
  return error;
}

std::vector<float> random_row(std::size_t elements, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0F, 0.05F);
  std::vector<float> x(elements);
  for (float& value : x) value = normal(random);
  return x;
}

// The error of round-to-nearest on the grid given by each group's range, with exact scales and no search.
double nearest_error(const std::vector<float>& x, std::size_t group, int low, int high) {
  double error = 0;
  for (std::size_t begin = 0; begin < x.size(); begin += group) {
    double least = 0, most = 0;
    for (std::size_t j = begin; j < begin + group; ++j) {
      least = std::min(least, static_cast<double>(x[j]));
      most = std::max(most, static_cast<double>(x[j]));
    }
    const double scale = low == 0 ? (most - least) / high : (most > -least ? most : least) / low;
    const double min = low == 0 ? -least : 0;
    for (std::size_t j = begin; j < begin + group; ++j) {
      const double value = static_cast<double>(x[j]);
      const double q =
          std::clamp(std::nearbyint((value + min) / scale), static_cast<double>(low), static_cast<double>(high));
      error += (q * scale - min - value) * (q * scale - min - value);
    }
  }
  return error;
}

TEST(Encode, EveryFloatingAndQuantizedTypeHasAnEncoder) {
  for (std::size_t i = 0; i < dtypes().size(); ++i) {
    const bool expected = dtypes()[i].kind != DTypeKind::integer;
    EXPECT_EQ(encoder_of(static_cast<DType>(i)) != nullptr, expected) << dtypes()[i].name;
  }
}

TEST(Encode, PlainTypesRoundToNearest) {
  const auto x = random_row(512, 1);
  EXPECT_EQ(through(DType::F32, x), x);
  for (const DType dtype : {DType::F16, DType::BF16}) {
    const auto y = through(dtype, x);
    const float half_step = dtype == DType::F16 ? 0x1p-11F : 0x1p-8F;
    for (std::size_t i = 0; i < x.size(); ++i)
      EXPECT_LE(std::abs(x[i] - y[i]), std::abs(x[i]) * half_step) << name_of(dtype) << " " << x[i];
  }
}

// The error of four-bit floats with the power of two that keeps the largest element in range.
double nearest_power_error(const std::vector<float>& x) {
  constexpr double kValues[] = {-6, -4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4, 6};
  double error = 0;
  for (std::size_t begin = 0; begin < x.size(); begin += 32) {
    double most = 0;
    for (std::size_t j = begin; j < begin + 32; ++j) most = std::max(most, std::abs(static_cast<double>(x[j])));
    const double scale = std::exp2(std::floor(std::log2(most)) - 2);
    for (std::size_t j = begin; j < begin + 32; ++j) {
      double least = HUGE_VAL;
      for (const double value : kValues) least = std::min(least, std::abs(value * scale - static_cast<double>(x[j])));
      error += least * least;
    }
  }
  return error;
}

TEST(Encode, SearchBeatsRoundToNearest) {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    const auto x = random_row(std::size_t{16} * 256, seed);
    EXPECT_LT(square_error(x, through(DType::Q4_0, x)), 0.95 * nearest_error(x, 32, -8, 7)) << "seed " << seed;
    EXPECT_LT(square_error(x, through(DType::Q4_K, x)), 0.95 * nearest_error(x, 32, 0, 15)) << "seed " << seed;
    EXPECT_LT(square_error(x, through(DType::Q5_K, x)), 0.95 * nearest_error(x, 32, 0, 31)) << "seed " << seed;
    EXPECT_LT(square_error(x, through(DType::Q6_K, x)), 0.95 * nearest_error(x, 16, -32, 31)) << "seed " << seed;
    EXPECT_LT(square_error(x, through(DType::Q4_1, x)), 0.95 * nearest_error(x, 32, 0, 15)) << "seed " << seed;
    EXPECT_LT(square_error(x, through(DType::Q5_0, x)), 0.95 * nearest_error(x, 32, -16, 15)) << "seed " << seed;
    EXPECT_LT(square_error(x, through(DType::Q5_1, x)), 0.95 * nearest_error(x, 32, 0, 31)) << "seed " << seed;
    EXPECT_LT(square_error(x, through(DType::Q2_K, x)), 0.95 * nearest_error(x, 16, 0, 3)) << "seed " << seed;
    EXPECT_LT(square_error(x, through(DType::Q3_K, x)), 0.95 * nearest_error(x, 16, -4, 3)) << "seed " << seed;
    // Uneven levels suit such values better than even ones.
    EXPECT_LT(square_error(x, through(DType::IQ4_NL, x)), 0.9 * nearest_error(x, 32, -8, 7)) << "seed " << seed;
    EXPECT_LT(square_error(x, through(DType::IQ4_XS, x)), 0.9 * nearest_error(x, 32, -8, 7)) << "seed " << seed;
    EXPECT_LT(square_error(x, through(DType::MXFP4, x)), 0.999 * nearest_power_error(x)) << "seed " << seed;
    EXPECT_LT(square_error(x, through(DType::Q8_0, x)), 1.01 * nearest_error(x, 32, -127, 127)) << "seed " << seed;
  }
}

// ggml quantized the vectors' src0 from one stream of Mersenne Twister numbers in [-1, 1); the f32 file contains the
// stream itself.
TEST(Encode, ErrorIsNotAboveThatOfGgmlsBlocks) {
  struct Case {
    const char* file;
    std::size_t begin;  // of src0 within the stream
  };
  constexpr Case kCases[] = {{"f32", 0},         {"f16", 40960},     {"q4_0", 81920},  {"q4_1", 122880},
                             {"q5_0", 163840},   {"q5_1", 204800},   {"q8_0", 245760}, {"q2_K", 286720},
                             {"q3_K", 327680},   {"q4_K", 368640},   {"q5_K", 409600}, {"q6_K", 450560},
                             {"iq4_nl", 491520}, {"iq4_xs", 532480}, {"mxfp4", 573440}};
  std::vector<float> stream(620000);
  std::mt19937 random(42);
  for (float& value : stream) value = static_cast<float>(random()) * 0x1p-32F * 2.0F - 1.0F;
  for (const auto& [file, begin] : kCases) {
    auto vectors = models::GgufFile::open(std::string(SHUNT_TEST_DATA "/vectors/mul_mat_") + file + ".gguf");
    ASSERT_TRUE(vectors.has_value()) << vectors.error().message;
    const auto index = (*vectors)->find("src0");
    ASSERT_TRUE(index.has_value()) << file;
    const WeightInfo& info = (*vectors)->weights()[*index];
    std::vector<float> theirs(info.shape.elements());
    decode_row(info.dtype, (*vectors)->mapped(*index).data(), theirs.size(), theirs.data());
    const auto start = stream.begin() + static_cast<std::ptrdiff_t>(begin);
    const std::vector<float> source(start, start + static_cast<std::ptrdiff_t>(theirs.size()));
    const double power = square_error(source, std::vector<float>(source.size()));
    const double their_error = square_error(source, theirs);
    ASSERT_LT(their_error, 0.1 * power) << file << ": the stream is not the source";
    EXPECT_LE(square_error(source, through(info.dtype, source)), their_error) << file;
  }
}

// Levels that the dtype represents exactly. By default 16 even ones; some types have fewer or uneven ones.
std::vector<float> levels_of(DType dtype) {
  std::vector<float> levels;
  const auto even = [&](int low, int high) {
    for (int q = low; q <= high; ++q) levels.push_back(0.25F * static_cast<float>(q));
  };
  switch (dtype) {
    case DType::Q2_K:
      even(-1, 2);
      break;
    case DType::Q3_K:
      even(-4, 3);
      break;
    case DType::IQ4_NL:
    case DType::IQ4_XS:
      for (const std::int8_t level : kCodebook) levels.push_back(0.25F * static_cast<float>(level));
      break;
    case DType::MXFP4:
      for (const std::int8_t level : kMxValues) levels.push_back(0.25F * static_cast<float>(level));
      break;
    default:
      even(-8, 7);
  }
  return levels;
}

TEST(Encode, ValuesOnTheGridStay) {
  for (const DType dtype : encodable()) {
    const std::vector<float> levels = levels_of(dtype);
    std::vector<float> x(256);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = levels[i * 7 % levels.size()];
    // Blocks of 256 round the scales of their groups a second time.
    const bool exact = info_of(dtype).block_elements <= 32 && dtype != DType::Q8_0;
    const double error = square_error(x, through(dtype, x)) / square_error(x, std::vector<float>(256));
    EXPECT_LE(error, exact ? 0.0 : 2e-5) << name_of(dtype);
  }
}

TEST(Encode, DegenerateRowsKeepTheirMeaning) {
  for (const DType dtype : encodable()) {
    EXPECT_EQ(through(dtype, std::vector<float>(256, 0.0F)), std::vector<float>(256, 0.0F)) << name_of(dtype);
    // 1000 and 1e-3 lie between 4-bit floats. The scale of IQ4_XS is 1 / 4064 of the largest element, which here is a
    // tiny F16 with few bits.
    const bool coarse = dtype == DType::MXFP4 || dtype == DType::IQ4_XS;
    const float relative = coarse ? 0.025F : 0.01F;
    for (const float constant : {1.0F, -1.0F, 1000.0F, -1e-3F}) {
      for (const float value : through(dtype, std::vector<float>(256, constant)))
        EXPECT_NEAR(value, constant, std::abs(constant) * relative) << name_of(dtype);
    }
    std::vector<float> lonely(256, 0.0F);
    lonely[100] = 3.0F;
    const auto y = through(dtype, lonely);
    EXPECT_NEAR(y[100], 3.0F, 0.03F) << name_of(dtype);
    // These codebooks have no zero.
    const bool has_zero = dtype != DType::IQ4_NL && dtype != DType::IQ4_XS;
    EXPECT_LE(std::abs(y[99]), has_zero ? 0.0F : 0.03F) << name_of(dtype);
  }
}

TEST(Encode, WhatIsNotFiniteGivesSomeBlock) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const DType dtype : encodable()) {
    for (const float value : {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity, 3e38F, 1e-40F}) {
      auto x = random_row(512, 5);
      x[17] = value;
      EXPECT_EQ(through(dtype, x).size(), x.size());
      const auto clean = random_row(512, 5);
      // The next block is unaffected.
      EXPECT_EQ(through(dtype, x)[300], through(dtype, clean)[300]) << name_of(dtype) << " " << value;
    }
  }
}

}  // namespace
}  // namespace shunt::encode_tests
