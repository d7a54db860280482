#include "ops/linear/linear.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "ops/simd_targets.h"
// Must follow simd_targets.h:
#include "base/system/cpu_features.h"
#include "hwy/targets.h"
#include "ops/each_target.h"
#include "ops/integer_rounding.h"
#include "ops/kernel.h"
#include "ops/linear/row_products.h"
#include "ops/quantize/blocks.h"
#include "ops/random_elements.h"
#include "ops/rounded_factors.h"

namespace shunt::linear_tests {
namespace {

using test::Bytes;
using test::decoded;
using test::make_scratch;
using test::random_elements;
using test::Scratch;

constexpr float kCanary = -12345.0F;

struct Case {
  DType weight = DType::F32;
  DType x = DType::F32;
  std::uint32_t rows = 1;
  std::uint32_t k = 32;
  std::uint32_t m = 1;
  std::uint32_t threads = 1;
  bool residual = false;
  std::uint32_t padding = 0;          // elements between neighbouring rows of x, out and residual
  std::uint32_t valid = 0xFFFFFFFFU;  // Parameters::tokens; all rows if larger than `rows`
  std::uint32_t seed = 1;
  Numerics numerics = Numerics::exact;

  [[nodiscard]] std::string text() const {
    return fmt::format("weight {} x {} rows {} k {} m {} threads {} residual {} padding {} valid {} seed {} {}",
                       name_of(weight), name_of(x), rows, k, m, threads, residual, padding, valid, seed,
                       name_of(numerics));
  }
};

// Runs the phases of one call, one share after the other, in the scratch of another thread in each phase.
void run_phases(const CpuKernel& kernel, const OpCall& op, CpuCall call, std::uint32_t threads) {
  const CpuWork work = kernel.work(op, threads);
  alignas(16) std::array<std::byte, kMaxArgumentBytes> arguments;
  kernel.write_arguments(op, arguments);
  const Scratch shared = make_scratch(work.shared_scratch_bytes);
  std::vector<Scratch> scratch;
  for (std::uint32_t t = 0; t < threads; ++t) scratch.push_back(make_scratch(work.thread_scratch_bytes));
  call.arguments = arguments.data();
  call.shares = threads;
  call.shared_scratch = shared.get();
  for (call.phase = 0; call.phase < work.phases; ++call.phase)
    for (call.share = 0; call.share < threads; ++call.share) {
      call.thread_scratch = scratch[(call.share + call.phase) % threads].get();
      ASSERT_EQ(kernel.run(call), 0);
    }
}

// Returns how a kernel multiplies batches with few and with many valid rows.
ProductRule rule_of(const CpuKernel& kernel, const OpCall& op) {
  const LinearArgs args = linear_args(op);
  return kernel.arithmetic == nullptr ? ProductRule() : product_rule(op, linear_capacity(args), args.k);
}

Arithmetic arithmetic_of_row(const Case& c, std::uint32_t row, const ProductRule& rule) {
  const std::size_t begin = row / kBatchRows * kBatchRows;
  return rule.arithmetic(c.weight, std::min<std::size_t>(std::min(c.rows, c.valid) - begin, kBatchRows));
}

void round_groups(float most, std::size_t elements, std::span<float> row) {
  for (std::size_t i = 0; i < row.size(); i += elements)
    test::round_to_integers(most, row.subspan(i, std::min(elements, row.size() - i)));
}

// Rounds the rows of x that are multiplied in integers.
void round_rows(std::vector<float>& xs, const Case& c, const ProductRule& rule) {
  for (std::uint32_t t = 0; t < std::min(c.rows, c.valid); ++t) {
    const Arithmetic arithmetic = arithmetic_of_row(c, t, rule);
    const bool in_words = arithmetic == Arithmetic::words;
    if (!in_words && arithmetic != Arithmetic::bytes) continue;
    const std::span<float> row = std::span(xs).subspan(std::size_t{t} * (c.k + c.padding), c.k);
    if (in_words && rounds_weight(c.weight))
      round_groups(kMostFine, kFineGroup, row);
    else
      round_groups(in_words ? kMostWord : 127, in_words ? kWordBlock : kByteXGroup, row);
  }
}

// Returns the weight's rows as they are multiplied by many.
std::vector<float> rounded_weight(std::vector<float> ws, const Case& c, const ProductRule& rule) {
  if (rule.many != Arithmetic::words || !rounds_weight(c.weight)) return ws;
  for (std::uint32_t r = 0; r < c.m; ++r)
    round_groups(kMostFine, kFineGroup, std::span(ws).subspan(std::size_t{r} * c.k, c.k));
  return ws;
}

// Runs a case and compares every element of the result's storage with plain sums in double.
void check(const CpuKernel& kernel, const Case& c, double tolerance) {
  std::mt19937 random(c.seed);
  const std::uint64_t x_pitch = c.k + c.padding;
  const std::uint64_t out_pitch = c.m + c.padding;
  const Bytes x_bytes = random_elements(c.x, c.rows * x_pitch, random);
  const Bytes weight_bytes = random_elements(c.weight, std::uint64_t{c.m} * c.k, random);
  const Bytes residual_bytes = random_elements(DType::F32, c.rows * out_pitch, random);
  std::vector<float> out(c.rows * out_pitch, kCanary);

  const auto operand = [](DType dtype, std::uint32_t rows, std::uint32_t columns, std::uint64_t pitch) {
    Operand o = Operand::contiguous(dtype, Shape{rows, columns}, TensorKind::value, Extent::tokens);
    o.strides[0] = pitch;
    return o;
  };
  const Operand x = operand(c.x, c.rows, c.k, x_pitch);
  const Operand weight = Operand::contiguous(c.weight, Shape{c.m, c.k}, TensorKind::weight);
  const Operand residual = operand(DType::F32, c.rows, c.m, out_pitch);
  const Operand result = operand(DType::F32, c.rows, c.m, out_pitch);
  const Operand* operands[] = {&x, &weight, &residual};
  const Attributes none;
  const OpCall op{.op = c.residual ? Op::linear_add : Op::linear,
                  .attributes = &none,
                  .inputs = std::span(operands).first(c.residual ? 3 : 2),
                  .output = &result,
                  .numerics = c.numerics};
  ASSERT_EQ(kernel.supports(op), "");
  const std::byte* inputs[] = {x_bytes.data(), weight_bytes.data(), residual_bytes.data()};
  const Parameters parameters{.tokens = c.valid};
  CpuCall call;
  call.inputs = std::span(inputs).first(c.residual ? 3 : 2);
  call.output = reinterpret_cast<std::byte*>(out.data());
  call.parameters = &parameters;
  run_phases(kernel, op, call, c.threads);

  std::vector<float> xs = decoded(c.x, x_bytes, c.rows * x_pitch);
  const ProductRule rule = rule_of(kernel, op);
  round_rows(xs, c, rule);
  const std::vector<float> ws = decoded(c.weight, weight_bytes, std::uint64_t{c.m} * c.k);
  // The first is for few rows, the second for many.
  const test::Factors x_factors[] = {test::factors_of(xs, Arithmetic::f32), test::factors_of(xs, rule.many)};
  const test::Factors w_factors[] = {test::factors_of(ws, Arithmetic::f32),
                                     test::factors_of(rounded_weight(ws, c, rule), rule.many)};
  const std::vector<float> residuals = decoded(DType::F32, residual_bytes, c.rows * out_pitch);
  double error = 0;
  double power = 0;  // of the summands: the sums themselves may cancel
  for (std::uint32_t t = 0; t < c.rows; ++t) {
    const bool is_many = t < c.valid && arithmetic_of_row(c, t, rule) == rule.many;
    const test::Factors& w = w_factors[is_many ? 1 : 0];
    const test::Factors& x_row = x_factors[is_many ? 1 : 0];
    for (std::uint64_t r = 0; r < out_pitch; ++r) {
      const float actual = out[t * out_pitch + r];
      if (r >= c.m || t >= c.valid) {
        ASSERT_EQ(actual, kCanary) << "row " << t << " column " << r << " must stay untouched";
        continue;
      }
      double expected = c.residual ? static_cast<double>(residuals[t * out_pitch + r]) : 0;
      double magnitude = std::abs(expected);
      for (std::uint64_t i = 0; i < c.k; ++i) {
        const double product = test::product(w, r * c.k + i, x_row, t * x_pitch + i);
        expected += product;
        magnitude += std::abs(product);
        power += product * product;
      }
      ASSERT_NEAR(static_cast<double>(actual), expected, 1e-6 * magnitude) << "row " << t << " column " << r;
      error += (static_cast<double>(actual) - expected) * (static_cast<double>(actual) - expected);
    }
  }
  EXPECT_LE(error, tolerance * power);
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
      return {1, 7, 33, 256, 1031};
    case 32:
      return {32, 64, 96, 512, 1056};
    default:
      return {256, 512, 1280};
  }
}

// Calls body(kernel, name) for the scalar kernel, and for the SIMD kernel on every instruction set of this machine.
template <class Body>
void for_each_kernel(Body body) {
  body(*cpu_family("linear").scalar, std::string("scalar"));
  test::for_each_simd_target(
      [&] { body(*cpu_family("linear").simd, std::string(hwy::TargetName(hwy::SupportedTargets()))); });
}

void check_everywhere(const Case& c) {
  for_each_kernel([&](const CpuKernel& kernel, const std::string& name) {
    SCOPED_TRACE(name + ": " + c.text());
    check(kernel, c, 1e-12);
  });
}

// Does the same, and again without what no instruction set includes.
void check_on_each_processor(const Case& c) {
  check_everywhere(c);
  test::for_each_fewer_features([&] {
    SCOPED_TRACE(c.text());
    check(*cpu_family("linear").simd, c, 1e-12);
  });
}

class LinearOf : public ::testing::TestWithParam<DType> {};

TEST_P(LinearOf, AgreesWithDoubleSumsOnAwkwardShapes) {
  std::uint32_t seed = 1;
  for (const std::uint32_t k : columns_of(GetParam()))
    for (const std::uint32_t m : {1U, 5U, 97U})
      for (const std::uint32_t rows : {0U, 1U, 3U, 17U, 33U}) {
        check_everywhere({.weight = GetParam(), .rows = rows, .k = k, .m = m, .threads = 1 + seed % 3, .seed = seed});
        ++seed;
      }
}

TEST_P(LinearOf, EveryFewRowsAndEveryThreadCount) {
  const std::uint32_t k = columns_of(GetParam()).back();
  for (std::uint32_t rows = 1; rows <= 26; ++rows)
    check_everywhere({.weight = GetParam(), .rows = rows, .k = k, .m = 13, .threads = 1 + rows % 3, .seed = rows});
}

TEST_P(LinearOf, MoreRowsThanABatch) {
  check_everywhere({.weight = GetParam(), .rows = 513, .k = 256, .m = 110, .threads = 2, .residual = true, .seed = 3});
}

TEST_P(LinearOf, AddsTheResidual) {
  for (const std::uint32_t rows : {1U, 6U, 40U})
    check_everywhere(
        {.weight = GetParam(), .rows = rows, .k = 256, .m = 30, .threads = 2, .residual = true, .seed = 7});
}

TEST_P(LinearOf, RowsMayLieApartAndXMayBeHalfPrecision) {
  for (const DType x : {DType::F32, DType::F16, DType::BF16})
    for (const std::uint32_t rows : {1U, 5U, 35U})
      for (const bool residual : {false, true})
        check_everywhere({.weight = GetParam(),
                          .x = x,
                          .rows = rows,
                          .k = 256,
                          .m = 19,
                          .threads = 2,
                          .residual = residual,
                          .padding = 3,
                          .seed = rows});
}

TEST_P(LinearOf, RowsPastTheValidOnesStayUntouched) {
  for (const DType x : {DType::F32, DType::F16})
    for (const std::uint32_t valid : {0U, 1U, 2U, 7U, 31U, 63U})
      check_everywhere({.weight = GetParam(), .x = x, .rows = 64, .k = 256, .m = 9, .threads = 2, .valid = valid});
}

// The group sums of x take more scratch memory than the strips of several rows do.
TEST_P(LinearOf, VeryLongRows) {
  const Case c{.weight = GetParam(), .rows = 1, .k = 160 * 1024, .m = 2, .threads = 2, .seed = 5};
  for_each_kernel([&](const CpuKernel& kernel, const std::string& name) {
    SCOPED_TRACE(name + ": " + c.text());
    check(kernel, c, info_of(Op::linear).tolerance);
  });
}

// Integers round x alone beside quantized weights; otherwise both factors are rounded.
TEST_P(LinearOf, RoundsWhatItsArithmeticRounds) {
  const Numerics numerics = GetParam() == DType::Q8_0 ? Numerics::fast : Numerics::automatic;
  std::uint32_t seed = 1;
  for (const std::uint32_t k : columns_of(GetParam()))
    for (const std::uint32_t rows : {1U, 2U, 3U, 7U, 8U, 9U, 16U, 17U, 23U, 40U})
      for (const std::uint32_t m : {6U, 37U, 130U}) {
        check_on_each_processor({.weight = GetParam(),
                                 .x = seed % 3 == 0 ? DType::F16 : DType::F32,
                                 .rows = rows,
                                 .k = k,
                                 .m = m,
                                 .threads = 1 + seed % 3,
                                 .residual = seed % 2 == 0,
                                 .padding = seed % 5,
                                 .seed = seed,
                                 .numerics = numerics});
        ++seed;
      }
  const Case many{.weight = GetParam(),
                  .rows = 523,
                  .k = columns_of(GetParam()).back(),
                  .m = 30,
                  .threads = 2,
                  .numerics = Numerics::automatic};
  check_on_each_processor(many);
  for (const std::uint32_t valid : {0U, 3U, 8U, 9U, 15U, 17U, 47U, 48U, 515U}) {
    Case some = many;
    some.valid = valid;
    check_on_each_processor(some);
  }
}

// Little work, for emulated processors.
TEST_P(LinearOf, RoundsInTilesOfEverySize) {
  const Numerics numerics = GetParam() == DType::Q8_0 ? Numerics::fast : Numerics::automatic;
  for (const std::uint32_t rows : {9U, 17U})
    check_everywhere({.weight = GetParam(),
                      .rows = rows,
                      .k = info_of(GetParam()).block_elements == 32 ? 288U : 512U,
                      .m = 13,
                      .threads = 2,
                      .residual = true,
                      .padding = 3,
                      .seed = rows,
                      .numerics = numerics});
}

// The same for few rows and, where the format is exact enough to need them, tiles in words.
TEST_P(LinearOf, RoundsInWords) {
  for (const std::uint32_t rows : {1U, 2U, 7U, 13U})
    check_everywhere({.weight = GetParam(),
                      .x = rows == 2 ? DType::F16 : DType::F32,
                      .rows = rows,
                      .k = info_of(GetParam()).block_elements == 32 ? 288U : 512U,
                      .m = 13,
                      .threads = 1 + rows % 3,
                      .residual = rows != 7,
                      .padding = 3,
                      .seed = rows,
                      .numerics = Numerics::automatic});
}

INSTANTIATE_TEST_SUITE_P(Weights, LinearOf, ::testing::ValuesIn(kWeights),
                         [](const auto& test) { return std::string(name_of(test.param)); });

// The product of a [rows, k] and a [m, k], both packed.
std::vector<float> product(const CpuKernel& kernel, DType weight_dtype, const Bytes& weight_bytes, std::uint32_t m,
                           const std::vector<float>& xs, std::uint32_t k, Numerics numerics = Numerics::exact,
                           std::uint32_t threads = 1) {
  const auto rows = static_cast<std::uint32_t>(xs.size() / k);
  const Operand x = Operand::contiguous(DType::F32, Shape{rows, k});
  const Operand weight = Operand::contiguous(weight_dtype, Shape{m, k}, TensorKind::weight);
  const Operand result = Operand::contiguous(DType::F32, Shape{rows, m});
  const Operand* operands[] = {&x, &weight};
  const Attributes none;
  const OpCall op{.op = Op::linear, .attributes = &none, .inputs = operands, .output = &result, .numerics = numerics};
  const std::byte* inputs[] = {reinterpret_cast<const std::byte*>(xs.data()), weight_bytes.data()};
  const Parameters parameters;
  std::vector<float> out(std::size_t{rows} * m, kCanary);
  CpuCall call;
  call.inputs = inputs;
  call.output = reinterpret_cast<std::byte*>(out.data());
  call.parameters = &parameters;
  run_phases(kernel, op, call, threads);
  return out;
}

// Several weight rows are taken at a time, and bits of quants are unpacked with GFNI or without.
TEST_P(LinearOf, OneRowHasTheSameBitsForAllThreadsAndWithoutGfni) {
  const std::uint32_t k = columns_of(GetParam()).back();
  constexpr std::uint32_t m = 37;
  std::mt19937 random(7);
  const Bytes bytes = random_elements(GetParam(), std::uint64_t{m} * k, random);
  const std::vector<float> x = decoded(DType::F32, random_elements(DType::F32, k, random), k);
  for_each_kernel([&](const CpuKernel& kernel, const std::string& name) {
    const auto rounded = [&](std::uint32_t threads) {
      return product(kernel, GetParam(), bytes, m, x, k, Numerics::automatic, threads);
    };
    const std::vector<float> expected = rounded(1);
    for (const std::uint32_t threads : {2U, 3U, 5U, 9U}) EXPECT_EQ(rounded(threads), expected) << name << threads;
    CpuFeatures fewer = cpu_features();
    fewer.gfni = false;
    set_cpu_features_for_test(&fewer);
    EXPECT_EQ(rounded(2), expected) << name << " without GFNI";
    set_cpu_features_for_test(nullptr);
  });
}

TEST_P(LinearOf, OneHotRowsReadTheDecodedWeightsExactly) {
  constexpr std::uint32_t k = 512;
  constexpr std::uint32_t m = 7;
  std::mt19937 random(11);
  const Bytes bytes = random_elements(GetParam(), std::uint64_t{m} * k, random);
  const std::vector<float> weights = decoded(GetParam(), bytes, std::uint64_t{m} * k);
  for_each_kernel([&](const CpuKernel& kernel, const std::string& name) {
    for (const std::uint32_t rows : {1U, 8U, k}) {
      // Selects every element in turn, `rows` of them at a time.
      for (std::uint32_t begin = 0; begin < k; begin += rows) {
        std::vector<float> xs(std::size_t{rows} * k);
        for (std::uint32_t t = 0; t < rows; ++t) xs[std::size_t{t} * k + begin + t] = 1;
        const std::vector<float> out = product(kernel, GetParam(), bytes, m, xs, k);
        for (std::uint32_t t = 0; t < rows; ++t)
          for (std::uint32_t r = 0; r < m; ++r)
            ASSERT_EQ(out[t * m + r], weights[r * k + begin + t]) << name << " rows " << rows << " k " << begin + t;
      }
    }
  });
}

TEST(Linear, EveryF16WeightIsWidenedExactly) {
  constexpr std::uint32_t k = 16;
  Bytes bytes(std::size_t{65536} * k * 2);
  for (std::uint32_t r = 0; r < 65536; ++r) {
    const auto half = static_cast<std::uint16_t>(r);
    std::memcpy(bytes.data() + 2 * (std::size_t{r} * k + r % k), &half, 2);
  }
  for_each_kernel([&](const CpuKernel& kernel, const std::string& name) {
    const std::vector<float> out = product(kernel, DType::F16, bytes, 65536, std::vector<float>(k, 1.0F), k);
    for (std::uint32_t r = 0; r < 65536; ++r) {
      const float expected = f16_to_f32(static_cast<std::uint16_t>(r));
      ASSERT_TRUE(std::isnan(expected) ? std::isnan(out[r]) : out[r] == expected) << name << " " << r;
    }
  });
}

TEST(Linear, RoundedWhatIsNoNumberMakesItsRowSo) {
  constexpr std::uint32_t k = 256;
  constexpr std::uint32_t m = 20;
  std::mt19937 random(3);
  const auto check_kernel = [&](const CpuKernel& kernel, const std::string& name) {
    for (const auto& [dtype, rows] : {std::pair(DType::Q4_K, 12U),
                                      {DType::Q4_0, 12U},
                                      {DType::Q6_K, 12U},
                                      {DType::Q8_0, 12U},
                                      {DType::F16, 50U},
                                      {DType::Q4_K, 6U},
                                      {DType::Q8_0, 7U}}) {
      const Bytes bytes = random_elements(dtype, std::uint64_t{m} * k, random);
      const auto rounded = [&](const std::vector<float>& xs) {
        return product(kernel, dtype, bytes, m, xs, k, Numerics::automatic);
      };
      for (const float odd : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                              std::numeric_limits<float>::quiet_NaN()}) {
        std::vector<float> xs(std::size_t{rows} * k, 1.0F);
        xs[5 * k + 77] = odd;
        const std::vector<float> out = rounded(xs);
        for (std::uint32_t t = 0; t < rows; ++t)
          for (std::uint32_t r = 0; r < m; ++r)
            EXPECT_EQ(std::isfinite(out[t * m + r]), t != 5) << name << " " << odd << " row " << t;
      }
      for (const float little : {0.0F, 1e-45F, 1e-38F, 1e-31F})
        for (const float v : rounded(std::vector<float>(std::size_t{rows} * k, little)))
          EXPECT_LE(std::abs(v), 1e-26F) << name << " " << little;
    }
  };
  for_each_kernel(check_kernel);
  test::for_each_fewer_features([&] { check_kernel(*cpu_family("linear").simd, "simd"); });
}

