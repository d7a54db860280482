// Floats as numbers in the order of their values, made of their bits: what a compiler assumes of NaN and infinities
// does not matter then.

const uint kNotANumber = 0xFFFFFFFFu;     // above all others
const uint kInfinity = 0xFF800000u;       // and below it all that is finite
const uint kMinusInfinity = 0x007FFFFFu;  // below all that is finite; 0 is nothing's

bool is_number(float value) { return (floatBitsToUint(value) & 0x7FFFFFFFu) <= 0x7F800000u; }

// Both zeros have the same.
uint order_of(float value) {
  if (!is_number(value)) return kNotANumber;
  uint bits = floatBitsToUint(value);
  if (bits == 0x80000000u) bits = 0u;
  return (bits & 0x80000000u) != 0u ? ~bits : bits | 0x80000000u;
}
float value_of(uint order) { return uintBitsToFloat((order & 0x80000000u) != 0u ? order & 0x7FFFFFFFu : ~order); }
