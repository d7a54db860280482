// Choices of kernels, by the shapes for which they were measured.
#include "ops/kernel_choice.h"

#include <gtest/gtest.h>

namespace shunt {
namespace {

constexpr KernelCandidate kKernels[] = {{.name = "rows"}, {.name = "tiles", .arithmetic = Arithmetic::halves}};

// A product of `rows` rows by a weight of 64 x 64.
struct Product {
  explicit Product(std::uint32_t rows) : x(Operand::contiguous(DType::F32, {rows, 64})), result(x) {}
  [[nodiscard]] OpCall call() const {
    return {.op = Op::linear, .attributes = &none, .inputs = inputs, .output = &result};
  }
  [[nodiscard]] KernelChoice by(std::string kernel) const {
    return {.cost = info_of(Op::linear).rule->cost(call()), .kernel = std::move(kernel)};
  }

  Operand x;
  Operand weight = Operand::contiguous(DType::F16, {64, 64}, TensorKind::weight);
  Operand result;
  Attributes none;
  const Operand* inputs[2] = {&x, &weight};
};

std::optional<std::size_t> chosen(const KernelChoices& choices, std::uint32_t rows) {
  const Product product(rows);
  return measured_choice(choices, product.call(), kKernels);
}

TEST(KernelChoice, IsThatOfTheNearestShape) {
  const Product eight(8);
  const Product many(32);
  const std::string kind = choice_kind(eight.call(), kKernels);
  EXPECT_EQ(kind, "linear F32 F16 -> F32 in halves");
  const KernelChoices choices = {{kind, {eight.by("tiles"), many.by("rows")}}};
  EXPECT_EQ(chosen(choices, 8), 1U);
  EXPECT_EQ(chosen(choices, 10), 1U);
  EXPECT_EQ(chosen(choices, 24), 0U);
  EXPECT_EQ(chosen(choices, 32), 0U);
}

TEST(KernelChoice, IsLeftToTheDeviceWhereNothingNearWasMeasured) {
  const Product eight(8);
  const std::string kind = choice_kind(eight.call(), kKernels);
  EXPECT_EQ(chosen({}, 8), std::nullopt);
  EXPECT_EQ(chosen({{kind, {}}}, 8), std::nullopt);
  EXPECT_EQ(chosen({{kind, {eight.by("tiles")}}}, 3), std::nullopt);
  EXPECT_EQ(chosen({{kind, {eight.by("tiles")}}}, 17), std::nullopt);
  EXPECT_EQ(chosen({{"linear F32 F16 -> F32", {eight.by("tiles")}}}, 8), std::nullopt) << "of exact numerics";
  EXPECT_EQ(chosen({{kind, {eight.by("removed")}}}, 8), std::nullopt);
  EXPECT_EQ(chosen({{kind, {eight.by("")}}}, 8), std::nullopt);
}

}  // namespace
}  // namespace shunt