TEST(Linear, LeadingAxesAreRowsWithStridesOfTheirOwn) {
  // x [2, 3, 2, 4] as a permuted view: axes 0 and 2 of the storage [2, 3, 2, 4] are exchanged.
  const Shape shape{2, 3, 2, 4};
  Operand x = Operand::contiguous(DType::F32, shape);
  std::swap(x.strides[0], x.strides[2]);
  const Operand weight = Operand::contiguous(DType::F32, Shape{3, 4}, TensorKind::weight);
  const Operand result = Operand::contiguous(DType::F32, Shape{2, 3, 2, 3});
  const Operand* operands[] = {&x, &weight};
  const Attributes none;
  const OpCall op{.op = Op::linear, .attributes = &none, .inputs = operands, .output = &result};
  std::vector<float> xs(48);
  std::vector<float> ws(12);
  for (std::size_t i = 0; i < xs.size(); ++i) xs[i] = static_cast<float>(i);
  for (std::size_t i = 0; i < ws.size(); ++i) ws[i] = static_cast<float>(i) - 5;
  const std::byte* inputs[] = {reinterpret_cast<const std::byte*>(xs.data()),
                               reinterpret_cast<const std::byte*>(ws.data())};
  for_each_kernel([&](const CpuKernel& kernel, const std::string& name) {
    SCOPED_TRACE(name);
    std::vector<float> out(36, kCanary);
    const Parameters parameters;
    CpuCall call;
    call.inputs = inputs;
    call.output = reinterpret_cast<std::byte*>(out.data());
    call.parameters = &parameters;
    run_phases(kernel, op, call, 2);
    for (std::size_t a = 0; a < 2; ++a)
      for (std::size_t b = 0; b < 3; ++b)
        for (std::size_t c = 0; c < 2; ++c)
          for (std::size_t r = 0; r < 3; ++r) {
            float expected = 0;
            for (std::size_t i = 0; i < 4; ++i) expected += xs[c * 24 + b * 8 + a * 4 + i] * ws[r * 4 + i];
            EXPECT_EQ(out[((a * 3 + b) * 2 + c) * 3 + r], expected) << a << b << c << r;
          }
  });
}

