#include <cmath>

#include "ops/each_target.h"
#include "ops/kernel_case.h"

namespace shunt::test::norm_tests {
namespace {

const CpuKernel& scalar() { return *cpu_family("norm").scalar; }
const CpuKernel& simd() { return *cpu_family("norm").simd; }

std::vector<double> formula(const Tensor& x, const Tensor* weight, double epsilon) {
  std::vector<double> values = values_of(x);
  const std::vector<double> weights = weight == nullptr ? std::vector<double>{1} : values_of(*weight);
  const std::size_t columns = x.operand.shape.columns();
  for (std::size_t row = 0; row < x.operand.shape.rows(); ++row) {
    double sum = 0;
    for (std::size_t i = 0; i < columns; ++i) sum += values[row * columns + i] * values[row * columns + i];
    for (std::size_t i = 0; i < columns; ++i)
      values[row * columns + i] *=
          weights[(row * columns + i) % weights.size()] / std::sqrt(sum / static_cast<double>(columns) + epsilon);
  }
  return values;
}

struct Inputs {
  Tensor x;
  Tensor weight;
};

std::vector<Inputs> all_inputs(DType dtype) {
  std::vector<Inputs> inputs;
  for (const Shape& shape : {Shape{1}, Shape{37}, Shape{1, 1}, Shape{3, 64}, Shape{2, 5, 127}, Shape{2, 2, 3, 33},
                             Shape{2, 5003}, Shape{0, 16}})
    inputs.push_back({random_tensor(dtype, shape, 1), random_tensor(DType::F32, {shape.columns()}, 2)});
  inputs.push_back({random_tensor(dtype, {3, 4, 32}, 3), random_tensor(DType::F16, {4, 32}, 4)});
  inputs.push_back({permuted(random_tensor(dtype, {40, 6}, 5), {1, 0}), random_tensor(DType::BF16, {40}, 6)});
  inputs.push_back(
      {sliced(random_tensor(dtype, {6, 100}, 7), 1, 9, 70), sliced(random_tensor(DType::F32, {90}, 8), 0, 5, 70)});
  return inputs;
}

TEST(Norm, ScalarIsTheFormula) {
  for (const Inputs& inputs : all_inputs(DType::F32)) {
    const KernelCase plain{Op::rms_norm, {&inputs.x}, {{Attr::epsilon, 0.5F}}};
    EXPECT_LE(nmse(values_of(run_kernel(scalar(), plain).output), formula(inputs.x, nullptr, 0.5)), 1e-14)
        << plain.text();
    const KernelCase weighted{Op::rms_norm_mul, {&inputs.x, &inputs.weight}};
    EXPECT_LE(nmse(values_of(run_kernel(scalar(), weighted).output),
                   formula(inputs.x, &inputs.weight, static_cast<double>(1e-5F))),
              1e-14)
        << weighted.text();
  }
}

TEST(Norm, SimdAgreesWithScalarOnEveryTarget) {
  for_each_simd_target([] {
    for (const DType dtype : {DType::F32, DType::F16, DType::BF16})
      for (const Inputs& inputs : all_inputs(dtype))
        for (const KernelCase& use :
             {KernelCase{Op::rms_norm, {&inputs.x}}, KernelCase{Op::rms_norm_mul, {&inputs.x, &inputs.weight}}})
          for (std::uint32_t threads = 1; threads <= 3; ++threads) {
            SCOPED_TRACE(use.text() + " threads " + std::to_string(threads));
            const KernelResult reference = run_kernel(scalar(), use, threads);
            const KernelResult result = run_kernel(simd(), use, threads);
            // A 16-bit result may round the other way if the F32 value before it differs in its last bit.
            EXPECT_LE(nmse(values_of(result.output), values_of(reference.output)), dtype == DType::F32 ? 1e-12 : 1e-7);
          }
  });
}

TEST(Norm, RowsPastTheValidOnesAreLeftAlone) {
  const Tensor x = bucket(random_tensor(DType::F32, {7, 3, 20}, 9), Extent::outputs);
  const Tensor weight = random_tensor(DType::F32, {20}, 10);
  for_each_simd_target([&] {
    for (const CpuKernel* kernel : {&scalar(), &simd()})
      for (const std::uint32_t outputs : {0U, 1U, 5U, 7U})
        for (std::uint32_t threads = 1; threads <= 3; ++threads) {
          const KernelCase use{Op::rms_norm_mul, {&x, &weight}, {}, {.tokens = 2, .outputs = outputs}};
          SCOPED_TRACE(use.text());
          const KernelResult result = run_kernel(*kernel, use, threads);
          EXPECT_TRUE(rows_are_untouched(result.output, outputs));
          std::vector<double> expected = formula(x, &weight, static_cast<double>(1e-5F));
          expected.resize(expected.size() / 7 * outputs);
          EXPECT_LE(nmse(leading_values(result.output, outputs), expected), 1e-12);
        }
  });
}

TEST(Norm, RowOfZerosStaysZeroAndNanSpreadsOverItsRow) {
  const Tensor x = tensor_of(DType::F32, {2, 3}, {0, 0, 0, 1, kNan, 2});
  for_each_simd_target([&] {
    for (const CpuKernel* kernel : {&scalar(), &simd()}) {
      const std::vector<double> values = values_of(run_kernel(*kernel, {Op::rms_norm, {&x}}).output);
      for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(values[i], 0);
      for (std::size_t i = 3; i < 6; ++i) EXPECT_TRUE(std::isnan(values[i]));
    }
  });
}

TEST(Norm, BucketOfSingleElementsIsDeclined) {
  const Tensor x = bucket(random_tensor(DType::F32, {7}, 9));
  EXPECT_EQ(run_kernel(scalar(), {Op::rms_norm, {&x}}).declined,
            "needs rows; its only axis is a bucket of single elements");
}

}  // namespace
}  // namespace shunt::test::norm_tests
