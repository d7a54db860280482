// Many rows of x times a weight in strips, or times gate and up.
#include "ops/linear/strip_product.cuh"

namespace shunt {
namespace {

// Where a thread's sums of a tile go: two rows of the weight, and of each 8 rows of x two that follow each other.
struct Outputs {
  std::uint32_t rows = 0;  // of x, from the thread's first on
  float* out;
  std::uint32_t out_distance;
  const float* residual;
  std::uint32_t residual_distance;
  const float* x_factors;
  bool has_up;
  bool has_residual;

  SHUNT_FUNCTION void multiply(float (&results)[2], std::uint32_t i) const {
    const float factor = place_of_sum(i) < rows ? fresh_float(x_factors + place_of_sum(i)) : 0.0F;
    results[0] *= factor;
    results[1] *= factor;
  }
  SHUNT_FUNCTION void add_residual(float (&results)[2], std::uint32_t i) const {
    if (place_of_sum(i) >= rows) return;
    const float* const at = residual + std::uint64_t{residual_distance} * place_of_sum(i);
    results[0] += fresh_float(at);
    results[1] += fresh_float(at + kStripRows);
  }
  SHUNT_FUNCTION void store_plain(const float (&results)[2], std::uint32_t i) const {
    if (place_of_sum(i) >= rows) return;
    float* const at = out + std::uint64_t{out_distance} * place_of_sum(i);
    at[0] = results[0];
    at[kStripRows] = results[1];
  }
  // For gate and up.
  SHUNT_FUNCTION void store_swiglu(const float (&results)[2], std::uint32_t i) const {
    if (place_of_sum(i) >= rows) return;
    out[std::uint64_t{out_distance} * place_of_sum(i)] = silu(results[0]) * results[1];
  }
  template <std::uint32_t count>
  SHUNT_FUNCTION void store(float (&results)[count][2], std::uint32_t first) const {
    if (has_up) {
      SHUNT_UNROLL
      for (std::uint32_t i = 0; i < count; ++i) store_swiglu(results[i], first + i);
      return;
    }
    if (has_residual) {
      SHUNT_UNROLL
      for (std::uint32_t i = 0; i < count; ++i) add_residual(results[i], first + i);
    }
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < count; ++i) store_plain(results[i], first + i);
  }
};

// The work of this submission: tiles of the same rows of the weight follow each other.
template <class S>
struct Work {
  const CudaCall* call;
  std::uint32_t rows;    // of x
  std::uint32_t strips;  // of both matrices, those of gate and up in turn
  std::uint32_t x_tiles;
  std::uint32_t tiles;

  SHUNT_FUNCTION explicit Work(const CudaCall* of)
      : call(of),
        rows(static_cast<std::uint32_t>(linear_rows(args(), parameters_of(of)))),
        strips(args().m / kStripRows * (1U + args().has_up)),
        x_tiles((rows + S::kXRows - 1U) / S::kXRows),
        tiles((strips + kStrips - 1U) / kStrips * x_tiles) {}

  SHUNT_FUNCTION const LinearArgs& args() const { return arguments_of<LinearArgs>(call); }
  SHUNT_FUNCTION std::uint32_t k() const { return args().k; }
  SHUNT_FUNCTION std::uint32_t splits() const { return constants_of<std::uint32_t>(call); }
  SHUNT_FUNCTION float* split_sums() const {
    return reinterpret_cast<float*>(call->scratch + linear_x_scratch(rows, args().k, S::kHalves));
  }
  SHUNT_FUNCTION std::uint32_t eights() const { return (rows + kLinearPieceRows - 1U) / kLinearPieceRows; }
  SHUNT_FUNCTION Pieces pieces_of(std::uint32_t tile) const {
    constexpr std::uint32_t kEights = S::kXRows / kLinearPieceRows;
    const std::uint32_t first = tile % x_tiles * kEights;
    return {first, eights() - first < kEights ? eights() - first : kEights};
  }

  struct TileStrips {
    const Work* work;
    std::uint32_t first;
    std::uint32_t count;

