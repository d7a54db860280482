// The hyperbolic tangent, computed as in kernel_math.cuh. The built-in one guarantees too little precision near zero,
// and some implementations overflow far from it. Needs order.glsl.
float tanh_of(float x) {
  float size = abs(x);
  float value = 1.0;
  if (size < 1.0) {
    float square = x * x;
    float rest = 13.0;
    for (float term = 11.0; term > 0.0; term -= 2.0) rest = term + square / rest;
    return x / rest;
  }
  if (size < 20.0) value = 1.0 - 2.0 / (exp(2.0 * size) + 1.0);
  if (!is_number(x)) return x;
  return x < 0.0 ? -value : value;
}
