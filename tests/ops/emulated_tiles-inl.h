// A unit for matrix tiles of BF16 (ops/matrix_tiles-inl.h) in plain C++, which computes what the instructions of
// AMX are specified to (Intel SDM, volume 2, TDPBF16PS and VCVTNE2PS2BF16). Included once per instruction set.
#if defined(SHUNT_TESTS_EMULATED_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_TESTS_EMULATED_TILES_INL_H_
#undef SHUNT_TESTS_EMULATED_TILES_INL_H_
#else
#define SHUNT_TESTS_EMULATED_TILES_INL_H_
#endif

#include <cmath>
#include <cstring>

#include "ops/matrix_tiles-inl.h"
#include "ops/quantize/blocks.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

class EmulatedTiles {
 public:
  // Registers begin as NaN, so that what is multiplied without being loaded shows.
  EmulatedTiles() { std::memset(registers_, 0xFF, sizeof(registers_)); }

  template <int kTile>
  void zero() {
    std::memset(registers_[kTile], 0, sizeof(Register));
  }
  template <int kTile>
  void load(const void* from, std::size_t pitch) {
    for (std::size_t row = 0; row < kMatrixTileRows; ++row)
      std::memcpy(registers_[kTile][row], static_cast<const std::byte*>(from) + row * pitch, 64);
  }
  template <int kTile>
  void store(void* to, std::size_t pitch) {
    for (std::size_t row = 0; row < kMatrixTileRows; ++row)
      std::memcpy(static_cast<std::byte*>(to) + row * pitch, registers_[kTile][row], 64);
  }
  template <int kSums, int kLeft, int kRight>
  void multiply() {
    for (std::size_t row = 0; row < kMatrixTileRows; ++row) {
      float sums[2][16] = {};  // of the first and the second products of all pairs
      for (std::size_t pair = 0; pair < 16; ++pair)
        for (std::size_t column = 0; column < 16; ++column)
          for (std::size_t i = 0; i < 2; ++i)
            sums[i][column] = without_small(
                static_cast<float>(element(kLeft, row, 2 * pair + i) * element(kRight, pair, 2 * column + i) +
                                   static_cast<double>(sums[i][column])));
      for (std::size_t column = 0; column < 16; ++column) {
        float& sum = registers_[kSums][row][column];
        sum = without_small(without_small(sum) + without_small(sums[0][column] + sums[1][column]));
      }
    }
  }

  static Bf16Vec round(BlockVec low, BlockVec high) {
    const BlockTag d;
    alignas(64) float values[2 * kBlockLanes];
    alignas(64) std::uint16_t rounded[2 * kBlockLanes];
    hn::Store(low, d, values);
    hn::Store(high, d, values + kBlockLanes);
    for (std::size_t i = 0; i < 2 * kBlockLanes; ++i) rounded[i] = f32_to_bf16(without_small(values[i]));
    return hn::Load(hn::Repartition<std::uint16_t, BlockTag>(), rounded);
  }

 private:
  using Register = float[kMatrixTileRows][16];

  static float without_small(float v) { return std::abs(v) < 0x1p-126F ? std::copysign(0.0F, v) : v; }
  // Returns a double, in which products are exact and sums nearly always.
  [[nodiscard]] double element(int tile, std::size_t row, std::size_t index) const {
    std::uint16_t bits;
    std::memcpy(&bits, reinterpret_cast<const std::byte*>(registers_[tile][row]) + 2 * index, 2);
    return static_cast<double>(without_small(bf16_to_f32(bits)));
  }

  Register registers_[8];
};

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
