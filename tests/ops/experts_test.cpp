#include "ops/experts/experts.h"

#include <algorithm>
#include <cmath>

#include "ops/arithmetic.h"
#include "ops/each_target.h"
#include "ops/integer_rounding.h"
#include "ops/kernel_case.h"
#include "ops/linear/row_products.h"
#include "ops/quantize/encode.h"
#include "ops/rounded_factors.h"

namespace shunt::test::experts_tests {
namespace {

const CpuKernel& scalar() { return *cpu_family("experts").scalar; }
const CpuKernel& simd() { return *cpu_family("experts").simd; }

struct Setting {
  DType weight = DType::F32;
  std::uint32_t tokens = 1;
  std::uint32_t used = 2;
  std::uint32_t experts = 4;
  std::uint32_t rows = 5;
  std::uint32_t columns = 64;
  bool row_for_each = false;
  bool slots = false;
  bool bias = false;
};

struct Inputs {
  Tensor x;
  Tensor weight;
  Tensor ids;
  Tensor slots;
  Tensor bias;
  bool has_slots = false;
  bool has_bias = false;

  [[nodiscard]] KernelCase use() const {
    return {Op::linear_experts,
            {&x, &weight, &ids, has_slots ? &slots : nullptr, has_bias ? &bias : nullptr},
            {},
            {.tokens = 3, .outputs = 2}};
  }
};

Tensor random_weight(DType dtype, const Shape& shape, std::uint64_t seed) {
  if (info_of(dtype).kind == DTypeKind::floating) return random_tensor(dtype, shape, seed);
  const Tensor numbers = random_tensor(DType::F32, shape, seed);
  Tensor weight = tensor_of(dtype, shape);
  const std::size_t row_bytes = weight.bytes.size() / shape.rows();
  for (std::uint64_t row = 0; row < shape.rows(); ++row)
    encode_row(dtype, reinterpret_cast<const float*>(numbers.bytes.data()) + row * shape.columns(), shape.columns(),
               weight.bytes.data() + row * row_bytes);
  return weight;
}

// Experts are used unevenly: most tokens use the first. With slots, every third expert is not held.
Inputs inputs_of(const Setting& setting, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> ids;
  for (std::uint32_t i = 0; i < setting.tokens * setting.used; ++i)
    ids.push_back(i % 3 == 0 ? 0 : static_cast<double>(random() % setting.experts));
  std::vector<double> slots;
  double held = 0;
  for (std::uint32_t expert = 0; expert < setting.experts; ++expert) slots.push_back(expert % 3 == 1 ? -1 : held++);
  std::ranges::reverse(slots);
  const auto matrices = setting.slots ? static_cast<std::uint32_t>(held) : setting.experts;
  return {.x = random_tensor(DType::F32, {setting.tokens, setting.row_for_each ? setting.used : 1, setting.columns},
                             seed + 1),
          .weight = random_weight(setting.weight, {matrices, setting.rows, setting.columns}, seed + 2),
          .ids = tensor_of(DType::I32, {setting.tokens, setting.used}, ids),
          .slots = tensor_of(DType::I32, {setting.experts}, slots),
          .bias = random_tensor(DType::F32, {matrices, setting.rows}, seed + 3),
          .has_slots = setting.slots,
          .has_bias = setting.bias};
}

// Returns the matrix of each use; -1: none.
std::vector<int> slots_of(const Inputs& inputs) {
  const std::vector<double> slots = values_of(inputs.slots);
  std::vector<int> result;
  for (const double id : values_of(inputs.ids))
    result.push_back(static_cast<int>(id < 0 || !inputs.has_slots ? id : slots[static_cast<std::size_t>(id)]));
  return result;
}

struct Element {
  double sum = 0;
  double magnitude = 0;  // of the summands: the sum itself may cancel
};

// Rounds neighbours of a row of x as products in integers do.
void round_row(Arithmetic arithmetic, std::span<float> row) {
  if (arithmetic != Arithmetic::bytes && arithmetic != Arithmetic::words) return;
  const bool in_words = arithmetic == Arithmetic::words;
  const std::size_t group = in_words ? kWordBlock : kByteXGroup;
  for (std::size_t i = 0; i < row.size(); i += group)
    round_to_integers(in_words ? kMostWord : 127, row.subspan(i, std::min(group, row.size() - i)));
}

// Returns the result if each use is multiplied in its arithmetic.
std::vector<Element> elements_of(const Inputs& inputs, const std::vector<Arithmetic>& arithmetics) {
  const Shape& shape = inputs.weight.operand.shape;
  const std::uint32_t columns = shape[2];
  const std::vector<double> x = values_of(inputs.x);
  const std::vector<double> bias = values_of(inputs.bias);
  const std::vector<int> slots = slots_of(inputs);
  std::vector<float> weight(shape.elements());
  decode_row(inputs.weight.operand.dtype, inputs.weight.bytes.data(), shape.elements(), weight.data());
  const Shape& x_shape = inputs.x.operand.shape;
  const bool has_row_for_each = x_shape.rank() == 3 && x_shape[1] != 1;
  std::vector<Element> result(slots.size() * shape[1]);
  for (std::size_t use = 0; use < slots.size(); ++use) {
    if (slots[use] < 0) continue;
    const auto from =
        x.begin() + static_cast<std::ptrdiff_t>((has_row_for_each ? use : use / inputs.ids.operand.shape[1]) * columns);
    std::vector<float> row(from, from + columns);
    round_row(arithmetics[use], row);
    const Factors x_factors = factors_of(row, arithmetics[use]);
    for (std::size_t i = 0; i < shape[1]; ++i) {
      const std::size_t matrix_row = static_cast<std::size_t>(slots[use]) * shape[1] + i;
      const Factors factors = factors_of(std::span(weight).subspan(matrix_row * columns, columns), arithmetics[use]);
      const double added = inputs.has_bias ? bias[matrix_row] : 0;
      Element element{added, std::abs(added)};
      for (std::size_t column = 0; column < columns; ++column) {
        const double one = product(factors, column, x_factors, column);
        element.sum += one;
        element.magnitude += std::abs(one);
      }
      result[use * shape[1] + i] = element;
    }
  }
  return result;
}

std::vector<double> formula(const Inputs& inputs) {
  std::vector<double> sums;
  for (const Element& element : elements_of(inputs, std::vector(inputs.ids.operand.shape.elements(), Arithmetic::f32)))
    sums.push_back(element.sum);
  return sums;
}

std::vector<Setting> settings() {
  return {{},
          {.tokens = 1, .used = 4, .experts = 16, .rows = 33, .slots = true, .bias = true},
          {.tokens = 7, .used = 3, .experts = 5, .rows = 17, .columns = 257, .row_for_each = true},
          {.tokens = 40, .used = 2, .experts = 6, .rows = 37, .columns = 96, .slots = true, .bias = true},
          {.tokens = 300, .used = 2, .experts = 3, .rows = 20, .columns = 64, .row_for_each = true, .bias = true},
          {.tokens = 620, .used = 1, .experts = 1, .rows = 14, .columns = 32},
          {.tokens = 33, .used = 1, .experts = 40, .rows = 1, .columns = 3, .slots = true},
          {.tokens = 0, .used = 2}};
}

TEST(Experts, ScalarIsTheFormula) {
  for (Setting setting : settings())
    for (const DType weight : {DType::F32, DType::F16, DType::Q8_0}) {
      if (setting.columns % info_of(weight).block_elements != 0) continue;
      setting.weight = weight;
      const Inputs inputs = inputs_of(setting, 5);
      const KernelResult result = run_kernel(scalar(), inputs.use(), 3);
      ASSERT_EQ(result.declined, "");
      EXPECT_LE(nmse(values_of(result.output), formula(inputs)), 1e-13) << inputs.use().text();
    }
}

TEST(Experts, SimdIsTheFormulaOnEveryTarget) {
  for_each_simd_target([] {
    for (Setting setting : settings())
      for (const DType weight : {DType::F32, DType::BF16, DType::Q4_0}) {
        if (setting.columns % info_of(weight).block_elements != 0) continue;
        setting.weight = weight;
        const Inputs inputs = inputs_of(setting, 6);
        const std::vector<double> expected = formula(inputs);
        for (const std::uint32_t threads : {1U, 3U}) {
          SCOPED_TRACE(inputs.use().text() + " threads " + std::to_string(threads));
          const KernelResult result = run_kernel(simd(), inputs.use(), threads);
          ASSERT_EQ(result.declined, "");
          EXPECT_LE(nmse(values_of(result.output), expected), info_of(Op::linear_experts).tolerance);
        }
      }
  });
}

// Divides each row by the root of its mean square and multiplies it by `norm`.
Tensor normalized(const Tensor& x, const std::vector<double>& norm, double epsilon) {
  std::vector<double> values = values_of(x);
  const std::size_t columns = norm.size();
  for (std::size_t row = 0; row < values.size(); row += columns) {
    double squares = 0;
    for (std::size_t i = 0; i < columns; ++i) squares += values[row + i] * values[row + i];
    const double root = std::sqrt(squares / static_cast<double>(columns) + epsilon);
    for (std::size_t i = 0; i < columns; ++i) values[row + i] *= norm[i] / root;
  }
  return tensor_of(DType::F32, x.operand.shape, values);
}

TEST(Experts, SwigluGatesTheProductWithUp) {
  for (Setting setting : settings()) {
    if (setting.slots || setting.bias || setting.columns % 32 != 0) continue;
    for (const DType weight : {DType::F32, DType::Q8_0})
      for (const bool has_norm : {false, true}) {
        setting.weight = weight;
        Inputs gate = inputs_of(setting, 5);
        const Tensor x = gate.x;
        const Tensor norm = random_tensor(DType::F32, {setting.columns}, 12);
        if (has_norm) gate.x = normalized(x, values_of(norm), 0.5);
        Inputs up = gate;
        up.weight = random_weight(weight, gate.weight.operand.shape, 11);
        std::vector<double> expected = formula(gate);
        const std::vector<double> second = formula(up);
        for (std::size_t i = 0; i < expected.size(); ++i) expected[i] *= second[i] / (1 + std::exp(-expected[i]));
        KernelCase use{Op::experts_swiglu, {&x, &gate.weight, &gate.ids, &up.weight}};
        if (has_norm) {
          use.op = Op::rms_norm_experts_swiglu;
          use.inputs.push_back(&norm);
          use.attributes.set(Attr::epsilon, 0.5F);
        }
        const KernelResult result = run_kernel(scalar(), use, 3);
        ASSERT_EQ(result.declined, "");
        EXPECT_LE(nmse(values_of(result.output), expected), 1e-13) << use.text();
        EXPECT_EQ(
            run_kernel(simd(), use).declined,
            std::string(name_of(use.op)) +
                ": the kernel multiplies by one weight only; linear_experts and swiglu do that one after the other");
      }
  }
}

TEST(Experts, RowsOfXNeedNoAxisForExperts) {
  Inputs inputs = inputs_of({.tokens = 7, .used = 2}, 13);
  const std::vector<std::byte> expected = run_kernel(scalar(), inputs.use()).output.bytes;
  inputs.x = tensor_of(DType::F32, {7, 64}, values_of(inputs.x));
  for_each_simd_target([&] {
    for (const CpuKernel* kernel : {&scalar(), &simd()}) {
      const KernelResult result = run_kernel(*kernel, inputs.use());
      ASSERT_EQ(result.declined, "");
      EXPECT_LE(nmse(values_of(result.output), formula(inputs)), 1e-10);
    }
  });
  EXPECT_EQ(run_kernel(scalar(), inputs.use()).output.bytes, expected);
}

constexpr DType kQuantized[] = {
#define SHUNT_IF_floating(name)
#define SHUNT_IF_quantized(name) DType::name,
#define SHUNT_IF_integer(name)
#define SHUNT_DTYPE(name, gguf_id, block_elements, block_bytes, kind) SHUNT_IF_##kind(name)
#include "ops/dtypes.def"
};
#undef SHUNT_IF_floating
#undef SHUNT_IF_quantized
#undef SHUNT_IF_integer

// Returns a case that may round whatever the fastest arithmetic rounds.
KernelCase in_fewer_bits(const Inputs& inputs) {
  KernelCase use = inputs.use();
  use.numerics = Numerics::fast;
  return use;
}

ProductRule rule_of(const KernelCase& use) {
  const BoundCase bound(use);
  return product_rule(bound.call(), use.inputs[2]->operand.shape[0], use.inputs[0]->operand.shape.columns());
}

// Five of six experts are held. One of them has as many uses as the dot kernel takes beside bytes, one has one more,
// one has none, one has one, and one has all others but those of unknown experts and of the one that is not held.
Inputs uneven_inputs(const Setting& setting, std::uint64_t seed) {
  Inputs inputs = inputs_of(setting, seed);
  constexpr std::uint32_t kExperts = 6;
  const std::uint32_t uses = setting.tokens * setting.used;
  std::vector<double> ids(kDotRowsBesideBytes, 0);
  ids.insert(ids.end(), kDotRowsBesideBytes + 1, 1);
  ids.insert(ids.end(), {3, 5, 5, -1});
  ids.resize(uses, 4);
  std::shuffle(ids.begin(), ids.end(), std::mt19937_64(seed));
  inputs.ids = tensor_of(DType::I32, {setting.tokens, setting.used}, ids);
  inputs.weight = random_weight(setting.weight, {kExperts - 1, setting.rows, setting.columns}, seed + 2);
  inputs.bias = random_tensor(DType::F32, {kExperts - 1, setting.rows}, seed + 3);
  inputs.slots = tensor_of(DType::I32, {kExperts}, {3, 0, 2, 4, 1, -1});
  inputs.has_slots = true;
  return inputs;
}

// Returns how each use of a quantized weight is multiplied if those of tokens before `valid` count: the uses of a
// matrix together, a batch at a time.
std::vector<Arithmetic> arithmetics_of(const KernelCase& use, const Inputs& inputs, std::uint32_t valid) {
  const ProductRule rule = rule_of(use);
  const std::vector<int> slots = slots_of(inputs);
  const std::size_t uses = std::size_t{valid} * inputs.ids.operand.shape[1];
  std::vector<Arithmetic> result(slots.size(), Arithmetic::f32);
  for (std::size_t i = 0; i < uses; ++i) {
    const auto begin = slots.begin();
    const auto before = static_cast<std::size_t>(std::count(begin, begin + static_cast<std::ptrdiff_t>(i), slots[i]));
    const auto all = static_cast<std::size_t>(std::count(begin, begin + static_cast<std::ptrdiff_t>(uses), slots[i]));
    const std::size_t first = before / kBatchRows * kBatchRows;
    const bool is_alone = inputs.ids.operand.shape[0] == 1;
    result[i] =
        rule.arithmetic(inputs.weight.operand.dtype, is_alone ? 1 : std::min<std::size_t>(all - first, kBatchRows));
  }
  return result;
}

void expect_elements(const std::vector<double>& actual, const std::vector<Element>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i].sum, 1e-6 * expected[i].magnitude) << "element " << i;
}

