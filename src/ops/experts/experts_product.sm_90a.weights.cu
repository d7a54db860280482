// Many uses of experts whose matrices are in strips: each matrix times the rows of x that use it, which experts_sort
// and experts_x_tiles have brought together.
//
// The tiles of the matrices of one ExpertsTile follow each other. Which those are only the kernels before this one
// know, so nothing is read before they have ended.
#include "ops/experts/experts_groups.cuh"
#include "ops/linear/strip_product.cuh"

namespace shunt {
namespace {

// Where a thread's sums of a tile go: two rows of the matrix, and of each 8 sorted rows two that follow each other.
struct UseOutputs {
  std::uint32_t rows = 0;    // sorted, from the thread's first on
  const std::int32_t* uses;  // from the same on
  const float* x_factors;
  float* out;
  std::uint32_t out_distance;
  float bias[2];

  SHUNT_FUNCTION void multiply(float (&results)[2], std::uint32_t i) const {
    const float factor = place_of_sum(i) < rows ? fresh_float(x_factors + place_of_sum(i)) : 0.0F;
    SHUNT_UNROLL
    for (std::uint32_t r = 0; r < 2; ++r) results[r] = results[r] * factor + bias[r];
  }
  template <std::uint32_t count>
  SHUNT_FUNCTION void store(float (&results)[count][2], std::uint32_t first) const {
    std::int32_t use[count];
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t place = place_of_sum(first + i);
      use[i] = place < rows ? static_cast<std::int32_t>(fresh_word(uses + place)) : kNoUse;
    }
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < count; ++i) {
      if (use[i] == kNoUse) continue;
      float* const at = out + std::uint64_t{static_cast<std::uint32_t>(use[i])} * out_distance;
      at[0] = results[i][0];
      at[kStripRows] = results[i][1];
    }
  }
};

// The work of this submission.
template <class S>
struct UsesWork {
  const CudaCall* call;
  SortedUses<S::kHalves> sorted;
  std::uint32_t matrix_tiles;
  std::uint32_t tiles;

  SHUNT_FUNCTION explicit UsesWork(const CudaCall* of)
      : call(of),
        sorted(of),
        matrix_tiles((sorted.args().m / kStripRows + kStrips - 1U) / kStrips),
        tiles(fresh_word(&sorted.counts()->tiles) * matrix_tiles) {}

  SHUNT_FUNCTION std::uint32_t k() const { return sorted.args().k; }
  SHUNT_FUNCTION static constexpr std::uint32_t splits() { return 1; }
  SHUNT_FUNCTION static float* split_sums() { return nullptr; }
  SHUNT_FUNCTION std::uint32_t eights() const { return sorted.eights(); }
  SHUNT_FUNCTION ExpertsTile rows_of(std::uint32_t tile) const {
    const ExpertsTile* const from = sorted.tile(tile / matrix_tiles);
    return {fresh_word(&from->slot), fresh_word(&from->first_eight), fresh_word(&from->eights), 0};
  }
  SHUNT_FUNCTION Pieces pieces_of(std::uint32_t tile) const {
    const ExpertsTile rows = rows_of(tile);
    return {rows.first_eight, rows.eights};
  }

  struct TileStrips {
    const std::uint8_t* first;
    std::uint64_t distance;
    std::uint32_t count;

    SHUNT_FUNCTION const std::uint8_t* at(std::uint32_t i) const { return first + i * distance; }
  };
  SHUNT_FUNCTION std::uint32_t first_strip(std::uint32_t tile) const { return tile % matrix_tiles * kStrips; }
  SHUNT_FUNCTION TileStrips strips_of(std::uint32_t tile) const {
    const ExpertsArgs& args = sorted.args();
    const std::uint32_t first = first_strip(tile);
    const std::uint32_t rest = args.m / kStripRows - first;
    const std::uint64_t distance = std::uint64_t{kStripRows} * args.weight_row_bytes;
    return {input_of<std::uint8_t>(call, 1) + expert_weight_offset(args, rows_of(tile).slot) + first * distance,
            distance, rest < kStrips ? rest : kStrips};
  }
  SHUNT_FUNCTION UseOutputs outputs(std::uint32_t tile) const {
    UseOutputs to;
    const ExpertsArgs& args = sorted.args();
    const ExpertsTile rows = rows_of(tile);
    const std::uint32_t strip = first_strip(tile) + lane() / 32U * 2U;
    const std::uint32_t first = lane() % 4U * 2U;
    if (strip >= args.m / kStripRows) return to;
    const std::uint32_t row = rows.first_eight * kExpertsEight + first;
    const std::uint32_t column = strip * kStripRows + lane() % 32U / 4U;
    to.rows = rows.eights * kExpertsEight - first;
    to.uses = sorted.use_of(row);
    to.x_factors = sorted.factors() + row;
    to.out = output_of<float>(call) + column;
    to.out_distance = args.m;
    SHUNT_UNROLL
    for (std::uint32_t r = 0; r < 2; ++r) {
      to.bias[r] = 0.0F;
      if (args.has_bias != 0)
        to.bias[r] = input_of<float>(call, 4)[std::uint64_t{rows.slot} * args.bias_strides[0] +
                                              (column + r * kStripRows) * std::uint64_t{args.bias_strides[1]}];
    }
    return to;
  }
  // Writes zeros for uses whose expert has no matrix here.
  SHUNT_FUNCTION void finish() const {
    const std::uint32_t idle = fresh_word(&sorted.counts()->idle);
    const std::uint32_t columns = sorted.args().m;
    for (auto i = static_cast<std::uint32_t>(group()); i < idle; i += static_cast<std::uint32_t>(groups())) {
      float* const out = output_of<float>(call) + std::uint64_t{fresh_word(sorted.idle(i))} * columns;
      for (std::uint32_t column = lane(); column < columns; column += kReaders * 32U) out[column] = 0.0F;
    }
  }
};

template <std::uint32_t of, std::uint32_t x_rows, bool is_exact>
SHUNT_FUNCTION void multiply_if_in_strips(const CudaCall* call) {
  using S = Shape<of, x_rows, is_exact>;
  if constexpr (of != dtype::F32) {
    wait_for_earlier_kernels();
    multiply_weights<S>(UsesWork<S>(call));
  }
}

}  // namespace
}  // namespace shunt

#define SHUNT_EXPERTS_PRODUCT(weight, arithmetic, x_rows)                                                     \
  SHUNT_BOUNDED_KERNEL(experts_product_##weight##_##arithmetic##_##x_rows, shunt::kLinearProductThreads, 1) { \
    shunt::multiply_if_in_strips<shunt::dtype::weight, x_rows, shunt::arithmetic>(call);                      \
  }
#define SHUNT_FOR_WEIGHT(weight)             \
  SHUNT_EXPERTS_PRODUCT(weight, halves, 32)  \
  SHUNT_EXPERTS_PRODUCT(weight, halves, 128) \
  SHUNT_EXPERTS_PRODUCT(weight, exact, 32)   \
  SHUNT_EXPERTS_PRODUCT(weight, exact, 128)
#include "ops/each_weight.cuh"
