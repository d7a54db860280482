// How the SIMD convolution divides its work. The same for every instruction set, since scratch sizes depend on it.
#pragma once

#include <algorithm>

#include "ops/conv2d/conv2d_args.h"
#include "ops/linear/linear_blocking.h"

namespace shunt {

// Groups with fewer filters do not fill a register tile: they compute rows of pixels one filter at a time.
inline constexpr std::uint64_t kTiledFilters = 6;
// Target size of the rows of x for such a filter, in floats: they stay in the first-level cache.
inline constexpr std::uint64_t kRowFloats = 6144;
// Floats past the end of a row that its last vector may touch: the lanes of the widest vector.
inline constexpr std::uint64_t kRowSlack = 16;
// Target size of the gathered columns of x, in floats: 512 KiB of the second-level cache, or 32 columns if they are
// larger.
inline constexpr std::uint64_t kColumnFloats = 131072;

// Products that are summed to one element of the result.
inline std::uint64_t conv_products(const Conv2dArgs& args) {
  return std::uint64_t{args.channels} * args.kernel[0] * args.kernel[1];
}

// Pixels of the result whose columns of x are gathered together: whole panels, at most kBatchRows pixels.
inline std::uint64_t conv_batch(const Conv2dArgs& args) {
  const std::uint64_t pixels = std::uint64_t{args.places[0]} * args.places[1];
  const std::uint64_t most = std::min<std::uint64_t>(kBatchRows, (pixels + kPanelRows - 1) / kPanelRows * kPanelRows);
  const std::uint64_t fit = kColumnFloats / std::max<std::uint64_t>(1, conv_products(args)) / kPanelRows * kPanelRows;
  return std::clamp<std::uint64_t>(fit, kPanelRows, std::max<std::uint64_t>(kPanelRows, most));
}

// How rows of x are copied for the taps: with their padding, and split into phases, each of which holds every stride-th
// element contiguously.
struct ConvRows {
  std::uint64_t phases = 0;
  std::uint64_t phase_floats = 0;
  std::uint64_t reach = 0;  // rows of x that one row of the result reads
  std::uint64_t rows = 0;   // rows of the result computed at a time

  [[nodiscard]] std::uint64_t row_floats() const { return phases * phase_floats; }
  [[nodiscard]] std::uint64_t sum_floats(const Conv2dArgs& args) const { return rows * (args.places[1] + kRowSlack); }
};

inline ConvRows conv_rows(const Conv2dArgs& args) {
  ConvRows cut;
  const std::uint64_t last_tap = std::uint64_t{args.kernel[1] - 1} * args.dilation[1];
  cut.phases = std::min<std::uint64_t>(args.stride[1], last_tap + 1);
  cut.phase_floats = args.places[1] + last_tap / args.stride[1] + kRowSlack;
  cut.reach = std::uint64_t{args.kernel[0] - 1} * args.dilation[0] + 1;
  const std::uint64_t fit = kRowFloats / cut.row_floats();
  cut.rows = fit < cut.reach ? 1 : (fit - cut.reach) / args.stride[0] + 1;
  cut.rows = std::min<std::uint64_t>(cut.rows, std::max<std::uint64_t>(1, args.places[0]));
  return cut;
}

// Returns whether filters are computed one at a time. A kernel that reaches far would make rows of x long for no gain.
inline bool conv_by_rows(const Conv2dArgs& args) {
  constexpr std::uint64_t kFar = 64;
  const auto reach = [&](int axis) { return std::uint64_t{args.kernel[axis]} * args.dilation[axis]; };
  return args.filters / args.groups < kTiledFilters && reach(0) <= kFar && reach(1) <= kFar;
}

}  // namespace shunt
