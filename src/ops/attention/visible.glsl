// Which positions a token sees, and the cap on their scores. Needs kernel.glsl and page_table.glsl.
#include "ops/order.glsl"
#include "ops/tanh.glsl"

// Tint rejects the largest float as naga writes it.
const float kLeast = -3.0e38;

// Returns how many leading positions a token sees; 0 for padding.
uint visible_positions(int sequence, int position) {
  return position < 0 ? 0u : min(uint(position) + 1u, sequence_capacity(args.table, sequence));
}
// Returns the first position that a token sees, if it sees any.
uint first_position(int position) {
  if (args.window == 0u || position < 0) return 0u;
  return max(uint(position) + 1u, args.window) - args.window;
}

float capped(float score) { return args.soft_cap > 0.0 ? args.soft_cap * tanh_of(score / args.soft_cap) : score; }
