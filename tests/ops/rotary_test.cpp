#include <cmath>

#include "ops/each_target.h"
#include "ops/kernel_case.h"

namespace shunt::test::rotary_tests {
namespace {

const CpuKernel& scalar() { return *cpu_family("rotary").scalar; }
const CpuKernel& simd() { return *cpu_family("rotary").simd; }

Tensor positions_of(std::uint32_t tokens, int step) {
  std::vector<double> values;
  for (std::uint32_t i = 0; i < tokens; ++i) values.push_back((i * 7919 * static_cast<unsigned>(step)) % 131072);
  return tensor_of(DType::I32, {tokens}, values);
}

std::vector<double> formula(const Tensor& x, const Tensor& positions, const Tensor* factors,
                            const Attributes& attributes) {
  std::vector<double> values = values_of(x);
  const std::vector<double> position = values_of(positions);
  const std::size_t heads = x.operand.shape[1];
  const std::size_t head_dim = x.operand.shape[2];
  const std::size_t dims = attributes.u32(Attr::rotary_dims) == 0 ? head_dim : attributes.u32(Attr::rotary_dims);
  for (std::size_t row = 0; row < x.operand.shape.rows(); ++row)
    for (std::size_t i = 0; i < dims / 2; ++i) {
      const double factor = factors == nullptr ? 1 : values_of(*factors)[i];
      const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(dims);
      const double base = static_cast<double>(attributes.f32(Attr::rotary_base));
      const double angle = position[row / heads] * std::pow(base, exponent) / factor;
      const bool halves = attributes.u32(Attr::rotary_halves) == 1;
      double& a = values[row * head_dim + (halves ? i : 2 * i)];
      double& b = values[row * head_dim + (halves ? i + dims / 2 : 2 * i + 1)];
      const double old_a = a;
      a = old_a * std::cos(angle) - b * std::sin(angle);
      b = old_a * std::sin(angle) + b * std::cos(angle);
    }
  return values;
}

struct Setting {
  Shape shape;  // of x
  std::uint32_t dims;
  float base;
  int step;
};

const Setting kSettings[] = {{{1, 1, 2}, 0, 10000, 1},    {{3, 2, 64}, 0, 10000, 1},  {{5, 3, 128}, 0, 500000, 3},
                             {{4, 2, 80}, 32, 10000, 1},  {{2, 3, 33}, 30, 10000, 5}, {{7, 1, 34}, 0, 1e6F, 1},
                             {{2, 2, 96}, 94, 10000, 11}, {{0, 2, 16}, 0, 10000, 1}};

template <class Body>
void for_each_case(DType dtype, Body body) {
  for (const Setting& setting : kSettings)
    for (const std::uint32_t halves : {0U, 1U})
      for (const bool with_factors : {false, true})
        for (const bool strided : {false, true}) {
          const Shape& shape = setting.shape;
          const Tensor x = strided ? permuted(random_tensor(dtype, {shape[1], shape[2], shape[0]}, 1), {2, 0, 1})
                                   : random_tensor(dtype, shape, 1);
          const Tensor positions = positions_of(shape[0], setting.step);
          const std::uint32_t pairs = (setting.dims == 0 ? shape[2] : setting.dims) / 2;
          const Tensor factors = random_tensor(DType::F32, {pairs}, 2, 0.5, 4);
          const Attributes attributes{
              {Attr::rotary_dims, setting.dims}, {Attr::rotary_base, setting.base}, {Attr::rotary_halves, halves}};
          body(KernelCase{Op::rotary, {&x, &positions, with_factors ? &factors : nullptr}, attributes});
        }
}

TEST(Rotary, ScalarIsTheFormula) {
  for_each_case(DType::F32, [](const KernelCase& use) {
    EXPECT_LE(nmse(values_of(run_kernel(scalar(), use).output),
                   formula(*use.inputs[0], *use.inputs[1], use.inputs[2], use.attributes)),
              1e-14)
        << use.text();
  });
}

TEST(Rotary, SimdAgreesWithScalarOnEveryTarget) {
  for_each_simd_target([] {
    for (const DType dtype : {DType::F32, DType::F16, DType::BF16})
      for_each_case(dtype, [&](const KernelCase& use) {
        for (std::uint32_t threads = 1; threads <= 3; ++threads) {
          SCOPED_TRACE(use.text() + " threads " + std::to_string(threads));
          const KernelResult reference = run_kernel(scalar(), use, threads);
          const KernelResult result = run_kernel(simd(), use, threads);
          // A 16-bit result may round the other way if the F32 value before it differs in its last bits.
          EXPECT_LE(nmse(values_of(result.output), values_of(reference.output)), dtype == DType::F32 ? 1e-11 : 1e-7);
        }
      });
  });
}

TEST(Rotary, TokensPastTheValidOnesAreLeftAlone) {
  const Tensor x = bucket(random_tensor(DType::F32, {6, 2, 32}, 1));
  const Tensor positions = bucket(positions_of(6, 1));
  for_each_simd_target([&] {
    for (const CpuKernel* kernel : {&scalar(), &simd()})
      for (const std::uint32_t tokens : {0U, 1U, 5U, 6U})
        for (std::uint32_t threads = 1; threads <= 3; ++threads) {
          const KernelCase use{Op::rotary, {&x, &positions}, {}, {.tokens = tokens}};
          const KernelResult result = run_kernel(*kernel, use, threads);
          EXPECT_TRUE(rows_are_untouched(result.output, tokens)) << use.text();
          std::vector<double> expected = formula(x, positions, nullptr, {});
          expected.resize(expected.size() / 6 * tokens);
          EXPECT_LE(nmse(leading_values(result.output, tokens), expected), 1e-11) << use.text();
        }
  });
}

}  // namespace
}  // namespace shunt::test::rotary_tests
