// Products of four warps together by `wgmma`, for GPUs of compute capability 9.0 (sm_90a), and the same by `mma`, a
// warp on its own, for newer ones (sm_90). Warp 0 of the four has a number that is a multiple of four. REQUIRES: all
// threads of the four warps call them.
//
// A has 64 rows and 16 columns; warp w has its rows from 16 w on in registers, as in ops/product.cuh. B has 16 to 256
// columns ("tokens") and lies in shared memory: tiles of 8 tokens, 16 bytes each, of 8 rows of B. The tiles of 64 rows
// of B follow each other, then those of the next 8 tokens. The sums, of each 8 tokens, are as in ops/product.cuh.
//
// Products are asynchronous. Write A, call begin_products(), products with the same sums, then end_products(): a group.
// Neither A nor the sums may be touched until await_products<n>(), which leaves at most the last n groups unfinished.
// By `mma` and on the host a product is computed at once.
#pragma once

#include "ops/product.cuh"
#include "ops/warp_product.cuh"

#if defined(SHUNT_KERNELS_ON_HOST) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define SHUNT_HAS_WGMMA
#endif

namespace shunt {

inline constexpr std::uint32_t kProductColumns = 16;  // of A
inline constexpr std::uint32_t kTokensOfTile = 8;
inline constexpr std::uint32_t kBytesOfTile = 128;
inline constexpr std::uint32_t kBytesOfEight = 64 / 8 * kBytesOfTile;                 // of the tiles of 8 tokens
inline constexpr std::uint32_t kBytesOfProduct = kProductColumns / 8 * kBytesOfTile;  // of those, in one product

#if defined(SHUNT_KERNELS_ON_HOST)

struct ProductTiles {
  const std::uint8_t* at;

  SHUNT_FUNCTION ProductTiles after(std::uint32_t bytes) const { return {at + bytes}; }
};
SHUNT_FUNCTION ProductTiles product_tiles(const std::uint8_t* at) { return {at}; }

SHUNT_FUNCTION void begin_products() {}
SHUNT_FUNCTION void end_products() {}
template <std::uint32_t unfinished>
SHUNT_FUNCTION void await_products() {}
template <std::uint32_t registers>
SHUNT_FUNCTION void take_registers() {}
template <std::uint32_t registers>
SHUNT_FUNCTION void give_registers() {}

template <std::uint32_t count>
SHUNT_FUNCTION void multiply(float (&sums)[count], const std::uint32_t (&a)[4], ProductTiles b, bool adds) {
  static std::uint32_t left[1024][4];
  for (std::uint32_t i = 0; i < 4; ++i) left[lane()][i] = a[i];
  sync_warp();
  float rows[2][kProductColumns];
  for (std::uint32_t k = 0; k < kProductColumns; ++k)
    for (std::uint32_t row = 0; row < 2; ++row)
      rows[row][k] = widen_f16(left[(lane() & ~3U) + k % 8U / 2U][k / 8U * 2U + row] >> k % 2U * 16U & 0xFFFFU);
  for (std::uint32_t i = 0; i < count; i += i % 2U == 0 ? 1 : 3) {
    const std::uint32_t token = i / 4U * 8U + lane() % 4U * 2U + i % 2U;
    const std::uint8_t* const column =
        b.at + std::uint64_t{token / 8U} * kBytesOfEight + std::uint64_t{token % 8U} * 16U;
    float of_column[kProductColumns];
    for (std::uint32_t k = 0; k < kProductColumns; ++k)
      of_column[k] =
          widen_f16(reinterpret_cast<const std::uint16_t*>(column + std::uint64_t{k / 8U} * kBytesOfTile)[k % 8U]);
    for (std::uint32_t row = 0; row < 2; ++row) {
      float& sum = sums[i + 2U * row];
      if (!adds) sum = 0.0F;
      for (std::uint32_t k = 0; k < kProductColumns; ++k) sum += rows[row][k] * of_column[k];
    }
  }
  sync_warp();
}

SHUNT_FUNCTION bool any_of_warp(bool value) { return value; }
// Returns the largest value of the four threads that have the same rows.
SHUNT_FUNCTION std::uint32_t largest_of_quad(std::uint32_t value) {
  static std::uint32_t left[1024];
  left[lane()] = value;
  sync_warp();
  const std::uint32_t quad = lane() & ~3U;
  for (std::uint32_t i = 0; i < 4; ++i) value = left[quad + i] > value ? left[quad + i] : value;
  sync_warp();
  return value;
}

#else

SHUNT_FUNCTION bool any_of_warp(bool value) { return __nvvm_vote_any_sync(~0U, value); }
SHUNT_FUNCTION std::uint32_t largest_of_quad(std::uint32_t value) {
  SHUNT_UNROLL
  for (std::uint32_t mask = 1; mask < 4; mask *= 2) {
    const auto other =
        static_cast<std::uint32_t>(__nvvm_shfl_sync_bfly_i32(~0, static_cast<int>(value), static_cast<int>(mask), 31));
    value = other > value ? other : value;
  }
  return value;
}

#if !defined(SHUNT_HAS_WGMMA)

struct ProductTiles {
  SharedAddress at;

