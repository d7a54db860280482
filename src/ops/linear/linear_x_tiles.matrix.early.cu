// Writes the rows of x as tiles, for linear_product.
#include "ops/linear/x_tiles.cuh"

namespace shunt {
namespace {

template <std::uint32_t halves>
struct LinearXRows {
  const CudaCall* call;
  std::uint64_t valid;  // rows

  SHUNT_FUNCTION explicit LinearXRows(const CudaCall* of) : call(of), valid(linear_rows(args(), parameters_of(of))) {}

  SHUNT_FUNCTION const LinearArgs& args() const { return arguments_of<LinearArgs>(call); }
  SHUNT_FUNCTION std::uint32_t k() const { return args().k; }
  SHUNT_FUNCTION std::uint64_t eights() const { return linear_tiles(valid, kLinearPieceRows); }
  SHUNT_FUNCTION std::uint64_t rows() const { return eights() * kLinearPieceRows; }
  SHUNT_FUNCTION const float* x_of(std::uint64_t row) const {
    if (row >= valid) return nullptr;
    return input_of<float>(call, 0) + row_offset(args().extents, args().x_strides, row);
  }
  SHUNT_FUNCTION const float* norm() const { return args().has_norm != 0 ? input_of<float>(call, 2) : nullptr; }
  SHUNT_FUNCTION float epsilon() const { return args().epsilon; }
  SHUNT_FUNCTION std::uint8_t* tiles() const { return reinterpret_cast<std::uint8_t*>(call->scratch); }
  SHUNT_FUNCTION float* factors() const {
    return reinterpret_cast<float*>(tiles() + linear_x_tiles_bytes(valid, args().k, halves));
  }
};

template <std::uint32_t halves>
SHUNT_FUNCTION void write_linear_tiles(const CudaCall* call) {
  wait_for_earlier_kernels();
  let_next_kernel_begin();
  write_tiles<halves>(LinearXRows<halves>(call));
}

}  // namespace
}  // namespace shunt

SHUNT_BOUNDED_KERNEL(linear_x_tiles_halves, shunt::kLinearXTilesThreads, 2) { shunt::write_linear_tiles<1>(call); }
SHUNT_BOUNDED_KERNEL(linear_x_tiles_exact, shunt::kLinearXTilesThreads, 2) { shunt::write_linear_tiles<2>(call); }
