// How the SIMD convolution divides its work. The same for every instruction set, since scratch sizes depend on it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/conv2d/conv2d_args.h"
#include "ops/linear/linear_blocking.h"

namespace shunt {

// Groups with fewer filters do not fill a register tile: they compute rows of pixels one filter at a time.
inline constexpr std::uint64_t kTiledFilters = 6;
// Target size of the rows of x for such a filter, in floats: they stay in the first-level cache.
inline constexpr std::uint64_t kRowFloats = 6144;
// Floats past the end of a row that its last vector may touch: the lanes of the widest vector.
inline constexpr std::uint64_t kRowSlack = 16;
// Target size of the planes of x for a batch, in floats: 512 KiB of the second-level cache.
inline constexpr std::uint64_t kPlaneFloats = 131072;

// Products that are summed to one element of the result.
inline std::uint64_t conv_products(const Conv2dArgs& args) {
  return std::uint64_t{args.channels} * args.kernel[0] * args.kernel[1];
}

// Returns the arguments with images of one row if a kernel of one element treats the rows of x as one.
inline Conv2dArgs in_long_rows(Conv2dArgs args) {
  const std::uint64_t pixels = std::uint64_t{args.x.extents[2]} * args.x.extents[3];
  const bool one = args.kernel[0] == 1 && args.kernel[1] == 1 && args.stride[0] == 1 && args.stride[1] == 1;
  const bool same = args.places[0] == args.x.extents[2] && args.places[1] == args.x.extents[3];
  const bool dense = args.x.strides[2] == std::uint64_t{args.x.extents[3]} * args.x.strides[3];
  if (!one || !same || !dense || pixels > UINT32_MAX) return args;
  args.places[0] = args.x.extents[2] = 1;
  args.places[1] = args.x.extents[3] = static_cast<std::uint32_t>(pixels);
  return args;
}

// Returns whether the result of each filter is a row of which each element is computed from one of each channel.
inline bool is_one_row(const Conv2dArgs& args) {
  return args.kernel[0] == 1 && args.kernel[1] == 1 && args.stride[1] == 1 && args.padding[0] == 0 &&
         args.padding[1] == 0 && args.places[0] == 1 && args.x.extents[2] == 1 && args.places[1] == args.x.extents[3];
}

// A batch of pixels of the result, and the planes of x that it reads: of each channel one per phase of the stride,
// which all taps share, or one per tap if that is less. A row of the result and the elements of x under a tap begin
// `pitch` after the row before, so that all pixels of a batch are one row for the kernel.
struct ConvBatch {
  std::uint64_t rows = 0;     // of the result
  std::uint64_t columns = 0;  // of the result
  bool shared = false;        // whether taps share planes
  std::uint64_t planes[2] = {};
  std::uint64_t plane_rows = 0;
  std::uint64_t pitch = 0;

  [[nodiscard]] std::uint64_t places() const { return (rows - 1) * pitch + columns; }
  [[nodiscard]] std::uint64_t plane_floats() const { return plane_rows * pitch; }
  // Returns the floats of a channel: an odd number of cache lines, so that channels do not map to the same cache sets.
  [[nodiscard]] std::uint64_t channel_floats() const {
    constexpr std::uint64_t kLine = 16;
    return ((planes[0] * planes[1] * plane_floats() + kLine - 1) / kLine | 1U) * kLine;
  }
};

// Returns the largest part, at most `most`, of nearly equal parts of `all`.
inline std::uint64_t equal_part(std::uint64_t all, std::uint64_t most) {
  const std::uint64_t parts = std::max<std::uint64_t>(1, (all + most - 1) / most);
  return std::max<std::uint64_t>(1, (all + parts - 1) / parts);
}

inline ConvBatch conv_batch_of(const Conv2dArgs& args, bool shared) {
  ConvBatch batch{.shared = shared};
  std::uint64_t beyond[2] = {};  // rows and columns of a plane past those of the result
  for (int axis = 0; axis < 2; ++axis) {
    const std::uint64_t last_tap = std::uint64_t{args.kernel[axis] - 1} * args.dilation[axis];
    batch.planes[axis] = shared ? std::min<std::uint64_t>(args.stride[axis], last_tap + 1) : args.kernel[axis];
    if (shared) beyond[axis] = last_tap / args.stride[axis];
  }
  const std::uint64_t planes = std::max<std::uint64_t>(1, args.channels) * batch.planes[0] * batch.planes[1];
  const std::uint64_t row_floats = kPlaneFloats / planes / (1 + beyond[0]);
  const std::uint64_t fit = row_floats > beyond[1] ? row_floats - beyond[1] : 0;
  batch.columns = equal_part(args.places[1], std::clamp<std::uint64_t>(fit, kPanelRows, kBatchRows));
  batch.pitch = batch.columns + beyond[1];
  const std::uint64_t rows = kPlaneFloats / planes / batch.pitch;
  const std::uint64_t most_rows =
      std::min<std::uint64_t>((kBatchRows - batch.columns) / batch.pitch + 1, rows > beyond[0] ? rows - beyond[0] : 1);
  batch.rows = equal_part(args.places[0], most_rows);
  batch.plane_rows = batch.rows + beyond[0];
  return batch;
}

inline ConvBatch conv_batch(const Conv2dArgs& args) {
  const ConvBatch shared = conv_batch_of(args, true);
  const ConvBatch own = conv_batch_of(args, false);
  const auto floats = [](const ConvBatch& one, const ConvBatch& other) {
    return one.channel_floats() * other.rows * other.columns;
  };
  return floats(shared, own) <= floats(own, shared) ? shared : own;
}

// Returns the floats of the planes of a batch. The last tile reads past the last plane. Of pixels of one row there may
// instead be one packed tile, or all tiles of a batch. The latter are padded to whole vectors: at most four to three,
// and a vector; there are fewer than kBatchRows / 2, and each has a vector to spare.
inline std::uint64_t conv_plane_floats(const Conv2dArgs& args) {
  const ConvBatch batch = conv_batch(args);
  const std::uint64_t plain = args.channels * batch.channel_floats() + kPanelRows;
  if (!is_one_row(args)) return plain;
  const std::uint64_t padded = batch.columns + batch.columns / 3 + kRowSlack;
  const std::uint64_t tile = std::min<std::uint64_t>(args.channels, kTileElements) * kPanelRows;
  return std::max({plain, tile, args.channels * padded + kBatchRows / 2 * kRowSlack});
}

// Entries of the table of shifts: one for each product, and so many that what follows them is aligned.
inline std::uint64_t conv_shifts(const Conv2dArgs& args) { return (conv_products(args) + 15) / 16 * 16; }

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
