// Products of small matrices of 16-bit numbers by the 32 threads of a warp, and how their operands leave shared memory.
// For CUDA GPUs of compute capability 8.0 and later, products of halves for those of 7.5 too, and for the host.
//
// Thread 4g + t of a warp holds pairs of neighbours, the first in the lower half of a word:
//   left (16 x 16):  row g, columns 2t and 2t+1; row g+8, the same; row g, columns 2t+8 and 2t+9; row g+8, the same
//   right (16 x 8):  column g, rows 2t and 2t+1; column g, rows 2t+8 and 2t+9
//   sums (16 x 8):   row g, columns 2t and 2t+1; row g+8, the same; a float each
// All threads of a warp must call these functions together, and on the host all warps of a block equally often.
#pragma once

#include "ops/shared_memory.cuh"

namespace shunt {

// Rounds two numbers to F16 or BF16. Halves above 65504 become infinite.
template <std::uint32_t of>
SHUNT_FUNCTION std::uint32_t pair_of(float low, float high) {
  static_assert(of == dtype::F16 || of == dtype::BF16);
#if defined(SHUNT_KERNELS_ON_HOST)
  if constexpr (of == dtype::F16)
    return narrow_f16(low) | static_cast<std::uint32_t>(narrow_f16(high)) << 16U;
  else
    return narrow_bf16(low) | static_cast<std::uint32_t>(narrow_bf16(high)) << 16U;
#else
  std::uint32_t pair = 0;
  if constexpr (of == dtype::F16)
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  else
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#endif
}
template <std::uint32_t of>
SHUNT_FUNCTION float low_of(std::uint32_t pair) {
  return of == dtype::F16 ? widen_f16(pair & 0xFFFFU) : widen_bf16(pair & 0xFFFFU);
}
template <std::uint32_t of>
SHUNT_FUNCTION float high_of(std::uint32_t pair) {
  return of == dtype::F16 ? widen_f16(pair >> 16U) : kernel_math::float_of(pair & 0xFFFF0000U);
}

#if defined(SHUNT_KERNELS_ON_HOST)
inline constexpr std::uint32_t kMostThreads = 512;

// Element (row, column) of an operand of which each thread of the warp holds words; `first` is the warp's first thread.
template <std::uint32_t of, std::uint32_t words>
float element_of_warp(const std::uint32_t (&held)[kMostThreads][words], std::uint32_t first, std::uint32_t row,
                      std::uint32_t column) {
  const std::uint32_t word = row / 8U + column / 8U * (words / 2U);
  const std::uint32_t pair = held[first + row % 8U * 4U + column % 8U / 2U][word];
  return column % 2U == 0 ? low_of<of>(pair) : high_of<of>(pair);
}
#endif

// Adds the product of `left` with the matrix of `right_low` and `right_high` to `sums`.
template <std::uint32_t of>
SHUNT_FUNCTION void add_product(float (&sums)[4], const FourWords& left, std::uint32_t right_low,
                                std::uint32_t right_high) {
  static_assert(of == dtype::F16 || of == dtype::BF16);
#if defined(SHUNT_KERNELS_ON_HOST)
  static std::uint32_t lefts[kMostThreads][4];
  static std::uint32_t rights[kMostThreads][2];  // as the left operand with 8 rows: its columns are rows
  for (std::uint32_t i = 0; i < 4; ++i) lefts[lane()][i] = left.words[i];
  rights[lane()][0] = right_low;
  rights[lane()][1] = right_high;
  sync_warp();
  const std::uint32_t first = lane() / 32U * 32U;
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::uint32_t row = lane() % 32U / 4U + i / 2U * 8U;
    const std::uint32_t column = lane() % 4U * 2U + i % 2U;
    double sum = static_cast<double>(sums[i]);
    for (std::uint32_t k = 0; k < 16; ++k)
      sum += static_cast<double>(element_of_warp<of>(lefts, first, row, k)) *
             static_cast<double>(element_of_warp<of>(rights, first, column, k));
    sums[i] = static_cast<float>(sum);
  }
  sync_warp();
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  static_assert(of == dtype::F16);
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%8}, {%0, %1, %2, %3};\n\t"
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%6, %7}, {%9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(left.words[0]), "r"(left.words[1]), "r"(left.words[2]), "r"(left.words[3]), "r"(right_low),
        "r"(right_high));
#else
  if constexpr (of == dtype::F16)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(left.words[0]), "r"(left.words[1]), "r"(left.words[2]), "r"(left.words[3]), "r"(right_low),
          "r"(right_high));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(left.words[0]), "r"(left.words[1]), "r"(left.words[2]), "r"(left.words[3]), "r"(right_low),
          "r"(right_high));
#endif
}

// Reads four matrices of 8 x 8 numbers, a word of each: row g, columns 2t and 2t+1. Thread 8i + r of the warp gives the
// address of row r of matrix i, a multiple of 16.
SHUNT_FUNCTION FourWords load_matrices(SharedAddress row) {
  FourWords four;
#if defined(SHUNT_KERNELS_ON_HOST)
  static SharedAddress rows[kMostThreads];
  rows[lane()] = row;
  sync_warp();
  for (std::uint32_t i = 0; i < 4; ++i)
    four.words[i] =
        reinterpret_cast<const std::uint32_t*>(rows[lane() / 32U * 32U + i * 8U + lane() % 32U / 4U])[lane() % 4U];
  sync_warp();
#else
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(four.words[0]), "=r"(four.words[1]), "=r"(four.words[2]), "=r"(four.words[3])
               : "r"(row)
               : "memory");
#endif
  return four;
}
// The same of the transposed matrices: rows 2t and 2t+1 of column g.
SHUNT_FUNCTION FourWords load_transposed_matrices(SharedAddress row) {
  FourWords four;
#if defined(SHUNT_KERNELS_ON_HOST)
  static SharedAddress rows[kMostThreads];
  rows[lane()] = row;
  sync_warp();
  for (std::uint32_t i = 0; i < 4; ++i) {
    const SharedAddress* const matrix =
        rows + std::uint64_t{lane() / 32U} * 32U + std::uint64_t{i} * 8U + std::uint64_t{lane() % 4U} * 2U;
    const std::uint32_t column = lane() % 32U / 4U;
    four.words[i] = reinterpret_cast<const std::uint16_t*>(matrix[0])[column] |
                    static_cast<std::uint32_t>(reinterpret_cast<const std::uint16_t*>(matrix[1])[column]) << 16U;
  }
  sync_warp();
#else
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(four.words[0]), "=r"(four.words[1]), "=r"(four.words[2]), "=r"(four.words[3])
               : "r"(row)
               : "memory");
#endif
  return four;
}

}  // namespace shunt