  SHUNT_FUNCTION ProductTiles after(std::uint32_t bytes) const { return {at + bytes}; }
};
SHUNT_FUNCTION ProductTiles product_tiles(const std::uint8_t* at) { return {shared_address(at)}; }

SHUNT_FUNCTION void begin_products() {}
SHUNT_FUNCTION void end_products() {}
template <std::uint32_t unfinished>
SHUNT_FUNCTION void await_products() {}
template <std::uint32_t registers>
SHUNT_FUNCTION void take_registers() {}
template <std::uint32_t registers>
SHUNT_FUNCTION void give_registers() {}

template <std::uint32_t count>
SHUNT_FUNCTION void multiply(float (&sums)[count], const std::uint32_t (&a)[4], ProductTiles b, bool adds) {
  if (!adds) {
    SHUNT_UNROLL
    for (float& sum : sums) sum = 0.0F;
  }
  const std::uint32_t tile = lane() % 32U / 8U;
  const SharedAddress row = b.at + tile / 2U * kBytesOfEight + tile % 2U * kBytesOfTile + lane() % 8U * 16U;
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < count; i += 8) {
    const FourWords sixteen = load_matrices(row + i / 4U * kBytesOfEight);  // tokens
    SHUNT_UNROLL
    for (std::uint32_t half = 0; half < 2; ++half) {
      float(&four)[4] = *reinterpret_cast<float(*)[4]>(&sums[i + half * 4U]);
      add_product<dtype::F16>(four, FourWords{{a[0], a[1], a[2], a[3]}}, sixteen.words[half * 2U],
                              sixteen.words[half * 2U + 1U]);
    }
  }
}

#else

// The lower word of how an instruction finds B: the address, and the distance of tiles along A's columns, in units of
// 16 bytes. The upper word is the distance of groups of 8 tokens.
struct ProductTiles {
  std::uint32_t low;

  SHUNT_FUNCTION ProductTiles after(std::uint32_t bytes) const { return {low + bytes / 16U}; }
};
SHUNT_FUNCTION ProductTiles product_tiles(const std::uint8_t* at) {
  using Shared = const __attribute__((address_space(3))) std::uint8_t*;
  const auto address = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>((Shared)at));
  return {address / 16U | kBytesOfTile / 16U << 16U};
}
static_assert(kBytesOfEight / 16 == 64, "the upper word, in the instructions below");

SHUNT_FUNCTION void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
SHUNT_FUNCTION void end_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <std::uint32_t unfinished>
SHUNT_FUNCTION void await_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(unfinished) : "memory");
}

// Changes how many registers each thread of the group has. Groups give before others can take.
template <std::uint32_t registers>
SHUNT_FUNCTION void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}
template <std::uint32_t registers>
SHUNT_FUNCTION void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}

