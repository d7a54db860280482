// In which order columns stand in the result: the greater first, of equals the lower index, NaN last.
#include "ops/order.glsl"

uint rank_of(float value) { return is_number(value) ? order_of(value) : 0u; }

bool precedes(uint order, uint place, uint other, uint its) { return order > other || (order == other && place < its); }
