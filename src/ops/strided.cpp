#include "ops/strided.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "ops/op.h"

namespace shunt {
namespace {

bool is_column(const Operand& operand) { return operand.shape.rank() == 1 && operand.extent != Extent::fixed; }

}  // namespace

StridedTensor strided(const Operand& operand) { return strided_like(operand, operand); }

StridedTensor strided_like(const Operand& operand, const Operand& whole) {
  StridedTensor result;
  std::ranges::fill(result.extents, 1);
  const std::size_t trailing = is_column(whole) ? 1 : 0;
  const std::size_t rank = whole.shape.rank();
  result.dtype = static_cast<std::uint32_t>(operand.dtype);
  result.extent = static_cast<std::uint32_t>(whole.extent);
  result.entries = rank > 1 || is_column(whole) ? whole.shape[0] : 1;
  result.first_axis = static_cast<std::uint32_t>(kMaxRank - trailing - rank);
  for (std::size_t axis = 0; axis < rank; ++axis) result.extents[result.first_axis + axis] = whole.shape[axis];
  const std::size_t missing = rank - operand.shape.rank();
  for (std::size_t axis = 0; axis < operand.shape.rank(); ++axis)
    result.strides[result.first_axis + missing + axis] = static_cast<std::uint32_t>(operand.strides[axis]);
  return result;
}

void merge_axes(StridedTensor& whole, std::uint32_t (*strides)[4], std::uint32_t operands) {
  const bool bucket = static_cast<Extent>(whole.extent) != Extent::fixed;
  std::size_t place = kMaxRank - 1;
  const auto move = [&](std::size_t from, std::size_t to) {
    whole.extents[to] = whole.extents[from];
    for (std::uint32_t i = 0; i < operands; ++i) strides[i][to] = strides[i][from];
  };
  const auto merges = [&](std::size_t outer) {
    if (std::uint64_t{whole.extents[outer]} * whole.extents[place] > std::numeric_limits<std::uint32_t>::max())
      return false;
    for (std::uint32_t i = 0; i < operands; ++i)
      if (strides[i][outer] != std::uint64_t{strides[i][place]} * whole.extents[place]) return false;
    return true;
  };
  const std::size_t first = whole.first_axis + (bucket ? 1U : 0U);
  for (std::size_t axis = kMaxRank - 1; axis-- > first;) {
    if (whole.extents[axis] == 1) continue;
    if (whole.extents[place] == 1)
      move(axis, place);
    else if (merges(axis))
      whole.extents[place] *= whole.extents[axis];
    else
      move(axis, --place);
  }
  if (bucket) move(whole.first_axis, --place);
  if (!bucket) whole.entries = 1;
  whole.first_axis = static_cast<std::uint32_t>(place);
  while (place-- > 0) {
    whole.extents[place] = 1;
    for (std::uint32_t i = 0; i < operands; ++i) strides[i][place] = 0;
  }
}

std::string fits_arguments(const OpCall& call) {
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    if (!call.has_input(i)) continue;
    const Operand& operand = call.input(i);
    for (std::size_t axis = 0; axis < operand.shape.rank(); ++axis)
      if (operand.strides[axis] > std::numeric_limits<std::uint32_t>::max() && operand.shape[axis] > 1)
        return fmt::format("stride {} of {} does not fit 32 bits", operand.strides[axis], info_of(call.op).inputs[i]);
  }
  return call.output->is_contiguous() ? "" : "needs a contiguous result";
}

std::string fits_row_arguments(const OpCall& call) {
  if (is_column(call.input(0))) return "needs rows; its only axis is a bucket of single elements";
  return fits_arguments(call);
}

}  // namespace shunt
