// linear by matrix tiles of BF16 on every instruction set: with emulated tiles, and with the processor's where it has
// them.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "ops/each_target.h"
#include "ops/linear/linear.h"
#include "ops/random_elements.h"
#include "ops/rounded_factors.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/bf16_tile_test.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/amx_tiles-inl.h"
#include "ops/emulated_tiles-inl.h"
#include "ops/linear/bf16_tile-inl.h"

#ifndef SHUNT_TESTS_BF16_TILE_ONCE
#define SHUNT_TESTS_BF16_TILE_ONCE
namespace shunt::bf16_tile_tests {

// A product, whose rows lie one after another.
struct Product {
  DType weight_dtype = DType::F32;
  DType x_dtype = DType::F32;
  std::size_t rows = 1;
  std::uint32_t k = 32;
  std::uint32_t m = 1;
  Arithmetic arithmetic = Arithmetic::bf16;
  std::uint32_t shares = 1;
  const std::byte* weight = nullptr;
  const std::byte* x = nullptr;
  const float* residual = nullptr;  // null: none
  float* out = nullptr;
};

}  // namespace shunt::bf16_tile_tests
#endif

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {
namespace {

template <class Tiles, std::size_t kWeightParts, std::size_t kXParts>
void multiply_parts_of(const bf16_tile_tests::Product& product) {
  const test::Scratch shared = test::make_scratch(bf16_x_bytes(product.rows, product.k, kXParts));
  const test::Scratch scratch = test::make_scratch(bf16_scratch(kXParts));
  const Bf16X<kXParts> x{reinterpret_cast<Bf16Strip<kXParts>*>(shared.get()), product.rows};
  const std::size_t x_row_bytes = std::size_t{product.k} * info_of(product.x_dtype).block_bytes;
  for (std::uint32_t share = 0; share < product.shares; ++share)
    pack_bf16<Tiles>(
        product.x_dtype, product.k, [&](std::size_t row) { return product.x + row * x_row_bytes; }, x,
        share_of(bf16_x_items(product.rows, product.k), share, product.shares), scratch.get());

  std::vector<const float*> residual(product.rows);
  std::vector<float*> out(product.rows);
  for (std::size_t row = 0; row < product.rows; ++row) {
    residual[row] = product.residual == nullptr ? nullptr : product.residual + row * product.m;
    out[row] = product.out + row * product.m;
  }
  const DTypeInfo& info = info_of(product.weight_dtype);
  LinearArgs args;
  args.k = product.k;
  args.m = product.m;
  args.weight_dtype = static_cast<std::uint32_t>(product.weight_dtype);
  args.weight_row_bytes = product.k / info.block_elements * info.block_bytes;
  for (std::uint32_t share = 0; share < product.shares; ++share) {
    std::memset(scratch.get(), 0xFF, bf16_scratch(kXParts));
    multiply_bf16<Tiles, kWeightParts, kXParts>(args, product.weight, {x, residual.data(), out.data()},
                                                share_of(product.m, share, product.shares, kBf16StripRows),
                                                scratch.get());
  }
}

template <class Tiles>
void multiply_by(const bf16_tile_tests::Product& product) {
  with_bf16_parts(product.arithmetic, product.weight_dtype, [&]<std::size_t kWeightParts, std::size_t kXParts>() {
    multiply_parts_of<Tiles, kWeightParts, kXParts>(product);
  });
}

// Rounds `elements`, a whole number of pairs of vectors of every target.
template <class Tiles>
void round_by(const float* from, std::size_t elements, std::uint16_t* to) {
  const BlockTag d;
  for (std::size_t i = 0; i < elements; i += 2 * kBlockLanes) {
    const Bf16Vec rounded = Tiles::round(hn::LoadU(d, from + i), hn::LoadU(d, from + i + kBlockLanes));
    hn::StoreU(rounded, hn::Repartition<std::uint16_t, BlockTag>(), to + i);
  }
}

void multiply_emulated(const bf16_tile_tests::Product& product) { multiply_by<EmulatedTiles>(product); }
void round_emulated(const float* from, std::size_t elements, std::uint16_t* to) {
  round_by<EmulatedTiles>(from, elements, to);
}

bool has_amx() { return has_amx_tiles(); }
#if SHUNT_HAS_AMX_TILES
void multiply_by_amx(const bf16_tile_tests::Product& product) { multiply_by<AmxTiles>(product); }
void round_by_amx(const float* from, std::size_t elements, std::uint16_t* to) {
  round_by<AmxTiles>(from, elements, to);
}
#else
void multiply_by_amx(const bf16_tile_tests::Product&) {}
void round_by_amx(const float*, std::size_t, std::uint16_t*) {}
#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shunt {
namespace {
HWY_EXPORT(multiply_emulated);
HWY_EXPORT(round_emulated);
HWY_EXPORT(has_amx);
HWY_EXPORT(multiply_by_amx);
HWY_EXPORT(round_by_amx);
}  // namespace
}  // namespace shunt

namespace shunt::bf16_tile_tests {
namespace {

using test::Bytes;

constexpr float kCanary = -12345.0F;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Calls body(multiply, round) with the emulated tiles of every instruction set, and with the processor's.
template <class Body>
void for_each_unit(Body body) {
  test::for_each_simd_target([&] {
    {
      SCOPED_TRACE("emulated");
      body([](const Product& product) { HWY_DYNAMIC_DISPATCH(multiply_emulated)(product); },
           [](const float* from, std::size_t n, std::uint16_t* to) {
             HWY_DYNAMIC_DISPATCH(round_emulated)(from, n, to);
           });
    }
    if (!HWY_DYNAMIC_DISPATCH(has_amx)()) return;
    SCOPED_TRACE("AMX");
    body([](const Product& product) { HWY_DYNAMIC_DISPATCH(multiply_by_amx)(product); },
         [](const float* from, std::size_t n, std::uint16_t* to) { HWY_DYNAMIC_DISPATCH(round_by_amx)(from, n, to); });
  });
}

// A product with its operands.
struct Case {
  Product product;
  Bytes weight;
  Bytes x;
  std::vector<float> residual;
  std::vector<float> out;

  Case(const Product& shape, bool has_residual, std::uint32_t seed) : product(shape) {
    std::mt19937 random(seed);
    weight = test::random_elements(shape.weight_dtype, std::uint64_t{shape.m} * shape.k, random);
    x = test::random_elements(shape.x_dtype, shape.rows * shape.k, random);
    out.resize(shape.rows * shape.m);
    if (has_residual)
      residual = test::decoded(DType::F32, test::random_elements(DType::F32, out.size(), random), out.size());
  }

  template <class Multiply>
  void run(const Multiply& multiply) {
    std::ranges::fill(out, kCanary);
    product.weight = weight.data();
    product.x = x.data();
    product.residual = residual.empty() ? nullptr : residual.data();
    product.out = out.data();
    multiply(product);
  }
};

struct Distance {
  double error = 0;
  double power = 0;
  double worst = 0;  // of an error, in shares of the sum of the absolute products
};

// Compares with sums in double of the products of factors as `arithmetic` takes them.
Distance distance(const Case& c, Arithmetic arithmetic) {
  const Product& p = c.product;
  const test::Factors w =
      test::factors_of(test::decoded(p.weight_dtype, c.weight, std::uint64_t{p.m} * p.k), arithmetic);
  const test::Factors x = test::factors_of(test::decoded(p.x_dtype, c.x, p.rows * p.k), arithmetic);
  Distance distance;
  for (std::size_t t = 0; t < p.rows; ++t)
    for (std::size_t r = 0; r < p.m; ++r) {
      double sum = c.residual.empty() ? 0 : static_cast<double>(c.residual[t * p.m + r]);
      double magnitude = std::abs(sum);
      for (std::size_t i = 0; i < p.k; ++i) {
        const double product = test::product(w, r * p.k + i, x, t * p.k + i);
        sum += product;
        magnitude += std::abs(product);
        distance.power += product * product;
      }
      const double error = std::abs(static_cast<double>(c.out[t * p.m + r]) - sum);
      distance.error += error * error;
      distance.worst = std::max(distance.worst, error / magnitude);
    }
  return distance;
}

constexpr DType kWeights[] = {
#define SHUNT_IF_floating(name) DType::name,
#define SHUNT_IF_quantized(name) DType::name,
#define SHUNT_IF_integer(name)
#define SHUNT_DTYPE(name, gguf_id, block_elements, block_bytes, kind) SHUNT_IF_##kind(name)
#include "ops/dtypes.def"
};
#undef SHUNT_IF_floating
#undef SHUNT_IF_quantized
#undef SHUNT_IF_integer

std::vector<std::uint32_t> columns_of(DType dtype) {
  switch (info_of(dtype).block_elements) {
    case 1:
      return {1, 33, 287, 1031};
    case 32:
      return {32, 96, 544};
    default:
      return {256, 768};
  }
}

class Bf16TilesOf : public ::testing::TestWithParam<DType> {};

TEST_P(Bf16TilesOf, SumTheProductsOfRoundedNumbers) {
  constexpr DType kX[] = {DType::F32, DType::F16, DType::BF16};
  std::uint32_t seed = 1;
  for (const Arithmetic arithmetic : {Arithmetic::bf16, Arithmetic::bf16x3})
    for (const std::uint32_t k : columns_of(GetParam()))
      for (const std::uint32_t m : {1U, 37U, 130U})
        for (const std::size_t rows : {1U, 9U, 16U, 17U, 32U, 47U, 65U}) {
          if (seed++ % 13 != 0) continue;  // enough of all combinations
          Case c({.weight_dtype = GetParam(),
                  .x_dtype = kX[seed % 5 < 3 ? 0 : seed % 5 - 2],
                  .rows = rows,
                  .k = k,
                  .m = m,
                  .arithmetic = arithmetic,
                  .shares = 1 + seed % 4},
                 seed % 2 == 0, seed);
          for_each_unit([&](const auto& multiply, const auto&) {
            c.run(multiply);
            const Distance rounded = distance(c, arithmetic);
            EXPECT_LE(rounded.error, 1e-12 * rounded.power) << rows << ' ' << k << ' ' << m;
            EXPECT_LE(rounded.worst, 1e-6) << rows << ' ' << k << ' ' << m;
          });
        }
}

TEST_P(Bf16TilesOf, AreAsExactAsTheTableSays) {
  for (const Arithmetic arithmetic : {Arithmetic::bf16, Arithmetic::bf16x3}) {
    Case c({.weight_dtype = GetParam(), .rows = 32, .k = 512, .m = 64, .arithmetic = arithmetic}, false, 4);
    for_each_unit([&](const auto& multiply, const auto&) {
      c.run(multiply);
      const Distance exact = distance(c, Arithmetic::f32);
      EXPECT_LE(exact.error, info_of(arithmetic).error * exact.power) << info_of(arithmetic).name;
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Weights, Bf16TilesOf, ::testing::ValuesIn(kWeights),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST(Bf16Tiles, TakeABatchOfTokens) {
  Case c({.weight_dtype = DType::Q4_0, .rows = kBatchRows, .k = 288, .m = 40, .shares = 2}, true, 2);
  for_each_unit([&](const auto& multiply, const auto&) {
    c.run(multiply);
    const Distance rounded = distance(c, Arithmetic::bf16);
    EXPECT_LE(rounded.error, 1e-12 * rounded.power);
  });
}

TEST(Bf16Tiles, GiveTheSameInAnyNumberOfShares) {
  for (const Arithmetic arithmetic : {Arithmetic::bf16, Arithmetic::bf16x3}) {
    Case c({.weight_dtype = DType::Q8_0, .rows = 20, .k = 288, .m = 331, .arithmetic = arithmetic}, true, 6);
    for_each_unit([&](const auto& multiply, const auto&) {
      c.product.shares = 1;
      c.run(multiply);
      const std::vector<float> whole = c.out;
      for (const std::uint32_t shares : {2U, 5U, 16U}) {
        c.product.shares = shares;
        c.run(multiply);
        EXPECT_EQ(c.out, whole) << shares;
      }
    });
  }
}

// An element that is not finite reaches all results of its row of x or of the weight, and no others.
TEST(Bf16Tiles, KeepWhatIsNoNumber) {
  constexpr std::size_t kRows = 20;
  constexpr std::uint32_t kColumns = 96;
  constexpr std::uint32_t kM = 40;
  for (const Arithmetic arithmetic : {Arithmetic::bf16, Arithmetic::bf16x3})
    for (const float odd : {kInfinity, -kInfinity, kNaN})
      for (const bool is_in_x : {true, false}) {
        Case c({.rows = kRows, .k = kColumns, .m = kM, .arithmetic = arithmetic}, false, 9);
        constexpr std::size_t kRow = 17;
        const std::size_t at = kRow * kColumns + 77;
        std::memcpy((is_in_x ? c.x : c.weight).data() + 4 * at, &odd, 4);
        const std::vector<float> others =
            test::decoded(DType::F32, is_in_x ? c.weight : c.x, (is_in_x ? kM : kRows) * kColumns);
        for_each_unit([&](const auto& multiply, const auto&) {
          c.run(multiply);
          for (std::size_t t = 0; t < kRows; ++t)
            for (std::size_t r = 0; r < kM; ++r) {
              const float actual = c.out[t * kM + r];
              ASSERT_EQ(std::isfinite(actual), (is_in_x ? t : r) != kRow) << odd << ' ' << t << ' ' << r;
              if (std::isfinite(actual) || arithmetic == Arithmetic::bf16x3) continue;
              const float expected = odd * others[(is_in_x ? r : t) * kColumns + 77];
              ASSERT_TRUE(std::isnan(odd) ? std::isnan(actual) : actual == expected) << odd << ' ' << t << ' ' << r;
            }
        });
      }
}

TEST(Bf16Tiles, TakeWhatIsTooSmallAsZeros) {
  for (const Arithmetic arithmetic : {Arithmetic::bf16, Arithmetic::bf16x3}) {
    Case c({.rows = 12, .k = 64, .m = 8, .arithmetic = arithmetic}, false, 3);
    for (std::size_t i = 0; i < c.x.size(); i += 4) {
      const float small = i % 8 == 0 ? 1e-45F : -1e-38F;
      std::memcpy(c.x.data() + i, &small, 4);
    }
    for_each_unit([&](const auto& multiply, const auto&) {
      c.run(multiply);
      for (const float v : c.out) EXPECT_EQ(v, 0);
    });
  }
}

TEST(Bf16Tiles, RoundToNearestAndTiesToEven) {
  std::vector<float> values = {0.0F,        -0.0F,     1.0F,      -1.0F,      0x1.01p0F,   0x1.03p0F,     0x1.0101p0F,
                               0x1.02FFp0F, 0x1p-126F, kInfinity, -kInfinity, 0x1.FEp127F, 0x1.FEFFp127F, 0x1.FFp127F};
  std::mt19937 random(8);
  while (values.size() % 32 != 0) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isnormal(value)) values.push_back(value);
  }
  const float nan = std::bit_cast<float>(0x7F800001U);
  for_each_unit([&](const auto&, const auto& round) {
    std::vector<std::uint16_t> rounded(values.size());
    round(values.data(), values.size(), rounded.data());
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(rounded[i], f32_to_bf16(values[i])) << values[i];
    const std::vector<float> special(32, nan);
    round(special.data(), special.size(), rounded.data());
    for (std::size_t i = 0; i < special.size(); ++i) EXPECT_TRUE(std::isnan(bf16_to_f32(rounded[i])));
  });
}

}  // namespace
}  // namespace shunt::bf16_tile_tests
#endif  // HWY_ONCE
