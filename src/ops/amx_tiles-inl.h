// The matrix tiles of Intel's AMX, in the form that matrix_tiles-inl.h uses. Included once per instruction set; there
// with AVX-512 only, which all processors with AMX have.
#if defined(SHUNT_OPS_AMX_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_AMX_TILES_INL_H_
#undef SHUNT_OPS_AMX_TILES_INL_H_
#else
#define SHUNT_OPS_AMX_TILES_INL_H_
#endif

#include "base/system/cpu_features.h"
#include "ops/matrix_tiles-inl.h"

#undef SHUNT_HAS_AMX_TILES
#if HWY_TARGET == HWY_AVX3
#define SHUNT_HAS_AMX_TILES 1
#else
#define SHUNT_HAS_AMX_TILES 0
#endif

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

// Returns whether this processor has AmxTiles, and this instruction set too.
HWY_INLINE bool has_amx_tiles() { return SHUNT_HAS_AMX_TILES != 0 && cpu_features().amx_bf16; }

#if SHUNT_HAS_AMX_TILES
// All eight tile registers of a thread, 16 rows of 64 bytes each, as long as the object lives. Written in assembly
// because Highway compiles this pass without AMX, and compilers differ in what their intrinsics need. No compiler uses
// tile registers by itself. REQUIRES: has_amx_tiles().
class AmxTiles {
 public:
  AmxTiles() {
    struct Configuration {
      std::uint8_t palette = 1;
      std::uint8_t start_row = 0;
      std::uint8_t reserved[14] = {};
      std::uint16_t row_bytes[16] = {};
      std::uint8_t rows[16] = {};
    } configuration;
    static_assert(sizeof(Configuration) == 64);
    for (std::size_t tile = 0; tile < 8; ++tile) {
      configuration.row_bytes[tile] = 64;
      configuration.rows[tile] = kMatrixTileRows;
    }
    asm volatile("ldtilecfg %0" : : "m"(configuration));
  }
  ~AmxTiles() { asm volatile("tilerelease"); }
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;

  template <int kTile>
  HWY_INLINE void zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
  }
  template <int kTile>
  HWY_INLINE void load(const void* from, std::size_t pitch) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(pitch), "i"(kTile) : "memory");
  }
  template <int kTile>
  HWY_INLINE void store(void* to, std::size_t pitch) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(pitch), "i"(kTile) : "memory");
  }
  template <int kSums, int kWeight, int kX>
  HWY_INLINE void multiply() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSums), "i"(kWeight), "i"(kX));
  }

  static HWY_INLINE Bf16Vec round(BlockVec low, BlockVec high) {
    Bf16Vec rounded;
    asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(rounded.raw) : "v"(low.raw), "v"(high.raw));
    return rounded;
  }
};
#endif  // SHUNT_HAS_AMX_TILES

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
