// Finds the column that belongs at a place of a sorted row, four bits of its key at a time, until only columns of one
// key can be meant. Of equal keys the lower column comes first. The shader defines key_at(column); smaller keys come
// first.

// REQUIRES: place < columns.
uint column_at(uint columns, uint place) {
  // The column's key is one of `key` to `key + last`; `below` columns have smaller keys, and `end` those or smaller
  // ones.
  uint key = 0u;
  uint last = ~0u;
  uint below = 0u;
  uint end = columns;
  for (uint step = 1u << 28; step != 0u && end - below > 1u; step >>= 4u) {
    uvec4 limits = uvec4(key) + step * uvec4(0u, 1u, 2u, 3u);
    uvec4 counts[4] = uvec4[](uvec4(0u), uvec4(0u), uvec4(0u), uvec4(0u));  // of the columns below 16 limits
    uint lowest = ~0u;                                                      // of the keys that can be meant
    uint highest = 0u;
    for (uint column = 0u; column < columns; ++column) {
      uint found = key_at(column);
      for (uint i = 0u; i < 4u; ++i) counts[i] += uvec4(lessThan(uvec4(found), limits + step * 4u * i));
      if (found - key > last) continue;
      lowest = min(lowest, found);
      highest = max(highest, found);
    }
    if (lowest == highest) break;
    for (uint i = 0u; i < 16u; ++i) {
      uint count = counts[i / 4u][i % 4u];
      if (count <= place) {
        below = count;
        key = limits[i % 4u] + step * (i - i % 4u);
      } else {
        end = min(end, count);
      }
    }
    last = step - 1u;
  }
  for (uint column = 0u; column < columns; ++column)
    if (key_at(column) - key <= last && below++ == place) return column;
  return 0u;
}
