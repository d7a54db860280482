#include <cmath>

#include "ops/each_target.h"
#include "ops/kernel_case.h"

namespace shunt::test::layer_norm_tests {
namespace {

const CpuKernel& scalar() { return *cpu_family("layer_norm").scalar; }
const CpuKernel& simd() { return *cpu_family("layer_norm").simd; }

TEST(LayerNorm, SubtractsTheMeanOfEachRow) {
  for_each_simd_target([&] {
    for (const DType dtype : {DType::F32, DType::F16, DType::BF16})
      for (const Shape& shape : {Shape{1, 1}, Shape{5, 3}, Shape{3, 64}, Shape{2, 3, 2111}})
        for (const CpuKernel* kernel : {&scalar(), &simd()})
          for (std::uint32_t threads = 1; threads <= 3; ++threads) {
            // Far from zero, so that the mean matters.
            const Tensor x = random_tensor(dtype, shape, 31, 1, 5);
            std::vector<double> expected = values_of(x);
            const std::size_t columns = shape.columns();
            for (std::size_t begin = 0; begin < expected.size(); begin += columns) {
              double mean = 0;
              for (std::size_t i = 0; i < columns; ++i) mean += expected[begin + i] / static_cast<double>(columns);
              double variance = 0;
              for (std::size_t i = 0; i < columns; ++i)
                variance += std::pow(expected[begin + i] - mean, 2) / static_cast<double>(columns);
              for (std::size_t i = 0; i < columns; ++i)
                expected[begin + i] = (expected[begin + i] - mean) / std::sqrt(variance + static_cast<double>(1e-3F));
            }
            const KernelCase use{Op::layer_norm, {&x}, {{Attr::epsilon, 1e-3F}}};
            SCOPED_TRACE(use.text());
            const double tolerance = dtype == DType::F32 ? 1e-12 : dtype == DType::F16 ? 1e-6 : 4e-5;
            EXPECT_LE(nmse(values_of(run_kernel(*kernel, use, threads).output), expected), tolerance);
          }
    const Tensor turned = permuted(random_tensor(DType::F32, {33, 4}, 32), {1, 0});
    EXPECT_LE(nmse(values_of(run_kernel(simd(), {Op::layer_norm, {&turned}}).output),
                   values_of(run_kernel(scalar(), {Op::layer_norm, {&turned}}).output)),
              1e-12);
  });
}

TEST(LayerNorm, RowsPastTheValidOnesAreLeftAloneAndNanSpreadsOverItsRow) {
  const Tensor x = bucket(tensor_of(DType::F32, {3, 2}, {1, 3, kNan, 2, 5, 5}));
  for_each_simd_target([&] {
    for (const CpuKernel* kernel : {&scalar(), &simd()})
      for (const std::uint32_t tokens : {0U, 1U, 3U}) {
        const KernelResult result = run_kernel(*kernel, {Op::layer_norm, {&x}, {}, {.tokens = tokens}}, 2);
        EXPECT_TRUE(rows_are_untouched(result.output, tokens));
        const std::vector<double> found = leading_values(result.output, tokens);
        if (tokens < 3) continue;
        EXPECT_NEAR(found[1], 1, 1e-5);
        EXPECT_TRUE(std::isnan(found[2]) && std::isnan(found[3]));
        EXPECT_EQ(found[4], 0);
      }
  });
}

}  // namespace
}  // namespace shunt::test::layer_norm_tests
