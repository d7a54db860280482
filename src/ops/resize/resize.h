// From a call of the family resize to its arguments (resize_args.h). Pure functions, for the host.
#pragma once

#include "ops/resize/resize_args.h"
#include "ops/strided.h"

namespace shunt {

[[nodiscard]] ResizeArgs resize_arguments(const OpCall& call);

// Two neighbours in x and how much the second counts.
struct Between {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  double share = 0;
};
// Where a row (axis 0) or column (axis 1) of the result lies.
[[nodiscard]] Between resize_place(const ResizeArgs& args, std::size_t axis, std::uint64_t place);

}  // namespace shunt
