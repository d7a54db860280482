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

template <std::uint32_t threads>
SHUNT_FUNCTION void find_largest(const CudaCall* call) {
  const auto& args = arguments_of<ArgmaxArgs>(call);
  const std::uint64_t row = group();
  if (row >= valid_row_count(args.x, parameters_of(call))) return;
  const std::uint64_t begin = row_offset(args.x, row);
  Best best{0.0F, kNone};
  // Several loads are on their way at a time. Beyond the end of the row they repeat its last element.
  constexpr std::uint32_t kAtOnce = 8;
  const std::uint32_t columns = args.x.extents[3];
  for (std::uint32_t first = lane(); first < columns; first += kAtOnce * threads) {
    Best each[kAtOnce];
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kAtOnce; ++i) {
      const std::uint32_t column = first + i * threads;
      each[i].place = column < columns ? column : columns - 1;
      each[i].value =
          load(args.x.dtype, input_of<void>(call, 0), begin + std::uint64_t{each[i].place} * args.x.strides[3]);
    }
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kAtOnce; ++i) {
      const float value = each[i].value;
      if (value == value && beats(each[i], best)) best = each[i];
    }
  }
  SHUNT_SHARED Best parts[threads];
  parts[lane()] = best;
  for (std::uint32_t others = threads / 2; others != 0; others /= 2) {
    sync();
    if (lane() < others && beats(parts[lane() + others], parts[lane()])) parts[lane()] = parts[lane() + others];
  }
  if (lane() != 0) return;
  best = parts[0];
  output_of<std::int32_t>(call)[row] = best.place == kNone ? 0 : static_cast<std::int32_t>(best.place);
}

}  // namespace
}  // namespace shunt

SHUNT_KERNEL(argmax_long) { shunt::find_largest<shunt::kArgmaxThreads>(call); }
SHUNT_KERNEL(argmax_short) { shunt::find_largest<shunt::kArgmaxThreadsOfShort>(call); }
