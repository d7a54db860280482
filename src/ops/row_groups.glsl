// Shared by kernels whose workgroups compute whole rows of the result: one each, or two if 16-bit rows share a word.
// Thus no word belongs to two groups. Needs kernel.glsl; on the host, groups_for_rows() returns the number of groups.
uint rows_of_group(uint dtype, uint columns) { return columns % per_word(dtype) == 0u ? 1u : 2u; }

// Defined by the kernel: returns an element of the group's first (0) or second (1) row.
float result(uint row_in_group, uint column);

// Writes the group's rows that are below `valid`.
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

// Sums over all invocations of the group; each gets the sum. REQUIRES: all of them call it, with the same `call`, which
// is below kCalls and used by no other call. OpenGL drivers move reads from before a barrier to behind it, so no call
// may overwrite another's result.
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
// The same for the largest `order`.
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