// Compares every element with double sums, and the results of all numbers of threads with each other.
void check_in_fewer_bits(const Inputs& inputs) {
  const KernelCase use = in_fewer_bits(inputs);
  const std::uint32_t tokens = inputs.ids.operand.shape[0];
  const auto check = [&] {
    SCOPED_TRACE(use.text());
    const KernelResult result = run_kernel(simd(), use);
    ASSERT_EQ(result.declined, "");
    expect_elements(values_of(result.output), elements_of(inputs, arithmetics_of(use, inputs, tokens)));
    for (const std::uint32_t threads : {3U, 17U})
      EXPECT_EQ(run_kernel(simd(), use, threads).output.bytes, result.output.bytes) << threads << " threads";
  };
  for_each_simd_target(check);
  for_each_fewer_features(check);
}

TEST(Experts, InFewerBitsRoundAsUsesAreMany) {
  std::uint64_t seed = 20;
  for (const DType weight : kQuantized)
    for (const bool row_for_each : {false, true}) {
      const std::uint32_t columns = info_of(weight).block_elements == 32 ? 288 : 512;
      const Setting setting{.weight = weight, .used = 2, .columns = columns, .row_for_each = row_for_each};
      Setting few = setting;
      few.tokens = 30;
      few.rows = 101;
      few.bias = row_for_each;
      check_in_fewer_bits(uneven_inputs(few, ++seed));
      Setting many = setting;  // more uses of one expert than a batch
      many.tokens = 280;
      many.rows = 7;
      check_in_fewer_bits(uneven_inputs(many, ++seed));
    }
}