    SHUNT_FUNCTION const std::uint8_t* at(std::uint32_t i) const {
      const LinearArgs& args = work->args();
      const std::uint32_t strip = first + i;
      const std::uint32_t of_matrix = args.has_up != 0 ? strip / 2U : strip;
      return input_of<std::uint8_t>(work->call, args.has_up != 0 && strip % 2U == 1 ? 3 : 1) +
             std::uint64_t{of_matrix} * kStripRows * args.weight_row_bytes;
    }
  };
  SHUNT_FUNCTION std::uint32_t first_strip(std::uint32_t tile) const { return tile / x_tiles * kStrips; }
  SHUNT_FUNCTION TileStrips strips_of(std::uint32_t tile) const {
    const std::uint32_t first = first_strip(tile);
    return {this, first, strips - first < kStrips ? strips - first : kStrips};
  }

  SHUNT_FUNCTION Outputs outputs(std::uint32_t tile) const {
    Outputs to;
    const std::uint32_t strip = first_strip(tile) + lane() / 32U * 2U;
    const std::uint32_t first = tile % x_tiles * S::kXRows + lane() % 4U * 2U;
    if (strip >= strips || first >= rows) return to;
    to.rows = rows - first;
    to.has_up = args().has_up != 0;
    to.has_residual = args().has_residual != 0;
    const std::uint32_t column = strip / (1U + args().has_up) * kStripRows + lane() % 32U / 4U;
    to.out_distance = linear_row_distance(args(), args().out_strides);
    to.out = output_of<float>(call) + std::uint64_t{first} * to.out_distance + column;
    to.residual_distance = linear_row_distance(args(), args().residual_strides);
    to.residual = input_of<float>(call, 2) + std::uint64_t{first} * to.residual_distance + column;
    to.x_factors =
        reinterpret_cast<const float*>(call->scratch + linear_x_tiles_bytes(rows, args().k, S::kHalves)) + first;
    return to;
  }
  SHUNT_FUNCTION static void finish() {}
};

// F32 has no strips.
template <std::uint32_t of, std::uint32_t x_rows, bool is_exact>
SHUNT_FUNCTION void multiply_if_in_strips(const CudaCall* call) {
  using S = Shape<of, x_rows, is_exact>;
  if constexpr (of != dtype::F32) multiply_weights<S>(Work<S>(call));
}

}  // namespace
}  // namespace shunt

#define SHUNT_LINEAR_PRODUCT(weight, arithmetic, x_rows)                                                     \
  SHUNT_BOUNDED_KERNEL(linear_product_##weight##_##arithmetic##_##x_rows, shunt::kLinearProductThreads, 1) { \
    shunt::multiply_if_in_strips<shunt::dtype::weight, x_rows, shunt::arithmetic>(call);                     \
  }
#define SHUNT_SMALL_LINEAR_PRODUCTS(weight) \
  SHUNT_LINEAR_PRODUCT(weight, halves, 16)  \
  SHUNT_LINEAR_PRODUCT(weight, halves, 32)  \
  SHUNT_LINEAR_PRODUCT(weight, halves, 64)  \
  SHUNT_LINEAR_PRODUCT(weight, halves, 128) \
  SHUNT_LINEAR_PRODUCT(weight, exact, 16)   \
  SHUNT_LINEAR_PRODUCT(weight, exact, 32)   \
  SHUNT_LINEAR_PRODUCT(weight, exact, 64)
#if defined(SHUNT_HAS_WGMMA)
#define SHUNT_FOR_WEIGHT(weight)            \
  SHUNT_SMALL_LINEAR_PRODUCTS(weight)       \
  SHUNT_LINEAR_PRODUCT(weight, halves, 256) \
  SHUNT_LINEAR_PRODUCT(weight, exact, 128)
#else  // threads have too few registers for more
#define SHUNT_FOR_WEIGHT(weight) SHUNT_SMALL_LINEAR_PRODUCTS(weight)
#endif
#include "ops/each_weight.cuh"
