// Writes the rows of x as tiles, for experts_product, in the order of experts_sort.
#include "ops/experts/experts_groups.cuh"
#include "ops/linear/x_tiles.cuh"

namespace shunt {
namespace {

template <std::uint32_t halves>
struct SortedXRows {
  SortedUses<halves> sorted;

  SHUNT_FUNCTION const ExpertsArgs& args() const { return sorted.args(); }
  SHUNT_FUNCTION std::uint32_t k() const { return args().k; }
  SHUNT_FUNCTION std::uint64_t rows() const { return fresh_word(&sorted.counts()->rows); }
  SHUNT_FUNCTION std::uint64_t eights() const { return sorted.eights(); }
  SHUNT_FUNCTION const float* x_of(std::uint64_t row) const {
    const auto use = static_cast<std::int32_t>(fresh_word(sorted.use_of(row)));
    if (use == kNoUse) return nullptr;
    const auto number = static_cast<std::uint32_t>(use);
    return input_of<float>(sorted.call, 0) + expert_x_offset(args(), number / args().used, number % args().used);
  }
  SHUNT_FUNCTION static const float* norm() { return nullptr; }
  SHUNT_FUNCTION static float epsilon() { return 0.0F; }
  SHUNT_FUNCTION std::uint8_t* tiles() const { return sorted.template scratch<std::uint8_t>(0); }
  SHUNT_FUNCTION float* factors() const { return sorted.factors(); }
};

template <std::uint32_t halves>
SHUNT_FUNCTION void write_sorted_tiles(const CudaCall* call) {
  wait_for_earlier_kernels();
  let_next_kernel_begin();
  write_tiles<halves>(SortedXRows<halves>{SortedUses<halves>(call)});
}

}  // namespace
}  // namespace shunt

SHUNT_BOUNDED_KERNEL(experts_x_tiles_halves, shunt::kLinearXTilesThreads, 2) { shunt::write_sorted_tiles<1>(call); }
SHUNT_BOUNDED_KERNEL(experts_x_tiles_exact, shunt::kLinearXTilesThreads, 2) { shunt::write_sorted_tiles<2>(call); }