TEST(Experts, InFewerBitsTakeAllUsesOfOneExpert) {
  for (const std::uint32_t tokens : {1U, 8U, 9U, 10U})
    check_in_fewer_bits(
        inputs_of({.weight = DType::Q4_0, .tokens = tokens, .used = 1, .experts = 1, .rows = 40, .columns = 32}, 31));
}

// Words of eight rows with 32 columns take more room than these rows in F32, and no multiple of a cache line.
TEST(Experts, SeveralExpertsWithManyUsesOfFewColumns) {
  check_in_fewer_bits(
      inputs_of({.weight = DType::Q4_0, .tokens = 8, .used = 12, .experts = 2, .rows = 40, .columns = 32}, 35));
  check_in_fewer_bits(
      inputs_of({.weight = DType::Q8_0, .tokens = 90, .used = 1, .experts = 2, .rows = 40, .columns = 32}, 36));
}

TEST(Experts, InFewerBitsOnlyValidTokensCount) {
  Inputs inputs = uneven_inputs({.weight = DType::Q4_1, .tokens = 40, .used = 2, .rows = 9, .columns = 64}, 32);
  inputs.x = bucket(inputs.x);
  KernelCase use = in_fewer_bits(inputs);
  for_each_simd_target([&] {
    for (const std::uint32_t valid : {0U, 1U, 5U, 12U, 40U}) {
      use.parameters.tokens = valid;
      SCOPED_TRACE(use.text());
      std::vector<Element> expected = elements_of(inputs, arithmetics_of(use, inputs, valid));
      expected.resize(std::size_t{valid} * 2 * 9);
      const KernelResult result = run_kernel(simd(), use, 3);
      EXPECT_TRUE(rows_are_untouched(result.output, valid));
      expect_elements(leading_values(result.output, valid), expected);
    }
  });
}

