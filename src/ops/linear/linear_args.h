// linear and linear_add: out[t, r] = sum over c of x[t, c] * weight[r, c], plus residual[t, r] if there is one.
// rms_norm_linear: the same with x[t, c] * norm[c] / sqrt(mean over c of x[t, c]^2 + epsilon) for x[t, c].
// rms_norm_swiglu: the same with two weights, gate and up, giving silu(first product) * second product.
//
// x [..., k] F32, F16 or BF16: all axes but the last are rows ("tokens"). weight [m, k] of any floating or quantized
// dtype, layout rows. residual and out [..., m] F32. x may have any strides; in the others the elements of a row are
// adjacent.
#pragma once

#include "ops/strided_args.h"

// Extents are the axes of x except the last, outermost first; missing ones and the fourth are 1. Strides count
// elements.
SHUNT_ARGS(LinearArgs) {
  SHUNT_U32S(4, extents);
  SHUNT_U32S(4, x_strides);  // last: of the columns
  SHUNT_U32S(4, out_strides);
  SHUNT_U32S(4, residual_strides);
  SHUNT_U32(extent);  // value of an Extent: what counts the valid entries of extents[0]
  SHUNT_U32(k);
  SHUNT_U32(m);
  SHUNT_U32(x_dtype);  // value of a DType
  SHUNT_U32(weight_dtype);
  SHUNT_U32(weight_row_bytes);
  SHUNT_U32(has_residual);
  SHUNT_U32(has_norm);
  SHUNT_F32(epsilon);
  SHUNT_U32(has_up);
  SHUNT_U32S(2, reserved);
};
SHUNT_ARGS_BYTES(LinearArgs, 112)

// Rows of x per block of the CUDA kernel and per workgroup of the shader.
SHUNT_ARGS_CONSTANT(kLinearGroupRows, 4)
// The most rows of x that the kernel for few rows takes.
SHUNT_ARGS_CONSTANT(kLinearRowXRows, 8)
// The CUDA kernel for few rows: rows of the weight per warp, and columns that a warp takes at once.
SHUNT_ARGS_CONSTANT(kLinearRowWeights, 2)
SHUNT_ARGS_CONSTANT(kLinearRowPiece, 1024)
// The warps that keep a large GPU busy: three blocks for each of an H100's 132 multiprocessors.
SHUNT_ARGS_CONSTANT(kLinearRowEnough, 3168)
// Rows of the weight, and of x, per workgroup of the kernel for many rows.
SHUNT_ARGS_CONSTANT(kLinearTileRows, 64)
// The CUDA kernel for many rows: rows of the weight, or of gate and up, per block, and its threads.
SHUNT_ARGS_CONSTANT(kLinearTileWeights, 128)
SHUNT_ARGS_CONSTANT(kLinearTileThreads, 256)
// The same by matrix instructions.
SHUNT_ARGS_CONSTANT(kLinearHalvesWeights, 128)
SHUNT_ARGS_CONSTANT(kLinearHalvesThreads, 256)
// The CUDA kernel for few rows of a weight of F32: its threads, and the rows of x and of the weight per warp.
SHUNT_ARGS_CONSTANT(kLinearWarpsThreads, 128)
SHUNT_ARGS_CONSTANT(kLinearWarpsRows, 4)
SHUNT_ARGS_CONSTANT(kLinearWarpsWeights, 8)
// The CUDA kernel for weights in strips: its threads, pairs of strips whose sums a block keeps for one row of x, the
// most bytes of its ring, and the bytes of a block's shared memory, at least (more than half of what a multiprocessor
// has, so that each has one block) and at most.
SHUNT_ARGS_CONSTANT(kLinearStripThreads, 512)
SHUNT_ARGS_CONSTANT(kLinearStripPairs, 16)
SHUNT_ARGS_CONSTANT(kLinearStripRing, 114688)
SHUNT_ARGS_CONSTANT(kLinearStripLeast, 118784)
SHUNT_ARGS_CONSTANT(kLinearStripMost, 232448)
// The CUDA kernel for many rows and weights in strips: rows of the weight per tile, and its threads.
SHUNT_ARGS_CONSTANT(kLinearProductWeights, 128)
SHUNT_ARGS_CONSTANT(kLinearProductThreads, 384)
// The kernel before it, which writes x as tiles of halves: rows of x per block, and its threads.
SHUNT_ARGS_CONSTANT(kLinearXTilesRows, 2)
SHUNT_ARGS_CONSTANT(kLinearXTilesThreads, 256)

