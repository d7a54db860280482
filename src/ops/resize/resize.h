// Builds the arguments of the resize kernels (resize_args.h) from a call. Pure functions; host only.
#pragma once

#include "ops/resize/resize_args.h"
#include "ops/strided.h"

namespace shunt {

[[nodiscard]] ResizeArgs resize_arguments(const OpCall& call);

// Two neighbouring rows or columns of x, and the weight of the second.
struct Between {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  double share = 0;
};
// Maps a row (axis 0) or column (axis 1) of the result to x.
[[nodiscard]] Between resize_place(const ResizeArgs& args, std::size_t axis, std::uint64_t place);

}  // namespace shunt
