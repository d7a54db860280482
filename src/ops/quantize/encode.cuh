// Encodes floats as blocks (encode.h) on a GPU: the threads of a block share the trials of the searches.
//
// They take a tile, which is one block of 256 elements or two of 32. Its elements are in groups with a grid each. In
// blocks of 256 elements, small numbers per group multiply the block's scale and minimum (encode_super.h).
#pragma once

#include "ops/quantize/encode_search.cuh"

namespace shunt::encoding {

inline constexpr std::uint32_t kMostGroups = 16;
inline constexpr std::uint32_t kMostTrials = 304;  // of all groups

// The numbers of a larger block: the grid of group g is scale * scales[g], min * mins[g].
struct Super {
  std::uint32_t scale;  // F16
  std::uint32_t min;    // F16
  float scales[kMostGroups];
  float mins[kMostGroups];
};

// The memory that the threads of a block share.
struct Tile {
  Format format;
  float level[16];
  float x[kSuper];
  float weights[kSuper];  // how much an error of each element counts
  float levels[kSuper];
  Trial trials[kMostTrials];
  Grid grids[kMostGroups];
  float errors[kMostGroups];
  Super supers[2];  // the best so far, and another
  double sums[5];
  // The result.
  std::uint32_t scales[2];  // of blocks of 32: F16, or the exponent of MXFP4
  std::uint32_t mins[2];    // F16
  std::uint8_t codes[kSuper];
};

SHUNT_FUNCTION Group group_of(const Tile& tile, const Format& format, std::uint32_t g) {
  return {tile.x + std::uint64_t{g} * format.group, tile.weights + std::uint64_t{g} * format.group, format.group};
}

// Tries all grids of all groups.
SHUNT_FUNCTION void try_all(Tile& tile, const Format& format, std::uint32_t groups) {
  const std::uint32_t trials = trials_of(format);
  for (std::uint32_t task = lane(); task < groups * trials; task += kGroup) {
    const Group of = group_of(tile, format, task / trials);
    const std::uint32_t t = task % trials;
    tile.trials[task] = format.levels == Levels::mx ? try_exponent(format, of, t)
                        : format.has_min            ? try_grid(format, of, t)
                                                    : try_scale(format, of, t);
  }
  sync();
}

// Finds the numbers of a block of 32 elements.
SHUNT_FUNCTION void find_small(Tile& tile, const Format& format, std::uint32_t to, std::uint32_t g) {
  const Group of = group_of(tile, format, g);
  const Trial* const trials = tile.trials + std::uint64_t{g} * trials_of(format);
  if (format.levels == Levels::mx) {
    tile.scales[g] = best_exponent(of, trials);
    tile.grids[g] = mx_grid(tile.scales[g]);
    return;
  }
  const Grid grid = to == dtype::Q8_0 ? Grid{kernel_math::abs(extreme_of(of.x, of.elements)) / 127.0F, 0.0F}
                    : format.has_min  ? best_grid(format, of, trials)
                                      : best_scale(format, of, trials);
  tile.scales[g] = f16_scale(grid.scale);
  tile.mins[g] = narrow_f16(-grid.min);
  tile.grids[g] = {widen_f16(tile.scales[g]), format.has_min ? -widen_f16(tile.mins[g]) : 0.0F};
}

SHUNT_FUNCTION Grid grid_of(const Super& block, float scale, float min) {
  return {widen_f16(block.scale) * scale, widen_f16(block.min) * min};
}

// Neighbour i of the numbers of a group; the first is the group's own, so that it wins ties.
SHUNT_FUNCTION Grid neighbour_of(const Super& block, std::uint32_t g, std::uint32_t i) {
  return {block.scales[g] + (static_cast<float>((i + 1U) % 3U) - 1.0F),
          block.mins[g] + (static_cast<float>((i / 3U + 1U) % 3U) - 1.0F)};
}
SHUNT_FUNCTION bool is_stored(const Format& format, Grid numbers) {
  return !(numbers.scale < format.scale_low || numbers.scale > format.scale_high || numbers.min < 0.0F ||
           numbers.min > format.scale_high);
}

// Replaces the numbers of each group by the neighbours with the least error. Returns the error of the whole block.
SHUNT_FUNCTION float refine(Tile& tile, const Format& format, Super& block) {
  const std::uint32_t groups = kSuper / format.group;
  const std::uint32_t neighbours = format.has_min ? 9 : 3;
  for (std::uint32_t task = lane(); task < groups * neighbours; task += kGroup) {
    const std::uint32_t g = task / neighbours;
    const Grid numbers = neighbour_of(block, g, task % neighbours);
    if (!is_stored(format, numbers)) continue;
    const Grid grid = grid_of(block, numbers.scale, numbers.min);
    tile.trials[task].error = error_of(format, group_of(tile, format, g), grid, grid);
  }
  sync();
  if (lane() < groups) {
    Grid best{block.scales[lane()], block.mins[lane()]};
    float least = -1.0F;
    for (std::uint32_t i = 0; i < neighbours; ++i) {
      const Grid numbers = neighbour_of(block, lane(), i);
      const float error = tile.trials[lane() * neighbours + i].error;
      if (!is_stored(format, numbers) || (least >= 0.0F && !(error < least))) continue;
      least = error;
      best = numbers;
    }
    block.scales[lane()] = best.scale;
    block.mins[lane()] = best.min;
    tile.errors[lane()] = least;
  }
  sync();
  float total = 0.0F;
  for (std::uint32_t g = 0; g < groups; ++g) total += tile.errors[g];
  return total;
}

// Computes one of the sums of solve_block.
SHUNT_FUNCTION double sum_for_block(const Tile& tile, const Format& format, const Super& block, std::uint32_t number) {
  double sum = 0;
  for (std::uint32_t i = 0; i < kSuper; ++i) {
    const std::uint32_t g = i / format.group;
    const auto a = static_cast<double>(block.scales[g] * tile.levels[i]);
    const auto c = static_cast<double>(block.mins[g]);
    const auto x = static_cast<double>(tile.x[i]);
    const double first = number == 0 || number == 1 || number == 3 ? a : c;
    const double second = number == 0 ? a : number < 3 ? c : x;
    sum += static_cast<double>(tile.weights[i]) * first * second;
  }
  return sum;
}

// Solves for the best scale and minimum of the block, with everything else fixed, by weighted least squares.
SHUNT_FUNCTION void solve_block(Tile& tile, const Format& format, Super& block) {
  for (std::uint32_t i = lane(); i < kSuper; i += kGroup) {
    const std::uint32_t g = i / format.group;
    const Grid grid = grid_of(block, block.scales[g], block.mins[g]);
    tile.levels[i] = level_of(format, tile.x[i], grid.min, inverse(grid.scale));
  }
  sync();
  if (lane() < 5) tile.sums[lane()] = sum_for_block(tile, format, block, lane());
  sync();
  if (lane() == 0) {
    const double aa = tile.sums[0];
    const double ac = tile.sums[1];
    const double cc = tile.sums[2];
    const double ax = tile.sums[3];
    const double cx = tile.sums[4];
    const double determinant = aa * cc - ac * ac;
    double scale = aa > 0 ? ax / aa : 0;
    double min = 0;
    if (format.has_min && determinant > 1e-12 * aa * cc) {
      scale = (ax * cc - ac * cx) / determinant;
      min = (ac * ax - aa * cx) / determinant;
    }
    if (format.has_min ? scale > 0 && min >= 0 : aa > 0) {
      block.scale = narrow_f16(static_cast<float>(scale));
      block.min = narrow_f16(static_cast<float>(min));
    }
  }
  sync();
}

// Computes how much an error of each element of a larger block counts: more where elements are large.
SHUNT_FUNCTION void weigh(Tile& tile, const Format& format) {
  const std::uint32_t groups = kSuper / format.group;
  if (lane() < groups) {
    float squares = 0.0F;
    for (std::uint32_t j = 0; j < format.group; ++j) {
      const float x = tile.x[lane() * format.group + j];
      squares += x * x;
    }
    tile.errors[lane()] = kernel_math::sqrt(squares / static_cast<float>(format.group));
  }
  sync();
  for (std::uint32_t i = lane(); i < kSuper; i += kGroup)
    tile.weights[i] = tile.errors[i / format.group] + kernel_math::abs(tile.x[i]);
  sync();
}

// Chooses the first numbers of a larger block from the grids of its groups.
SHUNT_FUNCTION void start_super(Tile& tile, const Format& format, Super& block) {
  const std::uint32_t groups = kSuper / format.group;
  if (lane() < groups) {
    const Group of = group_of(tile, format, lane());
    const Trial* const trials = tile.trials + std::uint64_t{lane()} * trials_of(format);
    tile.grids[lane()] = format.has_min ? best_grid(format, of, trials) : best_scale(format, of, trials);
  }
  sync();
  if (lane() == 0) {
    float scale = 0.0F;  // the first of the largest magnitude
    float min = 0.0F;
    for (std::uint32_t g = 0; g < groups; ++g) {
      if (kernel_math::abs(tile.grids[g].scale) > kernel_math::abs(scale)) scale = tile.grids[g].scale;
      if (tile.grids[g].min > min) min = tile.grids[g].min;
    }
    block.scale = f16_scale(scale / (format.has_min ? format.scale_high : format.scale_low));
    block.min = f16_scale(min / format.scale_high);
  }
  sync();
  if (lane() < groups) {
    const Grid grid = tile.grids[lane()];
    block.scales[lane()] = nearest(grid.scale * inverse(widen_f16(block.scale)), format.scale_low, format.scale_high);
    block.mins[lane()] = nearest(grid.min * inverse(widen_f16(block.min)), 0.0F, format.scale_high);
  }
  sync();
}

// Finds the numbers of a block of 256 elements, which supers[0] then holds, and the grids of its groups.
SHUNT_FUNCTION void find_super(Tile& tile, const Format& format) {
  const std::uint32_t groups = kSuper / format.group;
  Super& best = tile.supers[0];
  Super& other = tile.supers[1];
  start_super(tile, format, best);
  float error = refine(tile, format, best);
  for (std::uint32_t round = 0; round < 2; ++round) {
    if (lane() == 0) other = best;
    sync();
    solve_block(tile, format, other);
    const float other_error = refine(tile, format, other);
    if (!(other_error < error)) break;
    error = other_error;
    if (lane() == 0) best = other;
    sync();
  }
  if (lane() < groups) tile.grids[lane()] = grid_of(best, best.scales[lane()], best.mins[lane()]);
}

// Finds the scales, minima and codes of a tile whose x is filled in. `elements` is how many of them there are; the rest
// may hold anything. REQUIRES: all threads of the block call it, after they have filled in x.
SHUNT_FUNCTION void encode_tile(Tile& tile, std::uint32_t to, std::uint32_t elements) {
  if (lane() == 0) tile.format = format_of(to, tile.level);
  if (lane() < 16) tile.level[lane()] = to == dtype::MXFP4 ? mx_level(lane()) : codebook_level(lane());
  for (std::uint32_t i = lane(); i < elements; i += kGroup) tile.weights[i] = 1.0F;
  sync();
  const Format& format = tile.format;
  const std::uint32_t groups = elements / format.group;
  if (format.elements == kSuper) weigh(tile, format);
  if (to != dtype::Q8_0) try_all(tile, format, groups);
  if (format.elements == kSuper)
    find_super(tile, format);
  else if (lane() < groups)
    find_small(tile, format, to, lane());
  sync();
  for (std::uint32_t i = lane(); i < elements; i += kGroup) {
    const Grid grid = tile.grids[i / format.group];
    const float level = level_of(format, tile.x[i], grid.min, inverse(grid.scale));
    tile.codes[i] = static_cast<std::uint8_t>(code_of(format, level));
  }
  sync();
}

}  // namespace shunt::encoding