#ifndef SHUNT_GLSL
namespace shunt {

// Returns the number of rows that the program was prepared for.
constexpr std::uint64_t linear_capacity(const LinearArgs& args) {
  return std::uint64_t{args.extents[0]} * args.extents[1] * args.extents[2];
}

// Returns the number of rows to compute in this submission, counted from the first.
constexpr std::uint64_t linear_rows(const LinearArgs& args, const Parameters& parameters) {
  return std::uint64_t{valid_rows(args.extents[0], static_cast<Extent>(args.extent), parameters)} * args.extents[1] *
         args.extents[2];
}

// Returns how many rows of x the CUDA kernel for few rows is compiled for, at least linear_capacity(args).
constexpr std::uint32_t linear_row_x_rows(const LinearArgs& args) {
  std::uint32_t rows = 1;
  while (rows < linear_capacity(args)) rows *= 2;
  return rows;
}

// Returns the threads of its blocks, which limits shared memory to what every GPU has.
constexpr std::uint32_t linear_row_threads(std::uint32_t x_rows) { return x_rows < 8 ? 256 : 128; }

// Returns the columns of x that it holds in shared memory at a time.
constexpr std::uint32_t linear_row_tile(std::uint32_t x_rows) {
  return x_rows < 4 ? 4 * kLinearRowPiece / x_rows : kLinearRowPiece;
}

// Returns how many pairs of rows of the weight, or of rows of gate and up, there are.
constexpr std::uint64_t linear_row_pairs(const LinearArgs& args) {
  return (std::uint64_t{args.m} * (1 + args.has_up) + 1) / kLinearRowWeights;
}

// Returns how many of its warps share the columns of a pair: as many as there are pieces of a tile, so that all warps
// have nearly the same to do.
constexpr std::uint32_t linear_row_warps(const LinearArgs& args) {
  const std::uint32_t most = linear_row_tile(linear_row_x_rows(args)) / kLinearRowPiece;
  std::uint32_t warps = 1;
  while (warps < most && warps * kLinearRowPiece < args.k) warps *= 2;
  return warps;
}

// Returns how many pairs one after the other a warp may take, for whose sums there is shared memory.
constexpr std::uint32_t linear_row_most_turns(std::uint32_t x_rows) { return x_rows < 8 ? 32 : 8; }

// Returns how many it takes: more where there are many pairs and one tile holds all of x, which so is read once.
constexpr std::uint32_t linear_row_turns(const LinearArgs& args) {
  const std::uint32_t x_rows = linear_row_x_rows(args);
  if (args.k > linear_row_tile(x_rows)) return 1;
  const std::uint64_t shares = linear_row_pairs(args) * linear_row_warps(args);
  const std::uint64_t turns = (shares + kLinearRowEnough - 1) / kLinearRowEnough;
  return turns < linear_row_most_turns(x_rows) ? static_cast<std::uint32_t>(turns) : linear_row_most_turns(x_rows);
}

// Returns how many tiles of `each` rows hold `rows`.
constexpr std::uint64_t linear_tiles(std::uint64_t rows, std::uint32_t each) { return (rows + each - 1) / each; }

// Returns the blocks of the CUDA kernel for few rows.
constexpr std::uint64_t linear_row_blocks(const LinearArgs& args) {
  const std::uint64_t warps = linear_row_threads(linear_row_x_rows(args)) / 32;
  const std::uint64_t each = warps / linear_row_warps(args) * linear_row_turns(args);
  return (linear_row_pairs(args) + each - 1) / each;
}

// ---- The CUDA kernel for weights in strips. A block multiplies pairs of strips: of its own stretch of the matrix, or
// of gate and up.

// The properties of the weight's dtype on which its shared memory depends.
struct LinearStripShape {
  std::uint32_t chunk_columns = 0;
  std::uint32_t chunk_bytes = 0;
  std::uint32_t x_column_bytes = 0;  // of a column of x, for one row
  std::uint32_t sum_columns = 0;     // of a sum of x; 0: there are no sums
};

inline constexpr std::uint32_t kLinearStripWarps = kLinearStripThreads / 32;
inline constexpr std::uint32_t kLinearStripHead = 1024;  // bytes of barriers and small things
inline constexpr std::uint32_t kLinearStripMostStages = 8;

// How a block uses its shared memory: the kernel's constants. Offsets are in bytes; sums follow the head.
struct alignas(16) LinearStripPlan {
  std::uint32_t chunks = 0;    // of a strip
  std::uint32_t segment = 0;   // chunks of x in shared memory at a time
  std::uint32_t segments = 0;  // how often
  std::uint32_t batch = 0;     // pairs whose sums a block keeps at a time, twice
  std::uint32_t stages = 0;    // of the ring
  std::uint32_t x_at = 0;
  std::uint32_t x_sums_at = 0;
  std::uint32_t x_sizes_at = 0;
  std::uint32_t ring_at = 0;
  std::uint32_t shared_bytes = 0;
  std::uint32_t reserved[2]{};

