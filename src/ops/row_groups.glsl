// What kernels share whose workgroups compute whole rows of the result: one each or, where rows of 16 bits share a
// word, two, so that no word is of two groups. Needs kernel.glsl; on the host groups_for_rows() says how many there
// are.
uint rows_of_group(uint dtype, uint columns) { return columns % per_word(dtype) == 0u ? 1u : 2u; }

// The kernel's: an element of the group's first (0) or second row.
float result(uint row_in_group, uint column);

// Writes the group's rows, of which those below `valid` exist.
void store_rows(uint dtype, uint columns, uint valid) {
  uint rows = rows_of_group(dtype, columns);
  uint first_row = group_index() * rows;
  uint begin = first_row * columns;
  uint end = min(valid, first_row + rows) * columns;
  uint step = per_word(dtype);
  for (uint at = begin + gl_LocalInvocationID.x * step; at < end; at += kGroup * step) {
    float low = 0.0;
    float high = 0.0;
    for (uint i = 0u; i < step && at + i < end; ++i) {
      uint index = at + i - begin;
      uint row = index < columns ? 0u : 1u;
      float value = result(row, index - row * columns);
      if (i == 0u)
        low = value;
      else
        high = value;
    }
    store(dtype, at, end, vec2(low, high));
  }
}

// Of all invocations of the group, for all of them. REQUIRES: all call it, with the same `call`, a number below kCalls
// that no other call of theirs has: drivers of OpenGL move what is read before a barrier behind it, so no call may
// overwrite another's answer.
const uint kCalls = 4u;
shared float lane_values[kGroup];
shared float group_values[kCalls];
float sum_of_group(uint call, float value) {
  uint lane = gl_LocalInvocationID.x;
  lane_values[lane] = value;
  barrier();
  for (uint width = kGroup / 2u; width > 0u; width /= 2u) {
    if (lane < width) lane_values[lane] += lane_values[lane + width];
    barrier();
  }
  if (lane == 0u) group_values[call] = lane_values[0];
  barrier();
  return group_values[call];
}

shared uint lane_orders[kGroup];
shared uint group_orders[kCalls];
// The same for the largest.
uint largest_of_group(uint call, uint order) {
  uint lane = gl_LocalInvocationID.x;
  lane_orders[lane] = order;
  barrier();
  for (uint width = kGroup / 2u; width > 0u; width /= 2u) {
    if (lane < width) lane_orders[lane] = max(lane_orders[lane], lane_orders[lane + width]);
    barrier();
  }
  if (lane == 0u) group_orders[call] = lane_orders[0];
  barrier();
  return group_orders[call];
}
