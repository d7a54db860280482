#include "run/verify/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/elements.h"
#include "ops/op.h"

namespace shunt {
namespace {

constexpr double kHuge = 1e6;

std::vector<double> values_of(DType dtype, std::uint32_t columns, std::span<const std::byte> bytes) {
  const DTypeInfo& info = info_of(dtype);
  std::vector<double> values(bytes.size() / info.block_bytes * info.block_elements);
  if (info.kind != DTypeKind::quantized) {
    for (std::size_t index = 0; index < values.size(); ++index)
      values[index] = load_element(dtype, bytes.data(), index);
    return values;
  }
  std::vector<float> row(columns);
  const std::size_t row_bytes = std::size_t{columns} / info.block_elements * info.block_bytes;
  for (std::size_t begin = 0; begin < bytes.size(); begin += row_bytes) {
    decode_row(dtype, bytes.data() + begin, columns, row.data());
    std::ranges::copy(row,
                      values.begin() + static_cast<std::ptrdiff_t>(begin / info.block_bytes * info.block_elements));
  }
  return values;
}

// Returns whether both are finite, the same infinity, or not a number.
bool are_alike(double expected, double actual) {
  if (std::isfinite(expected)) return std::isfinite(actual);
  return std::isnan(expected) ? std::isnan(actual) : expected == actual;
}

// The largest error of rounding to a 16-bit dtype, relative to the number, or of rounding computed numbers to a cache's
// blocks, relative to the largest of a block. For other dtypes it is part of each row's tolerance.
double rounding_of(DType dtype, bool is_computed) {
  switch (dtype) {
    case DType::F16:
      return 0x1p-11;
    case DType::BF16:
      return 0x1p-8;
    case DType::Q8_0:
      return is_computed ? 1.0 / 254 : 0;
    default:
      return 0;
  }
}

}  // namespace

Comparison compare(DType dtype, std::uint32_t columns, std::span<const std::byte> expected,
                   std::span<const std::byte> actual, double negligible) {
  const std::vector<double> wanted = values_of(dtype, columns, expected);
  const std::vector<double> found = values_of(dtype, columns, actual);
  Comparison comparison;
  double difference = 0;
  double power = 0;
  double most = -1;
  const auto note = [&](std::size_t index) {
    comparison.worst = index;
    comparison.expected = wanted[index];
    comparison.actual = found[index];
  };
  for (std::size_t index = 0; index < wanted.size(); ++index) {
    if (!are_alike(wanted[index], found[index])) {
      comparison.mismatch = fmt::format("element {} is {}, not {}", index, found[index], wanted[index]);
      comparison.error = std::numeric_limits<double>::infinity();
      note(index);
      return comparison;
    }
    if (!std::isfinite(wanted[index])) continue;
    const double distance = std::abs(found[index] - wanted[index]);
    if (distance > most) note(index);
    most = std::max(most, distance);
    const double square = distance < negligible ? 0 : distance * distance;
    if (std::abs(wanted[index]) > kHuge) {
      comparison.error = std::max(comparison.error, square / (wanted[index] * wanted[index]));
    } else {
      difference += square;
      power += wanted[index] * wanted[index];
    }
  }
  if (difference > 0) comparison.error = std::max(comparison.error, difference / power);
  return comparison;
}

double tolerance_of(const OpCall& call, Arithmetic arithmetic) {
  const OpInfo& row = info_of(call.op);
  double inner = 0;
  if (row.is_fused())
    for (const Operand* input : call.inputs)
      if (input != nullptr && input->kind == TensorKind::value)
        inner = std::max(inner, rounding_of(input->dtype, true));
  const double rounding = 2 * rounding_of(call.output->dtype, row.is_fused()) + inner;
  const double products = arithmetic == Arithmetic::f32 ? 0 : info_of(arithmetic).error;
  return std::max({row.tolerance, rounding * rounding, products});
}

}  // namespace shunt
