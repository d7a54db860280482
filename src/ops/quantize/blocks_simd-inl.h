// Block loaders: rows of floating and quantized dtypes as vectors of F32. Included by the _simd.cpp files of several
// families, once per instruction set; formats and their sources are in blocks.h.
//
// `load_row<DType::X>(d, row, elements, sink)` decodes `elements` consecutive elements, beginning at a block, and hands
// them to the sink, in any order:
//   sink.put<slot>(i, v)   elements i .. i + Lanes(d) - 1; slot (0 .. 3) is constant at each call site and differs
//                          between neighbouring calls, for sinks with several accumulators
//   sink.one(i, value)     one element, from the rest of a plain row that does not fill a vector
// Values equal those of decode_row. Reads nothing outside the row; rows need no alignment.
#if defined(SHUNT_OPS_BLOCKS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_BLOCKS_SIMD_INL_H_
#undef SHUNT_OPS_BLOCKS_SIMD_INL_H_
#else
#define SHUNT_OPS_BLOCKS_SIMD_INL_H_
#endif

#include "ops/quantize/block_vectors-inl.h"
#include "ops/quantize/blocks32_simd-inl.h"
#include "ops/quantize/k_blocks_simd-inl.h"
#include "ops/quantize/level_blocks_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

template <DType kDType, class Sink>
HWY_INLINE void load_row(BlockTag d, const std::byte* row, std::size_t elements, Sink& sink) {
  Loader<kDType>::row(d, row, elements, sink);
}

struct StoreSink {
  float* out;
  template <int kSlot>
  HWY_INLINE void put(std::size_t i, BlockVec v) const {
    hn::StoreU(v, BlockTag(), out + i);
  }
  HWY_INLINE void one(std::size_t i, float value) const { out[i] = value; }
};

template <DType kDType>
HWY_NOINLINE void store_row(const std::byte* row, std::size_t elements, float* out) {
  StoreSink sink{out};
  load_row<kDType>(BlockTag(), row, elements, sink);
}

// Returns what use<dtype>() does.
template <class Use>
HWY_INLINE bool with_dtype(DType dtype, const Use& use) {
  switch (dtype) {
#define SHUNT_DTYPE(name, gguf_id, block_elements, block_bytes, kind) \
  case DType::name:                                                   \
    return use.template operator()<DType::name>();
#include "ops/dtypes.def"
#undef SHUNT_DTYPE
  }
  return false;
}

// The SIMD version of decode_row. REQUIRES: dtype is floating or quantized; elements is a whole number of blocks.
HWY_INLINE void decode_row_simd(DType dtype, const std::byte* row, std::size_t elements, float* out) {
  switch (dtype) {
#define SHUNT_STORE_floating(name) \
  case DType::name:                \
    return store_row<DType::name>(row, elements, out);
#define SHUNT_STORE_quantized(name) SHUNT_STORE_floating(name)
#define SHUNT_STORE_integer(name) \
  case DType::name:               \
    return;
#define SHUNT_DTYPE(name, gguf_id, block_elements, block_bytes, kind) SHUNT_STORE_##kind(name)
#include "ops/dtypes.def"
#undef SHUNT_STORE_floating
#undef SHUNT_STORE_quantized
#undef SHUNT_STORE_integer
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
