// The expressions of every elementwise row of ops.def.
#pragma once

#include "ops/elementwise/elementwise_args.h"

#include "ops/elementwise/expressions.h"
#include "ops/kernel.cuh"

namespace shunt {
namespace kernel_math::expressions {

#define SHUNT_VALUE float
#define SHUNT_ELEMENTWISE(...) SHUNT_ELEMENTWISE_FUNCTION(__VA_ARGS__)
#include "ops/ops.def"
#undef SHUNT_VALUE

}  // namespace kernel_math::expressions

namespace {

// Rows are numbered as in the enum Op.
namespace row {
enum : std::uint32_t {
#define SHUNT_OP(name, inputs, required, attributes, rule, tolerance, family) name,
#define SHUNT_ELEMENTWISE(name, inputs, attributes, tolerance, expression) name,
#define SHUNT_LAYOUT_OP(name, inputs, attributes, rule) name,
#include "ops/ops.def"
};
}  // namespace row

SHUNT_FUNCTION float value_of(std::uint32_t op, const float* operand, const float* attribute) {
  switch (op) {
#define SHUNT_ELEMENTWISE(name, inputs, attributes, tolerance, expression) \
  case row::name:                                                          \
    return kernel_math::expressions::row_##name(operand, attribute);
#include "ops/ops.def"
    default:
      return 0.0F;
  }
}

}  // namespace
}  // namespace shunt
