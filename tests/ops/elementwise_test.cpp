#include <cmath>
#include <functional>

#include "ops/each_target.h"
#include "ops/kernel_case.h"

namespace shunt::test {
namespace {

const CpuKernel& scalar() { return *cpu_family("elementwise").scalar; }
const CpuKernel& simd() { return *cpu_family("elementwise").simd; }

std::vector<Op> elementwise_ops() {
  std::vector<Op> found;
  for (std::size_t i = 0; i < ops().size(); ++i)
    if (ops()[i].op_class == OpClass::elementwise) found.push_back(static_cast<Op>(i));
  return found;
}

// What the expressions of the rows mean, written a second time.
double formula(Op op, double a, double b, double factor) {
  switch (op) {
    case Op::add:
      return a + b;
    case Op::sub:
      return a - b;
    case Op::mul:
      return a * b;
    case Op::div:
      return a / b;
    case Op::scale:
      return a * factor;
    case Op::silu:
      return a / (1 + std::exp(-a));
    case Op::swiglu:
      return a / (1 + std::exp(-a)) * b;
    default:
      ADD_FAILURE() << name_of(op) << " has no formula in this test";
      return 0;
  }
}

Attributes attributes_of(Op op) {
  if (op == Op::scale) return {{Attr::factor, -1.75F}};
  return {};
}

struct Operands {
  std::vector<Tensor> tensors;
  KernelCase use;
};

// Operands of `op`; the second, if it takes one, is `second`.
Operands operands_of(Op op, const Tensor& first, const Tensor& second) {
  Operands result;
  result.tensors = {first};
  if (info_of(op).inputs.size() == 2) result.tensors.push_back(second);
  result.use = {.op = op, .inputs = {}, .attributes = attributes_of(op), .parameters = {}};
  return result;
}

const KernelCase& bound(Operands& operands) {
  operands.use.inputs.clear();
  for (const Tensor& tensor : operands.tensors) operands.use.inputs.push_back(&tensor);
  return operands.use;
}

std::vector<double> expected_of(Op op, const Tensor& first, const Tensor& second) {
  const std::vector<double> a = values_of(first);
  const std::vector<double> b = values_of(second);
  std::vector<double> result(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) result[i] = formula(op, a[i], b[i % b.size()], -1.75);
  return result;
}

struct NamedPair {
  std::string name;
  Tensor first;
  Tensor second;
};

std::vector<NamedPair> pairs(DType first, DType second) {
  const auto tensor = [](DType dtype, const Shape& shape, std::uint64_t seed) {
    return random_tensor(dtype, shape, seed, 0.25, 3);
  };
  std::vector<NamedPair> cases;
  for (const Shape& shape : {Shape{1}, Shape{7}, Shape{3, 1}, Shape{5, 33}, Shape{2, 3, 64}, Shape{2, 3, 2, 17},
                             Shape{3, 2111}, Shape{0, 4}, Shape{4, 0}})
    cases.push_back({"equal shapes", tensor(first, shape, 1), tensor(second, shape, 2)});
  cases.push_back({"broadcast row", tensor(first, {4, 37}, 3), tensor(second, {37}, 4)});
  cases.push_back({"broadcast heads", tensor(first, {3, 5, 24}, 5), tensor(second, {5, 24}, 6)});
  cases.push_back({"broadcast scalar", tensor(first, {3, 19}, 7), tensor(second, Shape{}, 8)});
  cases.push_back(
      {"permuted first", permuted(tensor(first, {5, 3, 18}, 9), {2, 0, 1}), tensor(second, {18, 5, 3}, 10)});
  cases.push_back({"permuted second", tensor(first, {6, 40}, 11), permuted(tensor(second, {40, 6}, 12), {1, 0})});
  cases.push_back(
      {"sliced", sliced(tensor(first, {6, 80}, 13), 1, 3, 41), sliced(tensor(second, {9, 41}, 14), 0, 2, 6)});
  return cases;
}

TEST(Elementwise, ScalarIsTheFormula) {
  for (const Op op : elementwise_ops())
    for (const DType dtype : {DType::F32, DType::F16, DType::BF16})
      for (const NamedPair& pair : pairs(dtype, DType::F32)) {
        Operands operands = operands_of(op, pair.first, pair.second);
        const KernelCase& use = bound(operands);
        SCOPED_TRACE(use.text() + " " + pair.name);
        const KernelResult result = run_kernel(scalar(), use);
        ASSERT_EQ(result.declined, "");
        const std::vector<double> expected = expected_of(op, pair.first, pair.second);
        const std::vector<double> actual = values_of(result.output);
        ASSERT_EQ(actual.size(), expected.size());
        for (std::size_t i = 0; i < actual.size(); ++i) {
          std::byte rounded[4];
          store_element(dtype, rounded, 0, expected[i]);
          EXPECT_NEAR(actual[i], load_element(dtype, rounded, 0), std::abs(expected[i]) * 1e-7) << i;
        }
      }
}

TEST(Elementwise, SimdAgreesWithScalarOnEveryTarget) {
  for_each_simd_target([] {
    for (const Op op : elementwise_ops())
      for (const auto& [first, second] : {std::pair{DType::F32, DType::F32},
                                          {DType::F16, DType::F32},
                                          {DType::BF16, DType::F16},
                                          {DType::F32, DType::BF16}})
        for (const NamedPair& pair : pairs(first, second))
          for (std::uint32_t threads = 1; threads <= 3; ++threads) {
            Operands operands = operands_of(op, pair.first, pair.second);
            const KernelCase& use = bound(operands);
            SCOPED_TRACE(use.text() + " " + pair.name + " threads " + std::to_string(threads));
            const KernelResult reference = run_kernel(scalar(), use, threads);
            const KernelResult result = run_kernel(simd(), use, threads);
            ASSERT_EQ(result.declined, "");
            // A 16-bit result may round the other way where the F32 before it differs in its last bit.
            const double tolerance = first == DType::F32 ? info_of(op).tolerance : 1e-7;
            EXPECT_LE(nmse(values_of(result.output), values_of(reference.output)), tolerance);
          }
  });
}

TEST(Elementwise, RowsPastTheValidOnesAreLeftAlone) {
  for_each_simd_target([] {
    for (const CpuKernel* kernel : {&scalar(), &simd()})
      for (const Shape& shape : {Shape{9, 50}, Shape{9}, Shape{9, 2, 3}})
        for (const std::uint32_t tokens : {0U, 1U, 4U, 9U, 20U})
          for (std::uint32_t threads = 1; threads <= 3; ++threads) {
            const Tensor a = bucket(random_tensor(DType::F32, shape, 20));
            const Tensor b = random_tensor(DType::F32, shape, 21);
            const KernelCase use{Op::add, {&a, &b}, {}, {.tokens = tokens, .outputs = 3}};
            SCOPED_TRACE(use.text());
            const KernelResult result = run_kernel(*kernel, use, threads);
            const std::uint32_t valid = std::min(tokens, 9U);
            EXPECT_TRUE(rows_are_untouched(result.output, valid));
            std::vector<double> expected = expected_of(Op::add, a, b);
            expected.resize(expected.size() / 9 * valid);
            EXPECT_LE(nmse(leading_values(result.output, valid), expected), 1e-14);
          }
  });
}

TEST(Elementwise, ExtremeInputsStayWhatTheyAre) {
  const Tensor x = tensor_of(DType::F32, {6}, {kInfinity, -kInfinity, kNan, 1e38, -200, 0});
  for_each_simd_target([&] {
    for (const CpuKernel* kernel : {&scalar(), &simd()}) {
      const KernelResult result = run_kernel(*kernel, {Op::silu, {&x}, {}, {}});
      const std::vector<double> values = values_of(result.output);
      EXPECT_EQ(values[0], kInfinity);
      EXPECT_TRUE(std::isnan(values[1]));  // -infinity / infinity
      EXPECT_TRUE(std::isnan(values[2]));
      EXPECT_NEAR(values[3], 1e38, 1e31);
      EXPECT_NEAR(values[4], 0, 1e-30);
      EXPECT_EQ(values[5], 0);
    }
  });
}

TEST(Elementwise, ResultThatIsNotContiguousIsDeclined) {
  const Tensor x = random_tensor(DType::F32, {4, 6}, 1);
  const Operand* inputs[] = {&x.operand};
  const Attributes attributes;
  const Operand output = permuted(x, {1, 0}).operand;
  const OpCall call{.op = Op::silu, .attributes = &attributes, .inputs = inputs, .output = &output};
  EXPECT_EQ(scalar().supports(call), "needs a contiguous result");
  EXPECT_EQ(simd().supports(call), "needs a contiguous result");
}

}  // namespace
}  // namespace shunt::test
