#include "run/finite.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "ops/elements.h"

namespace shunt {

bool are_finite(const Operand& operand, const Parameters& parameters, std::uint64_t offset,
                std::span<const std::byte> bytes) {
  const DTypeInfo& dtype = info_of(operand.dtype);
  const Shape& shape = operand.shape;
  if (dtype.kind != DTypeKind::floating || shape.elements() == 0) return true;
  const std::uint64_t rows = shape.rank() == 0 ? 1 : shape[0];
  const std::uint64_t valid = shape.rank() == 0 ? 1 : valid_rows(shape[0], operand.extent, parameters);
  const std::uint64_t last = std::min(offset + bytes.size(), shape.elements() / rows * valid * dtype.block_bytes);
  std::uint64_t at = (offset + dtype.block_bytes - 1) / dtype.block_bytes * dtype.block_bytes;
  for (; at + dtype.block_bytes <= last; at += dtype.block_bytes)
    if (!std::isfinite(load_element(operand.dtype, bytes.data() + (at - offset), 0))) return false;
  return true;
}

bool are_finite(std::span<const float> numbers) {
  std::uint32_t infinite = 0;  // without an early end, so that many are checked at once
  for (const float number : numbers) infinite |= (std::bit_cast<std::uint32_t>(number) << 1U) >= 0xFF000000U ? 1U : 0U;
  return infinite == 0;
}

}  // namespace shunt
