#include "ops/gather/gather.h"

#include <random>

#include "ops/each_target.h"
#include "ops/kernel_case.h"

namespace shunt::test::gather_tests {
namespace {

const CpuKernel& scalar() { return *cpu_family("gather").scalar; }
const CpuKernel& simd() { return *cpu_family("gather").simd; }

constexpr std::uint32_t kRows = 11;

// Random bytes. The mask on each byte keeps the F16 scales of quantized blocks below 2.
Tensor random_rows(DType dtype, std::uint32_t columns, std::uint64_t seed) {
  if (info_of(dtype).kind == DTypeKind::floating) return random_tensor(dtype, {kRows, columns}, seed);
  Tensor tensor = tensor_of(dtype, {kRows, columns});
  std::mt19937_64 random(seed);
  for (std::byte& byte : tensor.bytes) byte = static_cast<std::byte>(random() & 0x3FU);
  return tensor;
}

std::vector<double> formula(const Tensor& x, const std::vector<double>& ids) {
  const std::uint32_t columns = x.operand.shape[1];
  const std::size_t row_bytes = x.bytes.size() / kRows;
  std::vector<double> values;
  std::vector<float> row(columns);
  for (const double id : ids) {
    decode_row(x.operand.dtype, x.bytes.data() + static_cast<std::size_t>(id) * row_bytes, columns, row.data());
    values.insert(values.end(), row.begin(), row.end());
  }
  return values;
}

const std::vector<double> kIds = {3, 0, 10, 3, 7};

TEST(Gather, RowsAreThoseOfTheDecoderForEveryDType) {
  for_each_simd_target([] {
    for (const CpuKernel* kernel : {&scalar(), &simd()})
      for (std::size_t d = 0; d < dtypes().size(); ++d) {
        const DType dtype = static_cast<DType>(d);
        if (info_of(dtype).kind == DTypeKind::integer) continue;
        for (const std::uint32_t blocks : {1U, 3U, 37U})
          for (std::uint32_t threads = 1; threads <= 3; ++threads) {
            const Tensor x = random_rows(dtype, blocks * info_of(dtype).block_elements, d);
            const Tensor ids = tensor_of(DType::I32, {5}, kIds);
            const KernelCase use{Op::gather, {&x, &ids}};
            SCOPED_TRACE(use.text() + " threads " + std::to_string(threads));
            const KernelResult result = run_kernel(*kernel, use, threads);
            ASSERT_EQ(result.declined, "");
            EXPECT_EQ(result.code, 0);
            EXPECT_EQ(values_of(result.output), formula(x, kIds));
          }
      }
  });
}

TEST(Gather, StridedRowsAndIds) {
  const Tensor x = random_tensor(DType::F16, {19, kRows}, 1);
  const Tensor across = permuted(x, {1, 0});
  const Tensor pairs = tensor_of(DType::I32, {5, 2}, {3, 99, 0, 99, 10, 99, 3, 99, 7, 99});
  Tensor ids = sliced(pairs, 1, 0, 1);
  ids.operand.shape = Shape{5};
  const Tensor copied = tensor_of(DType::F32, {kRows, 19}, values_of(across));
  for_each_simd_target([&] {
    for (const CpuKernel* kernel : {&scalar(), &simd()}) {
      const KernelResult result = run_kernel(*kernel, {Op::gather, {&across, &ids}}, 2);
      EXPECT_EQ(values_of(result.output), formula(copied, kIds));
    }
  });
}

TEST(Gather, IdOutsideIsAnErrorAndOtherRowsAreWritten) {
  const Tensor x = random_rows(DType::Q8_0, 64, 1);
  for_each_simd_target([&] {
    for (const CpuKernel* kernel : {&scalar(), &simd()})
      for (const double wrong : {-1.0, 11.0, 2147483647.0, -2147483648.0})
        for (std::uint32_t threads = 1; threads <= 3; ++threads) {
          const Tensor ids = tensor_of(DType::I32, {3}, {2, wrong, 5});
          const KernelResult result = run_kernel(*kernel, {Op::gather, {&x, &ids}}, threads);
          EXPECT_EQ(result.code, kGatherIdOutOfRange) << wrong;
          const std::vector<double> values = values_of(result.output);
          const std::vector<double> expected = formula(x, {2, 5});
          for (std::size_t i = 0; i < 64; ++i) {
            EXPECT_EQ(values[i], expected[i]);
            EXPECT_EQ(values[128 + i], expected[64 + i]);
          }
        }
  });
}

TEST(Gather, IdsPastTheValidOnesAreNotLookedAt) {
  const Tensor x = random_rows(DType::F16, 50, 1);
  const Tensor ids = bucket(tensor_of(DType::I32, {4}, {2, 1, -7, 1000}));
  for_each_simd_target([&] {
    for (const CpuKernel* kernel : {&scalar(), &simd()})
      for (const std::uint32_t tokens : {0U, 1U, 2U}) {
        const KernelResult result = run_kernel(*kernel, {Op::gather, {&x, &ids}, {}, {.tokens = tokens}}, 3);
        EXPECT_EQ(result.code, 0);
        EXPECT_TRUE(rows_are_untouched(result.output, tokens));
        const std::vector<double> all = {2, 1};
        EXPECT_EQ(leading_values(result.output, tokens),
                  formula(x, {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(tokens)}));
      }
  });
}

}  // namespace
}  // namespace shunt::test::gather_tests
