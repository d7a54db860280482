// One invocation writes one word of the result.
#include "ops/copy/copy_args.h"

#define Arguments CopyArgs
#include "ops/kernel.glsl"

#include "ops/bits.glsl"
#include "ops/order.glsl"

SHUNT_BITS(3, x)

bool is_integer(uint dtype) { return dtype == I32 || dtype == I8 || dtype == U32; }

// The functions below return the bits of an integer; those of an I8 are the lower eight of the word.
uint signed_whole(float value) {
  if (value >= 2147483648.0) return 0x7FFFFFFFu;
  if (value <= -2147483648.0) return 0x80000000u;
  return uint(int(value));
}
uint unsigned_whole(float value) {
  if (value >= 4294967296.0) return 0xFFFFFFFFu;
  if (value <= 0.0) return 0u;
  return value < 2147483648.0 ? uint(int(value)) : uint(int(value - 2147483648.0)) | 0x80000000u;
}
// `from` is I32 or U32, and `to` an integer.
uint between_integers(uint from, uint to, uint bits) {
  bool negative = from != U32 && int(bits) < 0;
  if (to == U32) return negative ? 0u : bits;
  if (to == I32) return from == U32 ? min(bits, 0x7FFFFFFFu) : bits;
  return negative ? max(bits, 0xFFFFFF80u) & 0xFFu : min(bits, 127u);
}

uint of_float(float value) {
  if (!is_integer(args.to)) return narrow(args.to, value);
  if (!is_number(value)) return 0u;
  if (args.to == U32) return unsigned_whole(value);
  return between_integers(I32, args.to, signed_whole(value));
}

uint of_integer(uint from, uint bits) {
  if (is_integer(args.to)) return between_integers(from, args.to, bits);
  return narrow(args.to, from == U32 ? float(bits) : float(int(bits)));
}

uint result_bits(uint index) {
  uint row = index / args.x.extents.w;
  uint at = row_offset(args.x.extents, args.x.strides, row) + index % args.x.extents.w * args.x.strides.w;
  uint from = args.x.dtype;
  uint bits = x_bits(from, byte_offset(1u), at);
  if (from == args.to) return bits;
  if (from == I8) return of_integer(I32, uint(int(bits << 24u) >> 24));
  return is_integer(from) ? of_integer(from, bits) : of_float(widen(from, bits));
}

void main() { store_word_of_bits(args.to, valid_row_count(args.x) * args.x.extents.w); }
