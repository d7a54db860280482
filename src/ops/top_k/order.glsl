// The order of columns in the result: greater values first, then lower indices. NaN is last, or first with values.
#include "ops/order.glsl"

uint rank_of(float value) { return is_number(value) || args.with_values != 0u ? order_of(value) : 0u; }

bool precedes(uint order, uint place, uint other, uint its) { return order > other || (order == other && place < its); }
