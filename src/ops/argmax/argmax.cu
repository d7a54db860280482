// A block finds the largest element of one row.
#include "ops/argmax/argmax_args.h"

#include "ops/kernel.cuh"

namespace shunt {
namespace {

inline constexpr std::uint32_t kNone = 0xFFFFFFFFU;

struct Best {
  float value;
  std::uint32_t place;
};

SHUNT_FUNCTION bool beats(Best best, Best other) {
  if (best.place == kNone) return false;
  return other.place == kNone || best.value > other.value || (best.value == other.value && best.place < other.place);
}

}  // namespace
}  // namespace shunt

SHUNT_KERNEL(argmax) {
  using namespace shunt;
  const auto& args = arguments_of<ArgmaxArgs>(call);
  const std::uint64_t row = group();
  if (row >= valid_row_count(args.x, parameters_of(call))) return;
  const std::uint64_t begin = row_offset(args.x, row);
  Best best{0.0F, kNone};
  for (std::uint32_t column = lane(); column < args.x.extents[3]; column += kGroup) {
    const float value = load(args.x.dtype, input_of<void>(call, 0), begin + std::uint64_t{column} * args.x.strides[3]);
    if (value == value && beats({value, column}, best)) best = {value, column};
  }
  SHUNT_SHARED Best parts[kGroup];
  parts[lane()] = best;
  sync();
  if (lane() != 0) return;
  for (std::uint32_t i = 1; i < kGroup; ++i)
    if (beats(parts[i], best)) best = parts[i];
  output_of<std::int32_t>(call)[row] = best.place == kNone ? 0 : static_cast<std::int32_t>(best.place);
}
