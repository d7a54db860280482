// The SIMD kernels of quantize and dequantize: vector loaders in front of the shared encoders, which are vectorized
// themselves and give the same blocks on every processor.
#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/quantize/quantize_simd.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "hwy/highway.h"
#include "ops/kernel_arguments.h"
#include "ops/quantize/blocks_simd-inl.h"
#include "ops/quantize/quantize.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

int quantize_run(const CpuCall& call) {
  quantize_share(call, [](DType dtype, const std::byte* row, std::uint64_t elements, float* out) {
    decode_row_simd(dtype, row, elements, out);
  });
  return 0;
}

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shunt {
namespace {

HWY_EXPORT(quantize_run);
int run(const CpuCall& call) { return HWY_DYNAMIC_DISPATCH(quantize_run)(call); }

}  // namespace

extern const CpuKernel quantize_simd;
const CpuKernel quantize_simd{fits_quantize_arguments, quantize_work, write_arguments<quantize_arguments>, run};

}  // namespace shunt
#endif  // HWY_ONCE