TEST(Experts, InFewerBitsWhatIsNoNumberMakesTheRowsOfItsTokenSo) {
  const Inputs inputs =
      inputs_of({.weight = DType::Q4_K, .tokens = 40, .used = 2, .experts = 3, .rows = 20, .columns = 256}, 33);
  for (const double odd : {kInfinity, -kInfinity, kNan}) {
    Inputs changed = inputs;
    std::vector<double> x = values_of(inputs.x);
    x[7 * 256 + 100] = odd;
    changed.x = tensor_of(DType::F32, inputs.x.operand.shape, x);
    for_each_simd_target([&] {
      const std::vector<double> result = values_of(run_kernel(simd(), in_fewer_bits(changed), 2).output);
      for (std::size_t i = 0; i < result.size(); ++i)
        EXPECT_EQ(std::isfinite(result[i]), i / (std::size_t{2} * 20) != 7) << odd << " element " << i;
    });
  }
}

TEST(Experts, MultiplyAsLinearDoes) {
  for_each_simd_target([] {
    for (const DType weight : kQuantized)
      for (const Numerics numerics : {Numerics::exact, Numerics::automatic, Numerics::fast})
        for (const std::uint32_t tokens : {1U, 8U, 9U, 40U}) {
          Inputs inputs = inputs_of({.weight = weight, .tokens = tokens, .columns = 256}, 34);
          inputs.weight.operand.kind = TensorKind::weight;
          KernelCase use = inputs.use();
          use.numerics = numerics;
          const Tensor x = tensor_of(DType::F32, {tokens, 256});
          const Tensor matrix = tensor_of(weight, {5, 256}, TensorKind::weight);
          const KernelCase product{.op = Op::linear, .inputs = {&x, &matrix}, .numerics = numerics};
          const CpuKernel& linear = *cpu_family("linear").simd;
          EXPECT_EQ(simd().arithmetic(BoundCase(use).call()), linear.arithmetic(BoundCase(product).call()))
              << use.text();
        }
  });
}

