#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <vector>

#include "ops/gpu_kernels.h"
#include "ops/linear/linear.h"
#include "ops/strips.h"

namespace shunt {
namespace {

std::uint64_t groups(const OpCall& call) {
  const LinearArgs args = linear_args(call);
  return (linear_capacity(args) + kLinearGroupRows - 1) / kLinearGroupRows * args.m;
}

Specialization specialization(const OpCall& call) { return {static_cast<std::uint32_t>(call.input(1).dtype)}; }

// With fewer rows than a workgroup has invocations, some would be idle.
std::string on_cpu_supports(const OpCall& call) {
  if (std::string reason = normalizes_refusal(call); !reason.empty()) return reason;
  const DType dtype = call.input(1).dtype;
  if (linear_args(call).m < kShaderGroupSize) return "linear: the weight has too few rows for this kernel";
  if (info_of(dtype).kind != DTypeKind::quantized || dtype == DType::Q8_0) return {};
  return fmt::format("linear: this kernel is not for weights of {}", name_of(dtype));
}

std::uint32_t on_cpu_x_rows(const LinearArgs& args) {
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(linear_capacity(args), 1, kLinearGroupRows));
}

std::uint64_t on_cpu_groups(const OpCall& call) { return (groups(call) + kShaderGroupSize - 1) / kShaderGroupSize; }

Specialization on_cpu_specialization(const OpCall& call) {
  const LinearArgs args = linear_args(call);
  return {args.weight_dtype, args.x_dtype, on_cpu_x_rows(args)};
}

bool on_cpu_runs_on(const ShaderLimits& limits) { return limits.on_cpu; }

// Each column of the weight is multiplied by up to four rows of x.
std::uint64_t rounds(const OpCall& call, const ShaderLimits& limits) {
  const std::uint64_t k = linear_args(call).k;
  if (limits.language == ShaderLanguage::essl300) return k;
  return rounds_over(k) * (1 + kLinearGroupRows) + kRoundsOfAGroup + kLinearGroupRows;
}
std::uint64_t on_cpu_rounds(const OpCall& call, const ShaderLimits&) {
  const LinearArgs args = linear_args(call);
  return args.k * (std::uint64_t{1} + on_cpu_x_rows(args)) + args.k / 32 + std::uint64_t{2} * kLinearGroupRows;
}

// Smaller subgroups mean a driver on the CPU, for which a barrier costs more than these kernels save.
constexpr std::uint32_t kSmallestSubgroup = 8;
constexpr GroupNeeds kRowNeeds = {.group = 32, .smallest_subgroup = kSmallestSubgroup};
// Every workgroup normalizes x again. That is free while it waits for the weights, but not on a CPU.
constexpr GroupNeeds kNormNeeds = {.group = 32, .smallest_subgroup = kSmallestSubgroup, .on_cpu = false};
constexpr GroupNeeds kTileNeeds = {.group = 128,
                                   .smallest_subgroup = kSmallestSubgroup,
                                   .shared_bytes = sizeof(float) * 2 * 32 * (kLinearTileRows + 4)};

// Returns why x cannot be read four elements at a time, or an empty string.
std::string fours_refusal(const LinearArgs& args) {
  const bool is_in_fours =
      args.x_strides[0] % 4 == 0 && args.x_strides[1] % 4 == 0 && args.x_strides[2] % 4 == 0 && args.x_strides[3] == 1;
  if (args.k % 8 == 0 && is_in_fours && static_cast<DType>(args.x_dtype) == DType::F32) return {};
  return "linear: x is not F32 in rows of a multiple of 8 elements";
}

std::string few_rows_refusal(const LinearArgs& args) {
  const std::uint64_t rows = linear_capacity(args);
  if (rows == 0 || rows > kLinearRowXRows) return "linear: x has too many rows for this kernel";
  return fours_refusal(args);
}

std::string row_supports(const OpCall& call) {
  const LinearArgs args = linear_args(call);
  if (args.has_norm != 0) return normalizes_refusal(call);
  return few_rows_refusal(args);
}

std::string norm_supports(const OpCall& call) {
  const LinearArgs args = linear_args(call);
  if (args.has_norm == 0) return "linear: x is not normalized";
  return few_rows_refusal(args);
}

std::uint64_t row_groups(const OpCall& call) { return linear_args(call).m; }

// An invocation takes eight columns at a time. Then the sums of the subgroups are added.
std::uint64_t row_rounds(const OpCall& call, const ShaderLimits&) {
  return linear_args(call).k / 8 / kRowNeeds.group + std::uint64_t{8} * kLinearRowXRows * kRowNeeds.group;
}

Specialization row_specialization(const OpCall& call) {
  const LinearArgs args = linear_args(call);
  return {args.weight_dtype, static_cast<std::uint32_t>(linear_capacity(args)), 1 + args.has_up, kRowNeeds.group};
}

std::string many_rows_refusal(const LinearArgs& args) {
  if (linear_capacity(args) <= kLinearRowXRows) return "linear: x has too few rows for this kernel";
  return fours_refusal(args);
}

std::string tile_supports(const OpCall& call) {
  if (std::string reason = normalizes_refusal(call); !reason.empty()) return reason;
  return many_rows_refusal(linear_args(call));
}

std::uint64_t tile_groups(const OpCall& call) {
  const LinearArgs args = linear_args(call);
  return linear_tiles(args.m, kLinearTileRows) * linear_tiles(linear_capacity(args), kLinearTileRows);
}

// A step loads 32 columns into shared memory, two eights per invocation, and multiplies them.
std::uint64_t tile_rounds(const OpCall& call, const ShaderLimits&) {
  constexpr std::uint64_t kColumns = 32;
  constexpr std::uint64_t kBringing = std::uint64_t{2} * (1 + 4 + 4);
  return (linear_args(call).k / kColumns + 1) * (1 + kBringing + kColumns) + 64;
}

Specialization tile_specialization(const OpCall& call) {
  return {linear_args(call).weight_dtype, 0, 0, kTileNeeds.group};
}

constexpr ShaderKernel kShaders[] = {
    {.supports = normalizes_refusal, .groups = groups, .specialization = specialization, .rounds = rounds},
    {.name = "linear_on_cpu",
     .supports = on_cpu_supports,
     .groups = on_cpu_groups,
     .specialization = on_cpu_specialization,
     .runs_on = on_cpu_runs_on,
     .rank = 4,
     .rounds = on_cpu_rounds},
    {.name = "linear_row",
     .supports = row_supports,
     .groups = row_groups,
     .specialization = row_specialization,
     .runs_on = offers<kRowNeeds>,
     .rank = 3,
     .rounds = row_rounds},
    {.name = "linear_norm",
     .supports = norm_supports,
     .groups = row_groups,
     .specialization = row_specialization,
     .runs_on = offers<kNormNeeds>,
     .rank = 3,
     .rounds = row_rounds},
    {.name = "linear_tile",
     .supports = tile_supports,
     .groups = tile_groups,
     .specialization = tile_specialization,
     .runs_on = offers<kTileNeeds>,
     .rank = 2,
     .rounds = tile_rounds},
};

// Returns why rows of the weight cannot be read in units, or an empty string.
std::string cuda_units_refusal(const LinearArgs& args) {
  if (args.k == 0 || args.m == 0) return "linear: the weight is empty";
  if (args.k % 32 != 0) return "linear: rows of the weight are not whole units of 32";
  return {};
}

std::string cuda_row_supports(const OpCall& call) {
  const LinearArgs args = linear_args(call);
  if (std::string reason = cuda_units_refusal(args); !reason.empty()) return reason;
  return few_rows_refusal(args);
}

std::string cuda_tile_supports(const OpCall& call) {
  const LinearArgs args = linear_args(call);
  if (std::string reason = cuda_units_refusal(args); !reason.empty()) return reason;
  return many_rows_refusal(args);
}

std::uint64_t cuda_row_blocks(const OpCall& call) { return linear_row_blocks(linear_args(call)); }
std::uint32_t cuda_row_threads(const OpCall& call) { return linear_row_threads(linear_row_x_rows(linear_args(call))); }

std::uint64_t cuda_tile_blocks(const OpCall& call) {
  const LinearArgs args = linear_args(call);
  return linear_tiles(args.m, kLinearTileWeights / (1 + args.has_up)) *
         linear_tiles(linear_capacity(args), kLinearTileRows);
}

std::string uneven_rows_refusal(const LinearArgs& args) {
  if (linear_rows_are_even(args, args.out_strides) && linear_rows_are_even(args, args.residual_strides)) return {};
  return "linear: rows of the result or of the residual lie at different distances";
}

// Many rows of a weight in rows, by matrix instructions. Not all GPUs have shared memory for large tiles.
std::uint32_t halves_chunk_bytes(const OpCall& call) {
  const DTypeInfo& dtype = info_of(call.input(1).dtype);
  return linear_halves_columns(dtype.block_elements) / dtype.block_elements * dtype.block_bytes;
}

std::uint64_t halves_blocks(const LinearArgs& args, std::uint32_t x_rows) {
  return linear_tiles(args.m, kLinearHalvesWeights / (1 + args.has_up)) * linear_tiles(linear_capacity(args), x_rows);
}

// A tile of x, and an estimate of the clocks of 64 columns on a multiprocessor that computes one such tile, or as many
// as it has room for.
struct HalvesTile {
  std::uint32_t x_rows;
  std::uint32_t together;
  double clocks_alone;
  double clocks_together;
};
constexpr HalvesTile kHalvesTiles[] = {
    {32, 2, 700, 1120}, {64, 2, 1000, 1700}, {128, 2, 1600, 2580}, {256, 1, 2200, 2200}};

// Returns the rows of x in a tile, of those that are no more than `most`, that take the shortest time on a large GPU.
template <std::uint32_t most>
std::uint32_t halves_x_rows(const OpCall& call) {
  const LinearArgs args = linear_args(call);
  const auto time = [&](const HalvesTile& tile) {
    if (tile.x_rows > most) return std::numeric_limits<double>::infinity();
    const std::uint64_t at_once = kMultiprocessors * tile.together;
    const std::uint64_t blocks = halves_blocks(args, tile.x_rows);
    const std::uint64_t rest = blocks % at_once;
    const double last = rest == 0 ? 0 : rest <= kMultiprocessors ? tile.clocks_alone : tile.clocks_together;
    return static_cast<double>(blocks / at_once) * tile.clocks_together + last;
  };
  return std::ranges::min(kHalvesTiles, {}, time).x_rows;
}

// A tile of so few rows of x would be padding, mostly; strips and row kernels are always faster.
constexpr std::uint32_t kLeastTileRows = kLinearRowXRows / 2 + 1;
std::string tiny_tile_refusal(const LinearArgs& args) {
  return linear_capacity(args) < kLeastTileRows ? "linear: x has too few rows for this kernel" : std::string();
}
bool has_few_rows(const OpCall& call) { return linear_capacity(linear_args(call)) <= kLinearRowXRows; }

std::string cuda_halves_supports(const OpCall& call) {
  const LinearArgs args = linear_args(call);
  if (std::string reason = cuda_units_refusal(args); !reason.empty()) return reason;
  if (std::string reason = tiny_tile_refusal(args); !reason.empty()) return reason;
  if (std::string reason = fours_refusal(args); !reason.empty()) return reason;
  if (args.k % kLinearPieceColumns != 0) return "linear: x has no whole pieces of 64 columns";
  return uneven_rows_refusal(args);
}
template <std::uint32_t most>
std::uint64_t cuda_halves_blocks(const OpCall& call) {
  return halves_blocks(linear_args(call), halves_x_rows<most>(call));
}
template <std::uint32_t most>
std::string cuda_halves_variant(const OpCall& call) {
  return fmt::format("_{}", halves_x_rows<most>(call));
}
template <std::uint32_t most>
std::uint32_t cuda_halves_shared_bytes(const OpCall& call) {
  return linear_halves_shared(halves_chunk_bytes(call), halves_x_rows<most>(call));
}
std::uint64_t cuda_halves_scratch_bytes(const OpCall& call) {
  const LinearArgs args = linear_args(call);
  return linear_x_scratch(linear_capacity(args), args.k, 1);
}

// Few rows of a weight of F32: linear_tile would leave most of a large GPU's multiprocessors without a tile.
std::string cuda_warps_supports(const OpCall& call) {
  if (call.input(1).dtype != DType::F32) return "linear: this kernel is for weights of F32";
  if (std::string reason = normalizes_refusal(call); !reason.empty()) return reason;
  return cuda_tile_supports(call);
}
bool has_tiles_for_all(const OpCall& call) {
  constexpr std::uint64_t kEnoughTiles = 64;
  return cuda_tile_blocks(call) >= kEnoughTiles;
}
std::uint64_t cuda_warps_blocks(const OpCall& call) {
  const LinearArgs args = linear_args(call);
  return linear_tiles(linear_tiles(linear_capacity(args), kLinearWarpsRows) * linear_tiles(args.m, kLinearWarpsWeights),
                      kLinearWarpsThreads / 32);
}

std::string cuda_dots_supports(const OpCall& call) {
  if (call.input(1).dtype != DType::F32) return "linear: this kernel is for weights of F32";
  if (linear_args(call).has_up != 0) return "linear: this kernel is for one weight";
  return cuda_row_supports(call);
}
// Each row of x reads all of the weight.
bool is_read_too_often(const OpCall& call) {
  constexpr std::uint32_t kMostRows = 512;
  return linear_args(call).m > kMostRows;
}
std::uint64_t cuda_dots_blocks(const OpCall& call) {
  const LinearArgs args = linear_args(call);
  return linear_capacity(args) * args.m;
}

std::string cuda_row_variant(const OpCall& call) { return fmt::format("_{}", linear_row_x_rows(linear_args(call))); }

// A row of x that is too long for the kernel of one row takes that of two.
std::uint32_t strips_x_rows(const OpCall& call) {
  const LinearArgs args = linear_args(call);
  const std::uint32_t rows = linear_row_x_rows(args);
  if (rows > 1 || linear_strip_plan(args.k, strip_shape(call.input(1).dtype), 1).is_for_row()) return rows;
  return 2;
}
std::string cuda_strips_variant(const OpCall& call) { return fmt::format("_{}", strips_x_rows(call)); }

LinearStripPlan strips_plan(const OpCall& call) {
  return linear_strip_plan(linear_args(call).k, strip_shape(call.input(1).dtype), strips_x_rows(call));
}

std::string cuda_strips_supports(const OpCall& call) {
  const LinearArgs args = linear_args(call);
  if (!has_strips(call.input(1).dtype, args.m, args.k)) return "linear: the weight cannot be in strips";
  return few_rows_refusal(args);
}

std::uint64_t cuda_strips_blocks(const OpCall& call) { return linear_strip_count(linear_args(call)); }

std::uint32_t cuda_strips_shared_bytes(const OpCall& call) { return strips_plan(call).shared_bytes; }

std::vector<std::uint32_t> cuda_strips_constants(const OpCall& call) {
  const auto words = std::bit_cast<std::array<std::uint32_t, sizeof(LinearStripPlan) / 4>>(strips_plan(call));
  return {words.begin(), words.end()};
}

// Many rows. How many halves an element of x is, and in how many rows of x a tile, are variants.
template <bool exact>
constexpr std::uint32_t kHalves = exact ? 2 : 1;

// The rows of x in a tile, and by how many blocks its columns are split.
struct ProductPlan {
  std::uint32_t x_rows = 16;
  std::uint32_t splits = 1;
};

std::string cuda_strips_joint(const OpCall& first, const OpCall& next) {
  const auto is_one_row = [](const OpCall& call) { return strips_x_rows(call) == 1; };
  if (!is_one_row(first) || !is_one_row(next)) return {};
#define SHUNT_JOINT_STRIPS(a, b)                                           \
  if (first.input(1).dtype == DType::a && next.input(1).dtype == DType::b) \
    return "shunt_linear_strips_joint_" #a "_" #b;
#include "ops/linear/joint_strips.def"
  return {};
}

std::uint32_t product_strip_bytes(const OpCall& call) {
  const StripChunk chunk = strip_chunk(call.input(1).dtype);
  return linear_product_strip_bytes(chunk.columns, chunk.bytes);
}

// Returns the clocks of 64 columns of a tile, by a model that was fitted to products on an H200: its tensor cores
// multiply, or bytes come to shared memory and each copy takes a while to begin.
double product_step_clocks(const OpCall& call, std::uint32_t x_rows, std::uint32_t halves) {
  constexpr double kBytesPerClock = 34;
  constexpr double kCopy = 45;
  const StripChunk chunk = strip_chunk(call.input(1).dtype);
  const std::uint32_t strip_bytes = chunk.bytes * kLinearPieceColumns / chunk.columns;
  const double copies = 16.0 * strip_bytes / product_strip_bytes(call) + halves;
  const double bytes = 16.0 * strip_bytes + 128.0 * halves * x_rows;
  return std::max(4.0 * (2 * halves - 1) * x_rows, bytes / kBytesPerClock + kCopy * copies) + 70;
}

// Returns the plan that takes the shortest time if each multiprocessor computes a part of a tile at a time. Blocks of
// a tile write their sums, and the last one reads those of the others. A tile has `most` halves of x in a column.
ProductPlan product_plan(const OpCall& call, std::uint32_t halves, std::uint32_t most) {
  constexpr std::uint32_t kMostSplits = 8;
  constexpr std::uint32_t kLeastSteps = 4;  // of a part
  constexpr double kPart = 1500;            // clocks, beside its products
  constexpr double kStore = 30;             // clocks for a row of x
  constexpr double kMerge = 30;             // clocks for a row of x and a part
  static_assert(kMultiprocessors / 2 * 8 * 4 <= kCudaCounterBytes, "a counter for each warp");
  const LinearArgs args = linear_args(call);
  const std::uint32_t steps = args.k / kLinearPieceColumns;
  ProductPlan chosen;
  double shortest = std::numeric_limits<double>::infinity();
  for (std::uint32_t x_rows = 16; x_rows <= most / halves; x_rows *= 2) {
    const std::uint64_t tiles = linear_product_tiles(args, x_rows);
    for (std::uint32_t splits = 1; splits <= kMostSplits; ++splits) {
      if (splits > 1 && (tiles * splits > kMultiprocessors || steps < splits * kLeastSteps)) break;
      const std::uint64_t rounds = (tiles * splits + kMultiprocessors - 1) / kMultiprocessors;
      const double part =
          kPart + kStore * x_rows + (steps + splits - 1) / splits * product_step_clocks(call, x_rows, halves);
      const double time = static_cast<double>(rounds) * part + (splits == 1 ? 0 : kMerge * x_rows * splits);
      if (time >= shortest) continue;
      shortest = time;
      chosen = {x_rows, splits};
    }
  }
  return chosen;
}

// Returns the fewest rows of x that tensor cores multiply in tiles of 16 in less time than strips do without: fewer
// where one half of x is enough and the weight is large (docs/measurements/2026-11-28-several-sequences.md).
std::uint32_t least_product_rows(const LinearArgs& args, bool exact) {
  constexpr std::uint32_t kManyColumns = 4096;
  constexpr std::uint64_t kManyElements = std::uint64_t{1} << 23U;
  const bool is_large = args.k >= kManyColumns || std::uint64_t{args.m} * (1 + args.has_up) * args.k >= kManyElements;
  return is_large && !exact ? kLeastTileRows : kLinearRowXRows + 1;
}
template <bool exact>
bool is_for_strips(const OpCall& call) {
  const LinearArgs args = linear_args(call);
  return linear_capacity(args) < least_product_rows(args, exact);
}

std::string cuda_product_supports(const OpCall& call) {
  const LinearArgs args = linear_args(call);
  if (std::string reason = tiny_tile_refusal(args); !reason.empty()) return reason;
  if (std::string reason = fours_refusal(args); !reason.empty()) return reason;
  if (!has_strips(call.input(1).dtype, args.m, args.k)) return "linear: the weight cannot be in strips";
  return uneven_rows_refusal(args);
}
template <bool exact, std::uint32_t most>
std::uint64_t cuda_product_blocks(const OpCall& call) {
  const ProductPlan plan = product_plan(call, kHalves<exact>, most);
  return linear_product_tiles(linear_args(call), plan.x_rows) * plan.splits;
}
template <bool exact, std::uint32_t most>
std::string cuda_product_variant(const OpCall& call) {
  return fmt::format("_{}_{}", exact ? "exact" : "halves", product_plan(call, kHalves<exact>, most).x_rows);
}
template <bool exact, std::uint32_t most>
std::uint32_t cuda_product_shared_bytes(const OpCall& call) {
  return linear_product_shared(product_strip_bytes(call), product_plan(call, kHalves<exact>, most).x_rows,
                               kHalves<exact>);
}
template <bool exact, std::uint32_t most>
std::vector<std::uint32_t> cuda_product_constants(const OpCall& call) {
  return {product_plan(call, kHalves<exact>, most).splits};
}
template <bool exact, std::uint32_t most>
std::uint64_t cuda_product_scratch_bytes(const OpCall& call) {
  const LinearArgs args = linear_args(call);
  const ProductPlan plan = product_plan(call, kHalves<exact>, most);
  const std::uint64_t x_bytes = linear_x_scratch(linear_capacity(args), args.k, kHalves<exact>);
  if (plan.splits == 1) return x_bytes;
  return x_bytes + linear_product_tiles(args, plan.x_rows) * plan.splits * linear_product_sum_bytes(plan.x_rows);
}

std::uint64_t cuda_x_tiles_blocks(const OpCall& call) { return linear_x_tiles_blocks(linear_args(call)); }
template <bool exact>
std::string cuda_x_tiles_variant(const OpCall&) {
  return exact ? "_exact" : "_halves";
}
// The tiles of x depend on its norm too, which is where other ops have a residual.
constexpr std::uint32_t kReadBefore = 1U << 0U | 1U << 2U;
std::uint64_t norm_epsilon(const OpCall& call) {
  const LinearArgs args = linear_args(call);
  return args.has_norm == 0 ? 0 : std::uint64_t{1} << 32U | std::bit_cast<std::uint32_t>(args.epsilon);
}
template <bool exact>
constexpr CudaKernel kXTiles{.name = "linear_x_tiles",
                             .blocks = cuda_x_tiles_blocks,
                             .threads = threads_of_block<kLinearXTilesThreads>,
                             .variant = cuda_x_tiles_variant<exact>};
// Only threads that take registers from others have enough for the largest tiles.
template <bool exact, std::uint32_t most>
constexpr CudaKernel kProduct{.name = "linear_product",
                              .supports = cuda_product_supports,
                              .blocks = cuda_product_blocks<exact, most>,
                              .threads = threads_of_block<kLinearProductThreads>,
                              .variant = cuda_product_variant<exact, most>,
                              .rank = (exact ? 2 : 4) + (most == 256 ? 1 : 0),
                              .yields = is_for_strips<exact>,
                              .is_for_one = most == 256,
                              .constants = cuda_product_constants<exact, most>,
                              .weights = Layout::strips,
                              .arithmetic = exact ? Arithmetic::f32 : Arithmetic::halves,
                              .most_blocks = 1,
                              .shared_bytes = cuda_product_shared_bytes<exact, most>,
                              .scratch_bytes = cuda_product_scratch_bytes<exact, most>,
                              .before = &kXTiles<exact>,
                              .read_before = kReadBefore,
                              .before_depends_on = norm_epsilon};

template <std::uint32_t most>
constexpr CudaKernel kLinearHalves{.name = "linear_halves",
                                   .supports = cuda_halves_supports,
                                   .blocks = cuda_halves_blocks<most>,
                                   .threads = threads_of_block<kLinearHalvesThreads>,
                                   .variant = cuda_halves_variant<most>,
                                   .rank = most == 256   ? 5
                                           : most == 128 ? 4
                                                         : 3,
                                   .yields = has_few_rows,
                                   .arithmetic = Arithmetic::halves,
                                   .shared_bytes = cuda_halves_shared_bytes<most>,
                                   .scratch_bytes = cuda_halves_scratch_bytes,
                                   .before = &kXTiles<false>,
                                   .read_before = kReadBefore,
                                   .before_depends_on = norm_epsilon};

constexpr CudaKernel kMoreCuda[] = {
    kProduct<true, 256>,
    kProduct<true, 128>,
    kProduct<false, 256>,
    kProduct<false, 128>,
    {.name = "linear",
     .supports = normalizes_refusal,
     .blocks = groups,
     .variant = for_strips,
     .weights = Layout::strips},
    {.name = "linear_row",
     .supports = cuda_row_supports,
     .blocks = cuda_row_blocks,
     .threads = cuda_row_threads,
     .variant = cuda_row_variant,
     .rank = 1},
    {.name = "linear_tile",
     .supports = cuda_tile_supports,
     .blocks = cuda_tile_blocks,
     .threads = threads_of_block<kLinearTileThreads>,
     .rank = 1},
    kLinearHalves<256>,
    kLinearHalves<128>,
    kLinearHalves<64>,
    {.name = "linear_warps",
     .supports = cuda_warps_supports,
     .blocks = cuda_warps_blocks,
     .threads = threads_of_block<kLinearWarpsThreads>,
     .rank = 2,
     .yields = has_tiles_for_all},
    {.name = "linear_dots",
     .supports = cuda_dots_supports,
     .blocks = cuda_dots_blocks,
     .threads = threads_of_block<kLinearWarpsThreads>,
     .rank = 2,
     .yields = is_read_too_often},
    {.name = "linear_strips",
     .supports = cuda_strips_supports,
     .blocks = cuda_strips_blocks,
     .threads = threads_of_block<kLinearStripThreads>,
     .variant = cuda_strips_variant,
     .rank = 2,
     .constants = cuda_strips_constants,
     .weights = Layout::strips,
     .most_blocks = 1,
     .shares_launch = true,
     .joint = cuda_strips_joint,
     .joint_source = "linear_strips_joint",
     .shared_bytes = cuda_strips_shared_bytes},
};

}  // namespace

// Returns what Strip<dtype> of ops/strip.cuh says.
LinearStripShape strip_shape(DType dtype) {
  const StripChunk chunk = strip_chunk(dtype);
  LinearStripShape shape{
      .chunk_columns = chunk.columns, .chunk_bytes = chunk.bytes, .x_column_bytes = dtype == DType::BF16 ? 6U : 4U};
  if (dtype == DType::Q2_K) shape.sum_columns = 16;
  for (const DType with_min : {DType::Q4_1, DType::Q5_1, DType::Q4_K, DType::Q5_K})
    if (dtype == with_min) shape.sum_columns = 32;
  return shape;
}

extern const GpuKernels linear_gpu{
    .shaders = kShaders, .cuda = {.supports = normalizes_refusal, .blocks = groups}, .more_cuda = kMoreCuda};

}  // namespace shunt
