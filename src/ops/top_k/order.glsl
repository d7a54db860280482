// The order of columns in the result: greater values first, then lower indices, NaN last.
#include "ops/order.glsl"

uint rank_of(float value) { return is_number(value) ? order_of(value) : 0u; }

bool precedes(uint order, uint place, uint other, uint its) { return order > other || (order == other && place < its); }
