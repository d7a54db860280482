// A fragment computes one element of the result. It weights the values of all positions that its token sees, one after
// the other (online softmax), by the scores of the first pass.
#include "ops/attention/score.glsl"

SHUNT_INPUT(5, values)
SHUNT_INPUT(9, scores)

const uint kStretch = 64u;

void main() {
  uint index = invocation_index();
  uint head_dim = args.query.extents.w;
  if (index / head_dim >= valid_row_count(args.query)) return;
  Row row = row_of(index / head_dim);
  bool has_scores = byte_offset(7u) != 0u;
  float sum = 0.0;
  float total = 0.0;
  // Sums of a stretch of positions, taken before they are added, so that long sums stay precise.
  float near_sum = 0.0;
  float near_total = 0.0;
  float largest = kLeast;
  for (uint position = row.first; position < row.visible; ++position) {
    if (position % kStretch == 0u) {
      sum += near_sum;
      total += near_total;
      near_sum = 0.0;
      near_total = 0.0;
    }
    uint slot = slot_of(row, position);
    if (slot == kNoSlot) continue;
    float score = has_scores ? uintBitsToFloat(scores_word(row.number * capacity() + position)) : score_of(row, slot);
    float top = max(largest, score);
    float shrink = exp(largest - top);
    float share = exp(score - top);
    largest = top;
    sum *= shrink;
    total *= shrink;
    near_total = near_total * shrink + share;
    near_sum = near_sum * shrink +
               share * values_element(args.state_dtype, byte_offset(3u), element_of(row, slot) + index % head_dim);
  }
  sum += near_sum;
  total += near_total;
  store(F32, index, index + 1u, vec2(total == 0.0 ? 0.0 : sum / total, 0.0));
}
