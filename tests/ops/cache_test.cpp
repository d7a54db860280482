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
    for (std::size_t i = 0; i < row; ++i) {
      std::byte rounded[4];
      store_element(step.state.operand.dtype, rounded, 0, rows[token * row + i]);
      state[static_cast<std::size_t>(kSlots[token]) * row + i] = load_element(step.state.operand.dtype, rounded, 0);
    }
  }
  return state;
}

TEST(Cache, TokensGoToTheirSlotsAndPaddingNowhere) {
  for_each_simd_target([] {
    for (const CpuKernel* kernel : {&scalar(), &simd()})
      for (const DType state : {DType::F32, DType::F16, DType::BF16})
        for (const DType x : {DType::F32, DType::F16})
          for (const std::uint32_t head_dim : {2U, 16U, 34U, 80U})
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
      for (const DType state : {DType::F32, DType::F16, DType::BF16})
        for (const std::uint32_t halves : {0U, 1U})
          for (const std::uint32_t head_dim : {2U, 16U, 34U, 80U})
            for (std::uint32_t threads = 1; threads <= 3; ++threads) {
              const Step step = step_of(DType::F32, state, head_dim);
              const KernelCase use = step.use(Op::rotary_cache_write, {{Attr::rotary_halves, halves}});
              SCOPED_TRACE(use.text());
              const KernelResult result = run_kernel(*kernel, use, threads);
              ASSERT_EQ(result.declined, "");
              const std::vector<double> expected = expected_state(step, rotated(step.x, step.positions, halves));
              const double tolerance = state == DType::F32 ? info_of(Op::rotary_cache_write).tolerance : 1e-7;
              EXPECT_LE(nmse(values_of(result.output), expected), tolerance);
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
