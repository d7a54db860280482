// A fragment computes the factor of one row.
#include "ops/norm/factor.glsl"

void main() {
  uint row = invocation_index();
  if (row < valid_row_count(args.x)) put_word(row, floatBitsToUint(factor_of(row)));
}