TEST(Experts, UnknownExpertsGiveZeros) {
  Inputs inputs = inputs_of({.tokens = 40, .rows = 16, .bias = true}, 7);
  std::vector<double> ids = values_of(inputs.ids);
  for (std::size_t i = 0; i < ids.size(); i += 5) ids[i] = -1;
  inputs.ids = tensor_of(DType::I32, {40, 2}, ids);
  const std::vector<double> expected = formula(inputs);
  for (std::size_t i = 5; i < ids.size(); i += 10) ids[i] = 4;  // valid: 0 .. 3
  inputs.ids = tensor_of(DType::I32, {40, 2}, ids);
  for_each_simd_target([&] {
    for (const CpuKernel* kernel : {&scalar(), &simd()})
      EXPECT_LE(nmse(values_of(run_kernel(*kernel, inputs.use(), 2).output), expected), 1e-10);
  });
}

TEST(Experts, TokensPastTheValidOnesAreLeftAlone) {
  Inputs inputs = inputs_of({.tokens = 32, .used = 3, .rows = 9, .slots = true}, 8);
  inputs.x = bucket(inputs.x);
  const std::vector<double> expected = formula(inputs);
  for_each_simd_target([&] {
    for (const CpuKernel* kernel : {&scalar(), &simd()})
      for (const std::uint32_t tokens : {0U, 1U, 5U, 32U})
        for (const std::uint32_t threads : {1U, 3U}) {
          KernelCase use = inputs.use();
          use.parameters.tokens = tokens;
          SCOPED_TRACE(use.text());
          const KernelResult result = run_kernel(*kernel, use, threads);
          EXPECT_TRUE(rows_are_untouched(result.output, tokens));
          std::vector<double> first = expected;
          first.resize(std::size_t{tokens} * 3 * 9);
          EXPECT_LE(nmse(leading_values(result.output, tokens), first), 1e-10);
        }
  });
}