TEST(Linear, NoColumnsGiveTheResidual) {
  check_everywhere({.rows = 3, .k = 0, .m = 5, .residual = true});
  check_everywhere({.rows = 20, .k = 0, .m = 5, .residual = true});
  check_everywhere({.rows = 2, .k = 8, .m = 0});
  check_everywhere(
      {.weight = DType::Q4_0, .rows = 20, .k = 0, .m = 5, .residual = true, .numerics = Numerics::automatic});
}

TEST(Linear, SaysWhyItCannotRun) {
  Operand x = Operand::contiguous(DType::F32, Shape{4, 64});
  const Operand weight = Operand::contiguous(DType::Q8_0, Shape{8, 64}, TensorKind::weight);
  const Operand result = Operand::contiguous(DType::F32, Shape{4, 8});
  const Operand* operands[] = {&x, &weight};
  const Attributes none;
  const OpCall op{.op = Op::linear, .attributes = &none, .inputs = operands, .output = &result};
  EXPECT_EQ(linear_refusal(op), "");
  std::swap(x.strides[0], x.strides[1]);
  EXPECT_EQ(linear_refusal(op), "") << "the reference takes x in any way";
  EXPECT_EQ(cpu_family("linear").simd->supports(op), "linear: the elements of a row of x must be neighbours");
  x = Operand::contiguous(DType::I32, Shape{4, 64});
  EXPECT_EQ(linear_refusal(op), "linear: x must be F32, F16 or BF16, is I32");
}

}  // namespace
}  // namespace shunt::linear_tests
