// Every elementwise row, from its expression. One invocation computes one word of the result.
#include "ops/elementwise/elementwise_args.h"
#include "ops/expand.h"

#define Arguments ElementwiseArgs
#include "ops/kernel.glsl"

SHUNT_INPUT(3, input_0)
SHUNT_INPUT(4, input_1)
SHUNT_INPUT(5, input_2)
SHUNT_INPUT(6, input_3)

// The prelude of the expressions; the rest is GLSL's own.
float erf(float x) {
  // Abramowitz and Stegun 7.1.26 is too coarse: a series near zero, a continued fraction beyond.
  float size = abs(x);
  if (size < 2.0) {
    float term = size;
    float sum = size;
    for (int n = 1; n < 40; ++n) {
      term *= -size * size / float(n);
      sum += term / float(2 * n + 1);
    }
    return sign(x) * 1.1283791670955126 * sum;
  }
  float tail = 0.0;
  for (int n = 30; n >= 1; --n) tail = float(n) * 0.5 / (size + tail);
  return sign(x) * (1.0 - exp(-size * size) * 0.5641895835477563 / (size + tail));
}
float select(float condition, float chosen, float other) { return condition > 0.0 ? chosen : other; }

#define SHUNT_ENTRIES(...) __VA_ARGS__
#define SHUNT_TAKE_OPERAND(name) float name = operand[at++];
#define SHUNT_TAKE_ATTRIBUTE(name)                 \
  float name = args.attributes[at >> 2u][at & 3u]; \
  ++at;
#define SHUNT_ELEMENTWISE(name, inputs, attributes, tolerance, expression) \
  float row_##name(float operand[4]) {                                     \
    uint at = 0u;                                                          \
    SHUNT_EACH(SHUNT_TAKE_OPERAND, SHUNT_ENTRIES inputs)                   \
    at = 0u;                                                               \
    SHUNT_EACH(SHUNT_TAKE_ATTRIBUTE, SHUNT_ENTRIES attributes)             \
    return expression;                                                     \
  }
#include "ops/ops.def"

// Rows are numbered as in the enum Op.
const uint kFirstRow = uint(__COUNTER__) + 1u;
#define SHUNT_NUMBER(name) const uint op_##name = uint(__COUNTER__) - kFirstRow;
#define SHUNT_OP(name, inputs, required, attributes, shape_rule, cost_rule, tolerance, family) SHUNT_NUMBER(name)
#define SHUNT_ELEMENTWISE(name, inputs, attributes, tolerance, expression) SHUNT_NUMBER(name)
#define SHUNT_LAYOUT_OP(name, inputs, attributes, shape_rule) SHUNT_NUMBER(name)
#include "ops/ops.def"

float element(uint index) {
  uint row = index / args.x.extents.w;
  uint column = index % args.x.extents.w;
  float operand[4];
  for (uint k = 0u; k < 4u; ++k) {
    operand[k] = 0.0;
    if (k >= args.operands) continue;
    uint at = row_offset(args.x.extents, args.strides[k], row) + column * args.strides[k].w;
    uint dtype = args.dtypes[0][k];
    uint offset = byte_offset(k + 1u);
    if (k == 0u) operand[k] = input_0_element(dtype, offset, at);
    if (k == 1u) operand[k] = input_1_element(dtype, offset, at);
    if (k == 2u) operand[k] = input_2_element(dtype, offset, at);
    if (k == 3u) operand[k] = input_3_element(dtype, offset, at);
  }
#define SHUNT_ELEMENTWISE(name, inputs, attributes, tolerance, expression) \
  if (args.op == op_##name) return row_##name(operand);
#include "ops/ops.def"
  return 0.0;
}

void main() {
  uint end = valid_row_count(args.x) * args.x.extents.w;
  uint first = invocation_index() * per_word(args.x.dtype);
  if (first >= end) return;
  float second = is_half(args.x.dtype) && first + 1u < end ? element(first + 1u) : 0.0;
  store(args.x.dtype, first, end, vec2(element(first), second));
}
