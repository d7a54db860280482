// Maps floats to integers in the order of their values, by their bits. Compilers may assume that there are no NaN or
// infinities; this does not depend on it.

const uint kNotANumber = 0xFFFFFFFFu;     // above all other values
const uint kInfinity = 0xFF800000u;       // above all finite values
const uint kMinusInfinity = 0x007FFFFFu;  // below all finite values; no value maps to 0

bool is_number(float value) { return (floatBitsToUint(value) & 0x7FFFFFFFu) <= 0x7F800000u; }

// Both zeros map to the same number.
uint order_of(float value) {
  if (!is_number(value)) return kNotANumber;
  uint bits = floatBitsToUint(value);
  if (bits == 0x80000000u) bits = 0u;
  return (bits & 0x80000000u) != 0u ? ~bits : bits | 0x80000000u;
}
float value_of(uint order) { return uintBitsToFloat((order & 0x80000000u) != 0u ? order & 0x7FFFFFFFu : ~order); }
