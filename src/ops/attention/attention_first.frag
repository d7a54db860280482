// A fragment computes the score of one position for one row. Rows follow each other, each of capacity() words.
#include "ops/attention/score.glsl"

void main() {
  uint index = invocation_index();
  uint number = index / capacity();
  uint position = index % capacity();
  if (number >= valid_row_count(args.query)) return;
  if (parameters.positions != 0u && position >= parameters.positions) return;
  Row row = row_of(number);
  if (position < row.first || position >= row.visible) return;
  uint slot = slot_of(row, position);
  if (slot != kNoSlot) put_word(index, floatBitsToUint(score_of(row, slot)));
}