// The operands of `wgmma`: the sums and their names in the instruction.
#define SHUNT_TEN_NAMES(tens)                                                                                       \
  "%" #tens "0, %" #tens "1, %" #tens "2, %" #tens "3, %" #tens "4, %" #tens "5, %" #tens "6, %" #tens "7, %" #tens \
  "8, %" #tens "9"
#define SHUNT_NAMES_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define SHUNT_NAMES_16 SHUNT_NAMES_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define SHUNT_NAMES_32 SHUNT_NAMES_16 ", %16, %17, %18, %19, " SHUNT_TEN_NAMES(2) ", %30, %31"
#define SHUNT_NAMES_64 \
  SHUNT_NAMES_32       \
  ", %32, %33, %34, %35, %36, %37, %38, %39, " SHUNT_TEN_NAMES(4) ", " SHUNT_TEN_NAMES(5) ", %60, %61, %62, %63"
#define SHUNT_NAMES_128                                                                                              \
  SHUNT_NAMES_64 ", %64, %65, %66, %67, %68, %69, " SHUNT_TEN_NAMES(7) ", " SHUNT_TEN_NAMES(8) ", " SHUNT_TEN_NAMES( \
      9) ", " SHUNT_TEN_NAMES(10) ", " SHUNT_TEN_NAMES(11) ", %120, %121, %122, %123, %124, %125, %126, %127"
#define SHUNT_SUMS_8(i)                                                                              \
  "+f"(sums[i]), "+f"(sums[(i) + 1]), "+f"(sums[(i) + 2]), "+f"(sums[(i) + 3]), "+f"(sums[(i) + 4]), \
      "+f"(sums[(i) + 5]), "+f"(sums[(i) + 6]), "+f"(sums[(i) + 7])
#define SHUNT_SUMS_16(i) SHUNT_SUMS_8(i), SHUNT_SUMS_8((i) + 8)
#define SHUNT_SUMS_32(i) SHUNT_SUMS_16(i), SHUNT_SUMS_16((i) + 16)
#define SHUNT_SUMS_64(i) SHUNT_SUMS_32(i), SHUNT_SUMS_32((i) + 32)
#define SHUNT_SUMS_128(i) SHUNT_SUMS_64(i), SHUNT_SUMS_64((i) + 64)
// Defines the product with so many tokens. `a`, `b` and `adds` name the operands after the sums.
#define SHUNT_PRODUCT(tokens, count, a, b, adds)                                                                       \
  SHUNT_FUNCTION void multiply(float(&sums)[count], const std::uint32_t(&left)[4], ProductTiles right,                 \
                               bool adds_to_sums) {                                                                    \
    asm volatile("{\n\t.reg .pred adds;\n\t.reg .b64 tiles;\n\tsetp.ne.b32 adds, %" adds ", 0;\n\tmov.b64 tiles, {%" b \
                 ", 64};\n\t"                                                                                          \
                 "wgmma.mma_async.sync.aligned.m64n" #tokens "k16.f32.f16.f16 {" SHUNT_NAMES_##count                   \
                 "}, {" a "}, tiles, adds, 1, 1, 0;\n\t}"                                                              \
                 : SHUNT_SUMS_##count(0)                                                                               \
                 : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right.low), "r"(adds_to_sums ? 1 : 0)); \
  }
SHUNT_PRODUCT(16, 8, "%8, %9, %10, %11", "12", "13")
SHUNT_PRODUCT(32, 16, "%16, %17, %18, %19", "20", "21")
SHUNT_PRODUCT(64, 32, "%32, %33, %34, %35", "36", "37")
SHUNT_PRODUCT(128, 64, "%64, %65, %66, %67", "68", "69")
SHUNT_PRODUCT(256, 128, "%128, %129, %130, %131", "132", "133")

#endif
#endif

}  // namespace shunt
