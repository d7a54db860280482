// Finds the column that belongs at a place of a sorted row, four bits of its key at a time. Of equal keys the lower
// column comes first. The shader defines key_at(column); smaller keys come first.

uint columns_below(uint columns, uint key) {
  uint count = 0u;
  for (uint column = 0u; column < columns; ++column)
    if (key_at(column) < key) ++count;
  return count;
}

// Returns the largest of the 16 keys from `key` on, `step` apart, that at most `place` columns are below.
uint next_key(uint columns, uint key, uint step, uint place) {
  uvec4 limits = uvec4(key) + step * uvec4(0u, 1u, 2u, 3u);
  uvec4 counts[4] = uvec4[](uvec4(0u), uvec4(0u), uvec4(0u), uvec4(0u));
  for (uint column = 0u; column < columns; ++column) {
    uvec4 found = uvec4(key_at(column));
    for (uint i = 0u; i < 4u; ++i) counts[i] += uvec4(lessThan(found, limits + step * 4u * i));
  }
  uvec4 steps = uvec4(0u);  // with at most `place` columns below; the first has
  for (uint i = 0u; i < 4u; ++i) steps += uvec4(lessThanEqual(counts[i], uvec4(place)));
  return key + step * (steps.x + steps.y + steps.z + steps.w - 1u);
}

// REQUIRES: place < columns.
uint column_at(uint columns, uint place) {
  uint key = 0u;
  for (uint step = 1u << 28; step != 0u; step >>= 4u) key = next_key(columns, key, step, place);
  uint equals = place - columns_below(columns, key);  // number among the columns of this key
  for (uint column = 0u; column < columns; ++column) {
    if (key_at(column) != key) continue;
    if (equals-- == 0u) return column;
  }
  return 0u;
}