TEST(Experts, StridedOperandsAreReadAlike) {
  const Inputs plain = inputs_of({.tokens = 30, .used = 2, .rows = 8, .row_for_each = true, .bias = true}, 9);
  Inputs strided = plain;
  const std::vector<double> x = values_of(plain.x);
  strided.x = tensor_of(DType::F32, {2, 30, 64});
  for (std::size_t i = 0; i < x.size(); ++i)
    store_element(DType::F32, strided.x.bytes.data(), (i / 64 % 2 * 30 + i / 128) * 64 + i % 64, x[i]);
  strided.x = permuted(strided.x, {1, 0, 2});
  const std::vector<double> ids = values_of(plain.ids);
  strided.ids = tensor_of(DType::I32, {2, 30});
  for (std::size_t i = 0; i < ids.size(); ++i)
    store_element(DType::I32, strided.ids.bytes.data(), i % 2 * 30 + i / 2, ids[i]);
  strided.ids = permuted(strided.ids, {1, 0});
  for_each_simd_target([&] {
    for (const CpuKernel* kernel : {&scalar(), &simd()})
      EXPECT_EQ(run_kernel(*kernel, strided.use(), 2).output.bytes, run_kernel(*kernel, plain.use(), 2).output.bytes);
  });
}

TEST(Experts, ColumnsThatAreNotNeighboursAreForTheReference) {
  Inputs inputs = inputs_of({.tokens = 4, .used = 1}, 10);
  inputs.x = permuted(random_tensor(DType::F32, {4, 64, 1}, 1), {0, 2, 1});
  EXPECT_EQ(run_kernel(simd(), inputs.use()).declined, "");
  inputs.x = permuted(random_tensor(DType::F32, {64, 1, 4}, 1), {2, 1, 0});
  EXPECT_EQ(run_kernel(simd(), inputs.use()).declined, "linear_experts: the elements of a row of x must be neighbours");
  EXPECT_LE(nmse(values_of(run_kernel(scalar(), inputs.use()).output), formula(inputs)), 1e-13);
}

TEST(Experts, OperandsThatDoNotFitAreErrors) {
  const Operand x = Operand::contiguous(DType::F32, Shape{4, 3, 64});
  const Operand weight = Operand::contiguous(DType::F32, Shape{4, 5, 64});
  const Operand ids = Operand::contiguous(DType::I32, Shape{4, 2});
  const Operand* inputs[] = {&x, &weight, &ids};
  const auto result = infer(Op::linear_experts, inputs, {});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message,
            "linear_experts: x F32[4, 3, 64] must have the tokens of ids I32[4, 2], and a row for all or for each of "
            "its experts");
}

}  // namespace
}  // namespace shunt::test::experts_tests
