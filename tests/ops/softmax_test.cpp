#include <cmath>

#include "ops/each_target.h"
#include "ops/kernel_case.h"

namespace shunt::test::softmax_tests {
namespace {

const CpuKernel& scalar() { return *cpu_family("softmax").scalar; }
const CpuKernel& simd() { return *cpu_family("softmax").simd; }

std::vector<double> formula(const Tensor& x, const Tensor* mask, double scale) {
  std::vector<double> values = values_of(x);
  const std::vector<double> masks = mask == nullptr ? std::vector<double>{0} : values_of(*mask);
  const std::size_t columns = x.operand.shape.columns();
  for (std::size_t row = 0; row < x.operand.shape.rows(); ++row) {
    double sum = 0;
    for (std::size_t i = 0; i < columns; ++i) {
      double& value = values[row * columns + i];
      value = std::exp(scale * value + masks[(row * columns + i) % masks.size()]);
      sum += value;
    }
    for (std::size_t i = 0; i < columns; ++i) values[row * columns + i] /= sum;
  }
  return values;
}

// Zeros, with some -infinity that are never in the first column.
Tensor causal_like(const Shape& shape, std::uint64_t seed) {
  std::vector<double> values = values_of(random_tensor(DType::F32, shape, seed));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = i % shape.columns() != 0 && values[i] > 1 ? -kInfinity : 0;
  return tensor_of(DType::F32, shape, values);
}

struct Inputs {
  Tensor x;
  Tensor mask;
};

std::vector<Inputs> all_inputs(DType dtype) {
  std::vector<Inputs> inputs;
  for (const Shape& shape : {Shape{1}, Shape{37}, Shape{3, 64}, Shape{2, 5, 127}, Shape{2, 2, 3, 33}, Shape{2, 5003},
                             Shape{5, 2049}, Shape{0, 16}})
    inputs.push_back({random_tensor(dtype, shape, 1, -6, 6), causal_like({shape.columns()}, 2)});
  inputs.push_back({random_tensor(dtype, {2, 3, 4, 32}, 3), causal_like({4, 32}, 4)});
  inputs.push_back({permuted(random_tensor(dtype, {40, 6}, 5), {1, 0}), random_tensor(DType::BF16, {6, 40}, 6)});
  inputs.push_back({sliced(random_tensor(dtype, {6, 100}, 7), 1, 9, 70), random_tensor(DType::F16, {70}, 8)});
  return inputs;
}

TEST(Softmax, ScalarIsTheFormula) {
  for (const Inputs& inputs : all_inputs(DType::F32)) {
    const KernelCase plain{Op::softmax, {&inputs.x}, {{Attr::scale, 0.5F}}};
    EXPECT_LE(nmse(values_of(run_kernel(scalar(), plain).output), formula(inputs.x, nullptr, 0.5)), 1e-14)
        << plain.text();
    const KernelCase masked{Op::softmax, {&inputs.x, &inputs.mask}};
    EXPECT_LE(nmse(values_of(run_kernel(scalar(), masked).output), formula(inputs.x, &inputs.mask, 1)), 1e-14)
        << masked.text();
  }
}

TEST(Softmax, SimdAgreesWithScalarOnEveryTarget) {
  for_each_simd_target([] {
    for (const DType dtype : {DType::F32, DType::F16, DType::BF16})
      for (const Inputs& inputs : all_inputs(dtype))
        for (const KernelCase& use : {KernelCase{Op::softmax, {&inputs.x}, {{Attr::scale, 1.5F}}},
                                      KernelCase{Op::softmax, {&inputs.x, &inputs.mask}}})
          for (std::uint32_t threads = 1; threads <= 3; ++threads) {
            SCOPED_TRACE(use.text() + " threads " + std::to_string(threads));
            const KernelResult reference = run_kernel(scalar(), use, threads);
            const KernelResult result = run_kernel(simd(), use, threads);
            // A 16-bit result may round the other way if the F32 value before it differs in its last bit.
            EXPECT_LE(nmse(values_of(result.output), values_of(reference.output)), dtype == DType::F32 ? 1e-12 : 1e-7);
          }
  });
}

TEST(Softmax, RowsPastTheValidOnesAreLeftAlone) {
  const Tensor x = bucket(random_tensor(DType::F32, {2, 3000}, 9));
  for_each_simd_target([&] {
    for (const CpuKernel* kernel : {&scalar(), &simd()})
      for (const std::uint32_t tokens : {0U, 1U, 2U})
        for (std::uint32_t threads = 1; threads <= 3; ++threads) {
          const KernelCase use{Op::softmax, {&x}, {}, {.tokens = tokens}};
          SCOPED_TRACE(use.text());
          const KernelResult result = run_kernel(*kernel, use, threads);
          EXPECT_TRUE(rows_are_untouched(result.output, tokens));
          std::vector<double> expected = formula(x, nullptr, 1);
          expected.resize(expected.size() / 2 * tokens);
          EXPECT_LE(nmse(leading_values(result.output, tokens), expected), 1e-12);
        }
  });
}

// One row of 3 columns, and one that threads share, on every target.
template <class Value, class Check>
void for_each_row(Value value, Check check) {
  for_each_simd_target([&] {
    for (const CpuKernel* kernel : {&scalar(), &simd()})
      for (const std::uint32_t columns : {3U, 2100U}) {
        std::vector<double> numbers;
        for (std::uint32_t i = 0; i < columns; ++i) numbers.push_back(value(i, columns));
        const Tensor x = tensor_of(DType::F32, {1, columns}, numbers);
        const std::vector<double> values = values_of(run_kernel(*kernel, {Op::softmax, {&x}}, 2).output);
        for (std::uint32_t i = 0; i < columns; ++i) check(values[i], i, columns);
      }
  });
}

TEST(Softmax, FullyMaskedRowIsZero) {
  for_each_row([](std::uint32_t, std::uint32_t) { return -kInfinity; },
               [](double value, std::uint32_t i, std::uint32_t) { EXPECT_EQ(value, 0) << i; });
}

TEST(Softmax, LargeScoresDoNotOverflow) {
  for_each_row(
      [](std::uint32_t i, std::uint32_t columns) { return i + 1 == columns ? 1e30 : -1e30; },
      [](double value, std::uint32_t i, std::uint32_t columns) { EXPECT_EQ(value, i + 1 == columns ? 1 : 0) << i; });
}

TEST(Softmax, NanSpreadsOverItsRow) {
  for_each_row([](std::uint32_t i, std::uint32_t) { return i == 1 ? kNan : 1; },
               [](double value, std::uint32_t i, std::uint32_t) { EXPECT_TRUE(std::isnan(value)) << i; });
  for_each_row([](std::uint32_t i, std::uint32_t) { return i == 1 ? kNan : -kInfinity; },
               [](double value, std::uint32_t i, std::uint32_t) { EXPECT_TRUE(std::isnan(value)) << i; });
}

}  // namespace
}  // namespace shunt::test::softmax_tests
