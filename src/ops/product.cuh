// Products of small matrices on tensor cores, and arithmetic on pairs of 16-bit floats in a register.
//
// The threads of a warp hold the operands together. Thread 4 g + t has of A (16 rows) pairs of columns: row g, columns
// 2 t and 2 t + 1; row g + 8, the same; row g, columns 2 t + 8 and 2 t + 9; row g + 8, the same. It has of B (8
// columns) rows 2 t and 2 t + 1 of column g, and rows 2 t + 8 and 2 t + 9; of the sums (16 rows, 8 columns) row g,
// columns 2 t and 2 t + 1, and row g + 8, the same. REQUIRES: all threads of the warp call them.
#pragma once

#include "ops/kernel.cuh"

namespace shunt {

struct Product {
  float sums[4];
};

#if defined(__clang__) && defined(__NVPTX__)

// sums + A B, where A has 16 columns of halves.
SHUNT_FUNCTION Product multiply_halves(const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1,
                                       const Product& sums) {
  Product d;
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, "
      "%13};"
      : "=f"(d.sums[0]), "=f"(d.sums[1]), "=f"(d.sums[2]), "=f"(d.sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(sums.sums[0]), "f"(sums.sums[1]),
        "f"(sums.sums[2]), "f"(sums.sums[3]));
  return d;
}
// The same for bfloat16.
SHUNT_FUNCTION Product multiply_bf16(const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1,
                                     const Product& sums) {
  Product d;
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, "
      "%12, %13};"
      : "=f"(d.sums[0]), "=f"(d.sums[1]), "=f"(d.sums[2]), "=f"(d.sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(sums.sums[0]), "f"(sums.sums[1]),
        "f"(sums.sums[2]), "f"(sums.sums[3]));
  return d;
}
// A B, where A has 8 columns of halves: a thread has columns 2 t and 2 t + 1 of row g and of row g + 8.
SHUNT_FUNCTION Product multiply_eight_halves(std::uint32_t a0, std::uint32_t a1, std::uint32_t b) {
  Product d;
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %7, %7, %7};"
      : "=f"(d.sums[0]), "=f"(d.sums[1]), "=f"(d.sums[2]), "=f"(d.sums[3])
      : "r"(a0), "r"(a1), "r"(b), "f"(0.0F));
  return d;
}

SHUNT_FUNCTION std::uint32_t add_halves(std::uint32_t a, std::uint32_t b) {
  std::uint32_t sum;
  asm("add.rn.f16x2 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
  return sum;
}
// Rounds to nearest, ties to even.
SHUNT_FUNCTION std::uint32_t narrow_pair(float low, float high) {
  std::uint32_t pair;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  asm("{\n.reg .b16 low, high;\ncvt.rn.f16.f32 low, %1;\ncvt.rn.f16.f32 high, %2;\nmov.b32 %0, {low, high};\n}"
      : "=r"(pair)
      : "f"(low), "f"(high));
#else
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
#endif
  return pair;
}
SHUNT_FUNCTION std::uint32_t narrow_pair_bf16(float low, float high) {
  std::uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
SHUNT_FUNCTION float low_half(std::uint32_t pair) {
  float value;
  asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %1;\ncvt.f32.f16 %0, low;\n}" : "=f"(value) : "r"(pair));
  return value;
}
SHUNT_FUNCTION float high_half(std::uint32_t pair) {
  float value;
  asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %1;\ncvt.f32.f16 %0, high;\n}" : "=f"(value) : "r"(pair));
  return value;
}

#else

#if defined(SHUNT_KERNELS_ON_HOST)
// The operands in the registers of a block's threads.
struct HeldOperands {
  std::uint32_t a[4];
  std::uint32_t b[2];
};
SHUNT_FUNCTION HeldOperands& held_operands(std::uint32_t thread) {
  static HeldOperands held[1024];
  return held[thread];
}

// The product of A with `columns` columns, whose elements widen(16 bits) returns.
template <std::uint32_t columns, class Widen>
SHUNT_FUNCTION Product multiply_held(const HeldOperands& mine, const Product& sums, Widen widen) {
  const std::uint32_t warp = lane() / 32U * 32U;
  const auto element = [widen](std::uint32_t pair, std::uint32_t i) {
    return static_cast<double>(widen(i % 2U == 0 ? pair & 0xFFFFU : pair >> 16U));
  };
  held_operands(lane()) = mine;
  sync_warp();
  Product d;
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::uint32_t row = lane() % 32U / 4U;
    const std::uint32_t column = lane() % 4U * 2U + i % 2U;
    double sum = static_cast<double>(sums.sums[i]);
    for (std::uint32_t k = 0; k < columns; ++k)
      sum += element(held_operands(warp + row * 4U + k % 8U / 2U).a[k / 8U * 2U + i / 2U], k) *
             element(held_operands(warp + column * 4U + k % 8U / 2U).b[k / 8U], k);
    d.sums[i] = static_cast<float>(sum);
  }
  sync_warp();
  return d;
}
SHUNT_FUNCTION Product multiply_halves(const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1,
                                       const Product& sums) {
  return multiply_held<16>({{a[0], a[1], a[2], a[3]}, {b0, b1}}, sums, widen_f16);
}
SHUNT_FUNCTION Product multiply_bf16(const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1,
                                     const Product& sums) {
  return multiply_held<16>({{a[0], a[1], a[2], a[3]}, {b0, b1}}, sums, widen_bf16);
}
SHUNT_FUNCTION Product multiply_eight_halves(std::uint32_t a0, std::uint32_t a1, std::uint32_t b) {
  return multiply_held<8>({{a0, a1, 0, 0}, {b, 0}}, Product{}, widen_f16);
}
#endif

SHUNT_FUNCTION std::uint32_t narrow_pair(float low, float high) {
#if defined(__HIP__)
  using Pair = _Float16 __attribute__((ext_vector_type(2)));
  return __builtin_bit_cast(std::uint32_t, Pair{static_cast<_Float16>(low), static_cast<_Float16>(high)});
#else
  return narrow_f16(low) | static_cast<std::uint32_t>(narrow_f16(high)) << 16U;
#endif
}
SHUNT_FUNCTION std::uint32_t narrow_pair_bf16(float low, float high) {
  return narrow_bf16(low) | static_cast<std::uint32_t>(narrow_bf16(high)) << 16U;
}
SHUNT_FUNCTION std::uint32_t add_halves(std::uint32_t a, std::uint32_t b) {
  return narrow_pair(widen_f16(a & 0xFFFFU) + widen_f16(b & 0xFFFFU), widen_f16(a >> 16U) + widen_f16(b >> 16U));
}
SHUNT_FUNCTION float low_half(std::uint32_t pair) { return widen_f16(pair & 0xFFFFU); }
SHUNT_FUNCTION float high_half(std::uint32_t pair) { return widen_f16(pair >> 16U); }

#endif

}  // namespace shunt
