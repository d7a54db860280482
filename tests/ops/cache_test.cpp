#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/each_target.h"
#include "ops/kernel_case.h"

namespace shunt::test::cache_tests {
namespace {

const CpuKernel& scalar() { return *cpu_family("cache").scalar; }
const CpuKernel& simd() { return *cpu_family("cache").simd; }

constexpr std::uint32_t kPages = 7;
constexpr std::uint32_t kPageTokens = 4;
constexpr std::uint32_t kHeads = 3;

struct Step {
  Tensor state;
  Tensor x;
  Tensor positions;
  Tensor sequences;
  Tensor pages;

  [[nodiscard]] KernelCase use(Op op, const Attributes& attributes = {}) const {
    return {op, {&state, &x, &positions, &sequences, &pages}, attributes};
  }
};

// Eight tokens of two sequences of up to three pages; three tokens have no slot.
Step step_of(DType x_dtype, DType state_dtype, std::uint32_t head_dim) {
  constexpr double kLargest = std::numeric_limits<std::int32_t>::max();
  Step step{.state = random_tensor(state_dtype, {kPages, kPageTokens, kHeads, head_dim}, 1),
            .x = random_tensor(x_dtype, {10, kHeads, head_dim}, 2),
            .positions = tensor_of(DType::I32, {10}, {0, 5, 11, 3, -1, 12, 4, 6, kLargest, 9}),
            .sequences = tensor_of(DType::I32, {10}, {0, 0, 0, 1, 0, 1, 1, -1, 0, 2}),
            .pages = tensor_of(DType::I32, {2, 3}, {6, 2, 0, 3, kPages, -5})};
  step.state.operand.kind = TensorKind::state;
  return step;
}

// The slot of each token of step_of(); negative: none.
constexpr int kSlots[10] = {6 * 4, 2 * 4 + 1, 0 * 4 + 3, 3 * 4 + 3, -1, -1, -1, -1, -1, -1};

std::vector<double> rotated(const Tensor& x, const Tensor& positions, std::uint32_t halves) {
  const Attributes attributes{{Attr::rotary_halves, halves}};
  const KernelCase use{Op::rotary, {&x, &positions}, attributes};
  return values_of(run_kernel(*cpu_family("rotary").scalar, use).output);
}

std::vector<double> expected_state(const Step& step, const std::vector<double>& rows) {
  std::vector<double> state = values_of(step.state);
  const std::size_t row = std::size_t{step.x.operand.shape[1]} * step.x.operand.shape[2];
  for (std::size_t token = 0; token < 10; ++token) {
    if (kSlots[token] < 0) continue;
    const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(token * row);
    const Tensor rounded = tensor_of(step.state.operand.dtype, {static_cast<std::uint32_t>(row)},
                                     std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(row)));
    std::ranges::copy(values_of(rounded), state.begin() + kSlots[token] * static_cast<std::ptrdiff_t>(row));
  }
  return state;
}

std::vector<std::uint32_t> head_dims(DType state) {
  if (info_of(state).kind == DTypeKind::quantized) return {32, 64, 96};
  return {2, 16, 34, 80};
}

TEST(Cache, TokensGoToTheirSlotsAndPaddingNowhere) {
  for_each_simd_target([] {
    for (const CpuKernel* kernel : {&scalar(), &simd()})
      for (const DType state : cache_dtypes())
        for (const DType x : {DType::F32, DType::F16})
          for (const std::uint32_t head_dim : head_dims(state))
            for (std::uint32_t threads = 1; threads <= 3; ++threads) {
              const Step step = step_of(x, state, head_dim);
              const KernelCase use = step.use(Op::cache_write);
              SCOPED_TRACE(use.text());
              const KernelResult result = run_kernel(*kernel, use, threads);
              ASSERT_EQ(result.declined, "");
              EXPECT_EQ(values_of(result.output), expected_state(step, values_of(step.x)));
            }
  });
}

TEST(Cache, RotatedTokensAreThoseOfTheRotaryOp) {
  for_each_simd_target([] {
    for (const CpuKernel* kernel : {&scalar(), &simd()})
      for (const DType state : cache_dtypes())
        for (const std::uint32_t halves : {0U, 1U})
          for (const std::uint32_t head_dim : head_dims(state))
            for (std::uint32_t threads = 1; threads <= 3; ++threads) {
              const Step step = step_of(DType::F32, state, head_dim);
              const KernelCase use = step.use(Op::rotary_cache_write, {{Attr::rotary_halves, halves}});
              SCOPED_TRACE(use.text());
              const KernelResult result = run_kernel(*kernel, use, threads);
              ASSERT_EQ(result.declined, "");
              const std::vector<double> expected = expected_state(step, rotated(step.x, step.positions, halves));
              // Where the two rotations differ in the last bit, a quant may fall to either side.
              const double tolerance = state == DType::F32    ? info_of(Op::rotary_cache_write).tolerance
                                       : state == DType::Q8_0 ? 1e-6
                                                              : 1e-7;
              EXPECT_LE(nmse(values_of(result.output), expected), tolerance);
            }
  });
}

// They must show in what is computed from the cache.
TEST(Cache, ABlockWithANumberThatIsNotFiniteHasNoOther) {
  for_each_simd_target([] {
    for (const CpuKernel* kernel : {&scalar(), &simd()})
      for (const double value : {kNan, kInfinity, -kInfinity, 1e38})
        for (const std::size_t at : {std::size_t{0}, std::size_t{13}, std::size_t{31}}) {
          Step step = step_of(DType::F32, DType::Q8_0, 64);
          store_element(DType::F32, step.x.bytes.data(), at, value);
          const std::vector<double> state = values_of(run_kernel(*kernel, step.use(Op::cache_write)).output);
          const std::size_t row = std::size_t{kSlots[0]} * kHeads * 64;
          for (std::size_t i = 0; i < 64; ++i)
            EXPECT_EQ(std::isfinite(state[row + i]), i >= 32) << value << " at " << at << ", element " << i;
        }
  });
}

TEST(Cache, StridedTokensAreWrittenAlike) {
  for_each_simd_target([] {
    for (const CpuKernel* kernel : {&scalar(), &simd()})
      for (const Op op : {Op::cache_write, Op::rotary_cache_write}) {
        Step step = step_of(DType::F32, DType::F32, 24);
        const KernelResult contiguous = run_kernel(*kernel, step.use(op));
        Tensor columns = tensor_of(DType::F32, {24, 10, kHeads});
        const std::vector<double> values = values_of(step.x);
        for (std::size_t i = 0; i < values.size(); ++i)
          store_element(DType::F32, columns.bytes.data(), i % 24 * 10 * kHeads + i / 24, values[i]);
        step.x = permuted(columns, {1, 2, 0});
        EXPECT_EQ(run_kernel(*kernel, step.use(op), 2).output.bytes, contiguous.output.bytes);
      }
  });
}

TEST(Cache, TokensPastTheValidOnesAreIgnored) {
  for_each_simd_target([] {
    for (const CpuKernel* kernel : {&scalar(), &simd()})
      for (const std::uint32_t tokens : {0U, 1U, 3U}) {
        Step step = step_of(DType::F32, DType::F16, 16);
        step.x = bucket(step.x);
        KernelCase use = step.use(Op::cache_write);
        use.parameters.tokens = tokens;
        const KernelResult result = run_kernel(*kernel, use, 2);
        std::vector<double> positions = values_of(step.positions);
        for (std::size_t i = tokens; i < positions.size(); ++i) positions[i] = -1;
        step.x = bucket(step.x, Extent::fixed);
        step.positions = tensor_of(DType::I32, {10}, positions);
        EXPECT_EQ(result.output.bytes, run_kernel(scalar(), step.use(Op::cache_write)).output.bytes) << tokens;
      }
  });
}

}  // namespace
}  // namespace shunt::test::cache_tests
