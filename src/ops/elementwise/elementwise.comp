// Computes every elementwise row of ops.def from its expression. One invocation computes one word of the result.
#include "ops/elementwise/elementwise_args.h"
#include "ops/expand.h"

#define Arguments ElementwiseArgs
#include "ops/kernel.glsl"

#include "ops/order.glsl"
#include "ops/tanh.glsl"
#include "ops/words.glsl"

SHUNT_INPUT(3, input_0)
SHUNT_INPUT(4, input_1)
SHUNT_INPUT(5, input_2)
SHUNT_INPUT(6, input_3)

// The prelude of the expressions, as in kernel_math.cuh. GLSL's own functions are not precise enough, or leave NaN
// undefined.
// Compilers turn the last line into their own min or max, which may drop a NaN; only numbers reach it.
float lesser(float a, float b) {
  if (!is_number(a)) return a;
  if (!is_number(b)) return b;
  return b < a ? b : a;
}
float larger(float a, float b) {
  if (!is_number(a)) return a;
  if (!is_number(b)) return b;
  return a < b ? b : a;
}
float exp_of(float x) { return is_number(x) ? exp(x) : x; }
float select(float condition, float chosen, float other) { return condition > 0.0 ? chosen : other; }

float sine(float x, int quarters) {
  // Built from bits, since compilers fold x - x to zero.
  uint bits = floatBitsToUint(x);
  if (!(abs(x) < 1e9)) return (bits & 0x7F800000u) == 0x7F800000u ? uintBitsToFloat(bits | 0x7FC00000u) : 0.0;
  float scaled = x * 0.636619772;
  int n = int(scaled + (scaled < 0.0 ? -0.5 : 0.5));
  float whole = float(n);
  // The last bit is 0 already. Clearing it stops compilers from merging the three parts of pi / 2 into one number.
  float most = uintBitsToFloat(floatBitsToUint(whole * 1.5703125) & ~1u);
  float r = ((x - most) - whole * 4.83751297e-4) - whole * 7.54978942e-8;
  float square = r * r;
  int quadrant = n + quarters;
  float even = ((square / 362880.0 - 1.0 / 5040.0) * square + 1.0 / 120.0) * square - 1.0 / 6.0;
  even = even * square * r + r;
  float odd = ((square / -3628800.0 + 1.0 / 40320.0) * square - 1.0 / 720.0) * square + 1.0 / 24.0;
  odd = (odd * square - 0.5) * square + 1.0;
  float value = (quadrant & 1) == 0 ? even : odd;
  return (quadrant & 2) == 0 ? value : -value;
}

// NaN and minus infinity are built from the bits of x: as constants they are errors in WGSL.
float log_of(float x) {
  uint bits = floatBitsToUint(x);
  // Negative or NaN. Compares bits, since a comparison of floats may take NaN for positive.
  if (bits > 0x7F800000u && bits != 0x80000000u) return uintBitsToFloat(bits | 0x7FC00000u);
  if (x == 0.0) return uintBitsToFloat(bits | 0xFF800000u);
  if (bits == 0x7F800000u) return x;
  int n = int(bits - 0x3F3504F3u) >> 23;
  float m = uintBitsToFloat(bits - (uint(n) << 23u));
  float count = float(n);
  float s = (m - 1.0) / (m + 1.0);
  float square = s * s;
  float sum = ((square * (2.0 / 9.0) + 2.0 / 7.0) * square + 2.0 / 5.0) * square + 2.0 / 3.0;
  return count * 0.693145751953125 + (count * 1.42860682e-6 + (sum * square * s + (s + s)));
}

float erf(float x) {
  float size = abs(x);
  float value = 1.0;
  if (size < 2.0) {
    float term = size;
    float sum = size;
    for (float n = 3.0; n < 60.0; n += 2.0) {
      term *= 2.0 * size * size / n;
      sum += term;
    }
    value = 1.12837917 * exp(-size * size) * sum;
  } else if (size < 6.0) {
    float tail = 0.0;
    for (float n = 30.0; n > 0.0; n -= 1.0) tail = n * 0.5 / (size + tail);
    value = 1.0 - exp(-size * size) * 0.564189584 / (size + tail);
  }
  if (!is_number(x)) return x;
  return x < 0.0 ? -value : value;
}

#define min(a, b) lesser(a, b)
#define max(a, b) larger(a, b)
#define sin(x) sine(x, 0)
#define cos(x) sine(x, 1)
#define exp(x) exp_of(x)
#define log(x) log_of(x)
#define tanh(x) tanh_of(x)

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
#undef min
#undef max
#undef sin
#undef cos
#undef exp
#undef log
#undef tanh

// Rows are numbered as in the enum Op.
const uint kFirstRow = uint(__COUNTER__) + 1u;
#define SHUNT_NUMBER(name) const uint op_##name = uint(__COUNTER__) - kFirstRow;
#define SHUNT_OP(name, inputs, required, attributes, rule, tolerance, family) SHUNT_NUMBER(name)
#define SHUNT_ELEMENTWISE(name, inputs, attributes, tolerance, expression) SHUNT_NUMBER(name)
#define SHUNT_LAYOUT_OP(name, inputs, attributes, rule) SHUNT_NUMBER(name)
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

void main() { store_word(args.x.dtype, valid_row_count(args.x) * args.x.extents.w); }
