#include <algorithm>
#include <cmath>

#include "ops/each_target.h"
#include "ops/kernel_case.h"
#include "sanitized.h"

namespace shunt::test::elementwise_tests {
namespace {

const CpuKernel& scalar() { return *cpu_family("elementwise").scalar; }
const CpuKernel& simd() { return *cpu_family("elementwise").simd; }

std::vector<Op> elementwise_ops() {
  std::vector<Op> found;
  for (std::size_t i = 0; i < ops().size(); ++i)
    if (ops()[i].op_class == OpClass::elementwise) found.push_back(static_cast<Op>(i));
  return found;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double gelu(double x) {
  constexpr double kPi = 3.14159265358979323846;
  return x / 2 * (1 + std::tanh(std::sqrt(2 / kPi) * (x + 0.044715 * x * x * x)));
}

constexpr double kFactor = -1.75;
constexpr double kCap = 1.5;
constexpr double kLow = -0.75;
constexpr double kHigh = 2.25;
constexpr double kLimit = 1.25;
constexpr double kAlpha = 1.75;

// The meaning of the rows' expressions, written independently.
double formula(Op op, double a, double b) {
  switch (op) {
    case Op::neg:
      return -a;
    case Op::abs:
      return std::abs(a);
    case Op::square:
      return a * a;
    case Op::reciprocal:
      return 1 / a;
    case Op::sqrt:
      return std::sqrt(a);
    case Op::exp:
      return std::exp(a);
    case Op::log:
      return std::log(a);
    case Op::sin:
      return std::sin(a);
    case Op::cos:
      return std::cos(a);
    case Op::tanh:
      return std::tanh(a);
    case Op::sigmoid:
      return sigmoid(a);
    case Op::softplus:
      return std::log1p(std::exp(a));
    case Op::relu:
      return a > 0 ? a : 0;
    case Op::gelu:
      return gelu(a);
    case Op::erf:
      return std::erf(a);
    case Op::gelu_erf:
      return a * std::erfc(-a / std::sqrt(2.0)) / 2;
    case Op::soft_cap:
      return kCap * std::tanh(a / kCap);
    case Op::clamp:
      return std::clamp(a, kLow, kHigh);
    case Op::maximum:
      return std::max(a, b);
    case Op::minimum:
      return std::min(a, b);
    case Op::swiglu_oai: {
      const double gate = std::min(a, kLimit);
      return gate * sigmoid(kAlpha * gate) * (std::clamp(b, -kLimit, kLimit) + 1);
    }
    case Op::geglu:
      return gelu(a) * b;
    case Op::add:
      return a + b;
    case Op::sub:
      return a - b;
    case Op::mul:
      return a * b;
    case Op::div:
      return a / b;
    case Op::scale:
      return a * kFactor;
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
  const std::pair<Attr, double> known[] = {{Attr::factor, kFactor}, {Attr::cap, kCap},     {Attr::low, kLow},
                                           {Attr::high, kHigh},     {Attr::limit, kLimit}, {Attr::alpha, kAlpha}};
  Attributes attributes;
  for (const auto& [attr, value] : known)
    if (std::ranges::find(info_of(op).attributes, attr) != info_of(op).attributes.end())
      attributes.set(attr, static_cast<float>(value));
  return attributes;
}

// The smallest operand for which the formula is a number.
double least(Op op) { return op == Op::log || op == Op::sqrt ? 0.25 : -3; }

struct Operands {
  std::vector<Tensor> tensors;
  KernelCase use;
};

// Returns the operands of `op`; a second one, if needed, is `second`.
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
  for (std::size_t i = 0; i < a.size(); ++i) result[i] = formula(op, a[i], b[i % b.size()]);
  return result;
}

struct NamedPair {
  std::string name;
  Tensor first;
  Tensor second;
};

std::vector<NamedPair> pairs(DType first, DType second, double low) {
  const auto tensor = [low](DType dtype, const Shape& shape, std::uint64_t seed) {
    return random_tensor(dtype, shape, seed, low, 3);
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
      for (const NamedPair& pair : pairs(dtype, DType::F32, least(op))) {
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
          // Literals in expressions are rounded to F32, which may round a 16-bit result the other way.
          const double step = dtype == DType::F32 ? 4e-7 : dtype == DType::F16 ? 1e-3 : 8e-3;
          EXPECT_NEAR(actual[i], load_element(dtype, rounded, 0), std::abs(expected[i]) * step + 1e-12) << i;
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
        for (const NamedPair& pair : pairs(first, second, least(op)))
          for (std::uint32_t threads = test::kSanitized ? 3 : 1; threads <= 3; ++threads) {
            Operands operands = operands_of(op, pair.first, pair.second);
            const KernelCase& use = bound(operands);
            SCOPED_TRACE(use.text() + " " + pair.name + " threads " + std::to_string(threads));
            const KernelResult reference = run_kernel(scalar(), use, threads);
            const KernelResult result = run_kernel(simd(), use, threads);
            ASSERT_EQ(result.declined, "");
            // A 16-bit result may round the other way if the F32 value before it differs in its last bit.
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

// NaN propagates, even where a comparison could choose the other operand.
TEST(Elementwise, NanIsNeverDropped) {
  const Tensor numbers = tensor_of(DType::F32, {17}, std::vector<double>(17, 0.5));
  std::vector<double> values(17, 0.5);
  values[3] = values[16] = kNan;
  const Tensor some = tensor_of(DType::F32, {17}, values);
  for_each_simd_target([&] {
    for (const Op op : elementwise_ops())
      for (const CpuKernel* kernel : {&scalar(), &simd()})
        for (const bool in_second : {false, true}) {
          if (in_second && info_of(op).inputs.size() < 2) continue;
          Operands operands = operands_of(op, in_second ? numbers : some, in_second ? some : numbers);
          const std::vector<double> found = values_of(run_kernel(*kernel, bound(operands)).output);
          for (std::size_t i = 0; i < found.size(); ++i)
            EXPECT_EQ(std::isnan(found[i]), i == 3 || i == 16) << name_of(op) << " element " << i;
        }
  });
}

TEST(Elementwise, FunctionsAtTheEndsOfTheirRange) {
  struct End {
    Op op;
    double x;
    double value;
  };
  const End ends[] = {{Op::log, 0, -kInfinity},
                      {Op::log, kInfinity, kInfinity},
                      {Op::log, -1, kNan},
                      {Op::log, 1e-40, std::log(1e-40)},
                      {Op::sqrt, -1, kNan},
                      {Op::sqrt, kInfinity, kInfinity},
                      {Op::sin, kInfinity, kNan},
                      {Op::cos, -kInfinity, kNan},
                      {Op::sin, 1e6, std::sin(1e6)},
                      {Op::cos, 1e6, std::cos(1e6)},
                      {Op::exp, 1000, kInfinity},
                      {Op::exp, -1000, 0},
                      {Op::softplus, 100, 100},
                      {Op::softplus, -200, 0},
                      {Op::sigmoid, 200, 1},
                      {Op::sigmoid, -200, 0},
                      {Op::gelu, 1e30, 1e30},
                      {Op::gelu, -1e30, 0},
                      {Op::erf, 1e30, 1},
                      {Op::erf, -1e30, -1},
                      {Op::gelu_erf, 1e30, 1e30},
                      {Op::gelu_erf, -1e30, 0},
                      {Op::reciprocal, 0, kInfinity},
                      {Op::soft_cap, kInfinity, kCap},
                      {Op::clamp, -kInfinity, kLow},
                      {Op::clamp, kInfinity, kHigh},
                      {Op::relu, -kInfinity, 0},
                      {Op::relu, kInfinity, kInfinity}};
  for_each_simd_target([&] {
    for (const CpuKernel* kernel : {&scalar(), &simd()})
      for (const End& end : ends) {
        const Tensor x = tensor_of(DType::F32, {1}, {end.x});
        Operands operands = operands_of(end.op, x, x);
        const double value = values_of(run_kernel(*kernel, bound(operands)).output)[0];
        const double distance = std::isinf(end.value) ? 0 : std::abs(end.value) * 1e-5 + 1e-30;
        const bool same = value == end.value || (std::isnan(value) && std::isnan(end.value));
        EXPECT_TRUE(same || std::abs(value - end.value) <= distance)
            << name_of(end.op) << " of " << end.x << " is " << value << ", not " << end.value;
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
}  // namespace shunt::test::elementwise_tests