  // Returns whether the kernel for one row can follow the plan: shared memory holds all of x, and the sums of
  // kLinearStripPairs pairs.
  [[nodiscard]] constexpr bool is_for_row() const { return segments == 1 && batch == kLinearStripPairs; }
};
static_assert(sizeof(LinearStripPlan) == 48);

// Returns how many strips the weight, or each of gate and up, has.
constexpr std::uint32_t linear_strip_count(const LinearArgs& args) { return args.m / 8; }

// Returns the bytes of the sums of a pair: 16 rows of the weight for each warp.
constexpr std::uint32_t linear_strip_sum_bytes(std::uint32_t x_rows) { return 16 * 4 * kLinearStripWarps * x_rows; }

// Returns the plan for x with `k` columns. All of x is in shared memory if there is room, if need be at the cost of
// sums, which then are stored more often; otherwise one segment after the other.
constexpr LinearStripPlan linear_strip_plan(std::uint32_t k, const LinearStripShape& shape, std::uint32_t x_rows) {
  constexpr std::uint32_t kAlignment = 128;
  const std::uint32_t stage_bytes = 2 * kLinearStripWarps * shape.chunk_bytes;
  const std::uint32_t x_bytes = shape.chunk_columns * shape.x_column_bytes * x_rows;  // of a chunk
  // Sums of x are pairs of halves.
  const std::uint32_t x_sum_bytes = shape.sum_columns == 0 ? 0 : shape.chunk_columns / shape.sum_columns * 4 * x_rows;
  const std::uint32_t x_size_bytes = 4 * x_rows;
  const std::uint32_t chunk_bytes = x_bytes + x_sum_bytes + x_size_bytes;
  const std::uint32_t sum_bytes = 2 * linear_strip_sum_bytes(x_rows);
  const std::uint32_t room = kLinearStripMost - kLinearStripHead - 2 * stage_bytes - kAlignment;
  LinearStripPlan plan{.chunks = k / shape.chunk_columns, .batch = kLinearStripPairs / x_rows};
  const std::uint64_t all_of_x = std::uint64_t{plan.chunks} * chunk_bytes;
  while (plan.batch > 1 && all_of_x + std::uint64_t{plan.batch} * sum_bytes > room) plan.batch /= 2;
  plan.segment = plan.chunks;
  if (all_of_x + std::uint64_t{plan.batch} * sum_bytes > room) {
    plan.batch = kLinearStripPairs / x_rows;
    plan.segment = (room - plan.batch * sum_bytes) / chunk_bytes;
  }
  plan.segments = plan.segment == 0 ? 0 : (plan.chunks + plan.segment - 1) / plan.segment;
  plan.x_at = kLinearStripHead + plan.batch * sum_bytes;
  plan.x_sums_at = plan.x_at + plan.segment * x_bytes;
  plan.x_sizes_at = plan.x_sums_at + plan.segment * x_sum_bytes;
  plan.ring_at = (plan.x_sizes_at + plan.segment * x_size_bytes + kAlignment - 1) / kAlignment * kAlignment;
  const std::uint32_t left = kLinearStripMost - plan.ring_at;
  plan.stages = (left < kLinearStripRing ? left : kLinearStripRing) / stage_bytes;
  if (plan.stages < 2) plan.stages = 2;
  if (plan.stages > kLinearStripMostStages) plan.stages = kLinearStripMostStages;
  const std::uint32_t needed = plan.ring_at + plan.stages * stage_bytes;
  plan.shared_bytes = needed < kLinearStripLeast ? kLinearStripLeast : needed;
  return plan;
}

// The CUDA kernels for many rows and weights in strips: linear_x_tiles writes x as halves, linear_product multiplies.
// The tiles consist of pieces of 8 rows by 64 columns, and hold 1 or 2 (exact) halves per element: [k / 64][halves]
// [rows / 8][columns / 8][8 rows][8 columns]. Within 16 columns the order is 4 t, 4 t + 1 for t = 0 to 3, then 4 t + 2,
// 4 t + 3. The factors of the rows follow, as floats.
inline constexpr std::uint32_t kLinearPieceRows = 8;
inline constexpr std::uint32_t kLinearPieceColumns = 64;
inline constexpr std::uint32_t kLinearPieceBytes = kLinearPieceRows * kLinearPieceColumns * 2;

constexpr std::uint64_t linear_x_tiles_bytes(std::uint64_t rows, std::uint32_t k, std::uint32_t halves) {
  return linear_tiles(rows, kLinearPieceRows) * (k / kLinearPieceColumns) * halves * kLinearPieceBytes;
}
// Returns the bytes of scratch memory that hold tiles and factors; sums of tiles whose columns are split come after
// them.
constexpr std::uint64_t linear_x_scratch(std::uint64_t rows, std::uint32_t k, std::uint32_t halves) {
  return linear_x_tiles_bytes(rows, k, halves) + linear_tiles(rows, kLinearPieceRows) * kLinearPieceRows * 4;
}
// Returns the bytes of the sums of a tile.
constexpr std::uint64_t linear_product_sum_bytes(std::uint32_t x_rows) {
  return std::uint64_t{kLinearProductWeights} * x_rows * 4;
}

// Returns whether all rows of a tensor with these strides lie at equal distances, which linear_product requires of the
// residual and the result; and the distance.
constexpr std::uint32_t linear_row_distance(const LinearArgs& args, const std::uint32_t (&strides)[4]) {
  return args.extents[2] > 1 ? strides[2] : args.extents[1] > 1 ? strides[1] : strides[0];
}
constexpr bool linear_rows_are_even(const LinearArgs& args, const std::uint32_t (&strides)[4]) {
  const std::uint64_t distance = linear_row_distance(args, strides);
  return (args.extents[1] == 1 || strides[1] == distance * args.extents[2]) &&
         (args.extents[0] == 1 || strides[0] == distance * args.extents[2] * args.extents[1]);
}

// Returns the blocks of linear_x_tiles.
constexpr std::uint64_t linear_x_tiles_blocks(const LinearArgs& args) {
  return linear_tiles(linear_capacity(args), kLinearPieceRows) * (kLinearPieceRows / kLinearXTilesRows);
}

// Returns how many tiles there are with `x_rows` rows of x in each. With gate and up, a tile has rows of both.
constexpr std::uint64_t linear_product_tiles(const LinearArgs& args, std::uint32_t x_rows) {
  return linear_tiles(std::uint64_t{args.m} * (1 + args.has_up), kLinearProductWeights) *
         linear_tiles(linear_capacity(args), x_rows);
}

// Its rings in shared memory: a stage of weights is 16 strips of one or two chunks of columns, one of x 64 columns of a
// tile's rows. All that a multiprocessor of compute capability 9.0 gives to a block, less 1 KiB for barriers, is used.
inline constexpr std::uint32_t kLinearProductShared = 226U << 10U;
// Returns the bytes of a strip in a stage; `columns` and `bytes` are those of a chunk (ops/strips.h). They are one
// copy, and a multiprocessor of an H200 starts one in 60 clocks.
constexpr std::uint32_t linear_product_strip_bytes(std::uint32_t columns, std::uint32_t bytes) {
  return columns < 256 ? 2 * bytes : bytes;
}
constexpr std::uint32_t linear_product_weight_stages(std::uint32_t strip_bytes) {
  const std::uint32_t stages = (64U << 10U) / (16 * strip_bytes);
  return stages < 3 ? 3 : stages > 6 ? 6 : stages;
}
constexpr std::uint32_t linear_product_x_stages(std::uint32_t strip_bytes, std::uint32_t x_rows, std::uint32_t halves) {
  const std::uint32_t weights = linear_product_weight_stages(strip_bytes) * 16 * strip_bytes;
  const std::uint32_t stages =
      (kLinearProductShared - weights) / (x_rows / kLinearPieceRows * halves * kLinearPieceBytes);
  return stages > 8 ? 8 : stages;
}
// Returns the bytes of dynamic shared memory.
constexpr std::uint32_t linear_product_shared(std::uint32_t strip_bytes, std::uint32_t x_rows, std::uint32_t halves) {
  return linear_product_weight_stages(strip_bytes) * 16 * strip_bytes +
         linear_product_x_stages(strip_bytes, x_rows, halves) * (x_rows / kLinearPieceRows) * halves *
             kLinearPieceBytes;
}

// The CUDA kernel for many rows and weights in rows by matrix instructions, which reads tiles of x as linear_product
// does. Bytes of the weight come to shared memory for so many columns at a time: at least a block, and 64.
constexpr std::uint32_t linear_halves_columns(std::uint32_t block_elements) {
  return block_elements == 1 ? 64 : block_elements < 128 ? 128 : block_elements;
}
// Returns the distance of rows there. Copies are of 16 bytes and rows begin anywhere; an odd number of sixteens spreads
// rows over the banks.
constexpr std::uint32_t linear_halves_pitch(std::uint32_t chunk_bytes) { return ((chunk_bytes + 30) / 16 | 1) * 16; }
// With tiles of so many rows of x, the columns of the next step are decoded while those of one are multiplied.
constexpr bool linear_halves_decodes_ahead(std::uint32_t x_rows) { return x_rows > 128; }
// Returns the bytes of dynamic shared memory: those bytes and their halves, for one step or two, and x for two.
constexpr std::uint32_t linear_halves_shared(std::uint32_t chunk_bytes, std::uint32_t x_rows) {
  const std::uint32_t weight_bytes =
      kLinearHalvesWeights * (linear_halves_pitch(chunk_bytes) + kLinearPieceColumns * 2);
  return weight_bytes * (linear_halves_decodes_ahead(x_rows) ? 2 : 1) + 2 * x_rows * kLinearPieceColumns * 2;
}

}  // namespace shunt
#endif
