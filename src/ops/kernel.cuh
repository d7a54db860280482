// The prelude of every CUDA-style kernel: language keywords, its call, elements of every dtype, and sums over a block.
//
// A FAMILY.cu includes this file and the family's FAMILY_args.h, and defines SHUNT_KERNEL(FAMILY). It is compiled by
// clang for CUDA without a toolkit, by nvcc, by hipcc, and by tests for the host, so it uses no header or function of
// these. Blocks have 64 threads, or as many as CudaKernel::threads says; there are as many blocks as the prepared
// capacity needs, and tails are masked.
// This file hides the differences between the compilers:
//   SHUNT_GLOBAL, SHUNT_FUNCTION, SHUNT_SHARED  mark a kernel, a device function, a variable shared by a block
//   lane(), group(), groups()              the thread's number in its block, the block's number, the blocks
//   sync()                                      waits for the whole block
//   sync_warp()                                 waits for 32 threads
//   from_lane(value, mask)                      the value of the thread of these 32 whose number differs in `mask`
//   call_of_block(call, launch_shares)          the block's call where calls share a launch (CudaKernel::shares_launch)
//   call_in(launch_copies, launch_shares)       the same, by copies that can be read sooner
//   SHUNT_UNROLL                                unrolls a loop of constant length; its arrays stay in registers
#pragma once

#include <cstdint>

#include "ops/cuda_call.h"
#include "ops/parameters.h"

#if defined(SHUNT_KERNELS_ON_HOST)
#define SHUNT_GLOBAL
#define SHUNT_FUNCTION inline
#define SHUNT_SHARED static
#else
#define SHUNT_GLOBAL __attribute__((global))
#define SHUNT_FUNCTION __attribute__((device, always_inline)) inline
#define SHUNT_SHARED __attribute__((shared))
#endif

#if defined(__clang__)
#define SHUNT_UNROLL _Pragma("unroll")
#else
#define SHUNT_UNROLL _Pragma("GCC unroll 64")
#endif

#define SHUNT_KERNEL_PARAMETERS                                                                   \
  [[maybe_unused]] const shunt::CudaCall *call, [[maybe_unused]] shunt::CudaShares launch_shares, \
      [[maybe_unused]] shunt::CudaCopies launch_copies
#define SHUNT_KERNEL(family) extern "C" SHUNT_GLOBAL void shunt_##family(SHUNT_KERNEL_PARAMETERS)
// The same for a kernel with blocks of `threads` threads, of which a multiprocessor of CUDA is to hold `blocks`.
#if defined(SHUNT_KERNELS_ON_HOST)
#define SHUNT_BOUNDED_KERNEL(family, threads, blocks) SHUNT_KERNEL(family)
#elif defined(__HIP__)
#define SHUNT_BOUNDED_KERNEL(family, threads, blocks) \
  extern "C" SHUNT_GLOBAL                             \
      __attribute__((amdgpu_flat_work_group_size(1, threads))) void shunt_##family(SHUNT_KERNEL_PARAMETERS)
#else
#define SHUNT_BOUNDED_KERNEL(family, threads, blocks) \
  extern "C" SHUNT_GLOBAL __attribute__((launch_bounds(threads, blocks))) void shunt_##family(SHUNT_KERNEL_PARAMETERS)
#endif

#include "ops/kernel_math.cuh"

namespace shunt {

#if defined(SHUNT_KERNELS_ON_HOST)
std::uint32_t lane();
std::uint64_t group();
std::uint64_t groups();
void sync();
void sync_warp();
void let_others_run();
float from_lane(float value, std::uint32_t mask);
#elif defined(__HIP__)
SHUNT_FUNCTION std::uint32_t lane() { return __builtin_amdgcn_workitem_id_x(); }
SHUNT_FUNCTION std::uint64_t group() { return __builtin_amdgcn_workgroup_id_x(); }
SHUNT_FUNCTION std::uint64_t groups() { return __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x(); }
SHUNT_FUNCTION void sync() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
SHUNT_FUNCTION void sync_warp() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
SHUNT_FUNCTION float from_lane(float value, std::uint32_t mask) {
  const auto at = static_cast<int>((lane() ^ mask) * 4U);
  return __builtin_bit_cast(float, __builtin_amdgcn_ds_bpermute(at, __builtin_bit_cast(int, value)));
}
#elif defined(__clang__)
SHUNT_FUNCTION std::uint32_t lane() { return static_cast<std::uint32_t>(__nvvm_read_ptx_sreg_tid_x()); }
SHUNT_FUNCTION std::uint64_t group() { return static_cast<std::uint32_t>(__nvvm_read_ptx_sreg_ctaid_x()); }
SHUNT_FUNCTION std::uint64_t groups() { return static_cast<std::uint32_t>(__nvvm_read_ptx_sreg_nctaid_x()); }
SHUNT_FUNCTION void sync() { __syncthreads(); }
SHUNT_FUNCTION void sync_warp() { __nvvm_bar_warp_sync(~0U); }
SHUNT_FUNCTION float from_lane(float value, std::uint32_t mask) {
  return __nvvm_shfl_sync_bfly_f32(~0U, value, static_cast<int>(mask), 31);
}
#else
SHUNT_FUNCTION std::uint32_t lane() { return threadIdx.x; }
SHUNT_FUNCTION std::uint64_t group() { return blockIdx.x; }
SHUNT_FUNCTION std::uint64_t groups() { return gridDim.x; }
SHUNT_FUNCTION void sync() { __syncthreads(); }
SHUNT_FUNCTION void sync_warp() { __syncwarp(); }
SHUNT_FUNCTION float from_lane(float value, std::uint32_t mask) { return __shfl_xor_sync(~0U, value, mask); }
#endif

inline constexpr std::uint32_t kGroup = kCudaGroupSize;
SHUNT_FUNCTION std::uint64_t thread_index() { return group() * kGroup + lane(); }

template <class T>
SHUNT_FUNCTION const T& arguments_of(const CudaCall* call) {
  return *reinterpret_cast<const T*>(call + 1);
}

// The block's call of those that share the launch, and its place among that call's blocks.
struct CallOfBlock {
  const CudaCall* call;
  std::uint32_t block;
  std::uint32_t blocks;
};
// Which call that is, and its blocks.
struct ShareOfBlock {
  std::uint32_t number = 0;
  std::uint32_t offset = 0;  // of the call
  std::uint32_t begin = 0;   // its first block
  std::uint32_t end = static_cast<std::uint32_t>(groups());

  SHUNT_FUNCTION explicit ShareOfBlock(const CudaShares& shares) {
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kMostSharedCalls - 1; ++i) {
      if (block() >= shares.begins[i]) {
        number = i + 1U;
        begin = shares.begins[i];
        offset = shares.offsets[i];
      } else if (shares.begins[i] < end) {
        end = shares.begins[i];
      }
    }
  }
  SHUNT_FUNCTION CallOfBlock of(const void* call) const {
    return {static_cast<const CudaCall*>(call), block() - begin, end - begin};
  }
  SHUNT_FUNCTION static std::uint32_t block() { return static_cast<std::uint32_t>(group()); }
};
SHUNT_FUNCTION CallOfBlock call_of_block(const CudaCall* first, const CudaShares& shares) {
  const ShareOfBlock share(shares);
  return share.of(reinterpret_cast<const std::uint8_t*>(first) + share.offset);
}
// The same by the copies among the kernel's parameters, which can be read sooner. A kernel may only load them:
// otherwise the compiler copies all to local memory.
SHUNT_FUNCTION CallOfBlock call_in(const CudaCopies& copies, const CudaShares& shares) {
  const ShareOfBlock share(shares);
  return share.of(copies.calls[share.number].bytes);
}
// Returns what is at CudaCall::constants, without a read of that address: it follows the arguments.
template <class T>
SHUNT_FUNCTION const T& constants_of(const CudaCall* call) {
  static_assert(alignof(T) <= 16 && sizeof(T) <= kCudaCopiedConstants);
  return *reinterpret_cast<const T*>(reinterpret_cast<const std::uint8_t*>(call + 1) + kCudaArgumentBytes);
}
SHUNT_FUNCTION const Parameters& parameters_of(const CudaCall* call) {
  return *reinterpret_cast<const Parameters*>(call->parameters);
}
template <class T>
SHUNT_FUNCTION const T* input_of(const CudaCall* call, std::uint32_t index) {
  return reinterpret_cast<const T*>(call->inputs[index]);
}
template <class T>
SHUNT_FUNCTION T* output_of(const CudaCall* call) {
  return reinterpret_cast<T*>(call->output);
}

// The dtypes, numbered as in the enum DType.
namespace dtype {
enum : std::uint32_t {
#define SHUNT_DTYPE(name, gguf_id, block_elements, block_bytes, kind) name,
#include "ops/dtypes.def"
};
}  // namespace dtype

SHUNT_FUNCTION std::uint32_t block_elements(std::uint32_t of) {
  switch (of) {
#define SHUNT_DTYPE(name, gguf_id, block_elements, block_bytes, kind) \
  case dtype::name:                                                   \
    return block_elements;
#include "ops/dtypes.def"
    default:
      return 1;
  }
}
SHUNT_FUNCTION std::uint64_t row_bytes(std::uint32_t of, std::uint64_t elements) {
  switch (of) {
#define SHUNT_DTYPE(name, gguf_id, block_elements, block_bytes, kind) \
  case dtype::name:                                                   \
    return elements / (block_elements) * (block_bytes);
#include "ops/dtypes.def"
    default:
      return 0;
  }
}

// A product corrects the exponent, so subnormal halves need no special case.
SHUNT_FUNCTION float widen_f16(std::uint32_t half) {
#if defined(__clang__) && defined(__NVPTX__)
  return static_cast<float>(__builtin_bit_cast(_Float16, static_cast<std::uint16_t>(half)));
#else
  const float size = kernel_math::float_of((half & 0x7FFFU) << 13U) * 0x1p112F;
  const std::uint32_t bits = kernel_math::bits_of(size) | (size >= 65536.0F ? 0x7F800000U : 0U);
  return kernel_math::float_of(bits | (half & 0x8000U) << 16U);
#endif
}
SHUNT_FUNCTION float widen_bf16(std::uint32_t bits) { return kernel_math::float_of(bits << 16U); }

// Rounds to nearest, ties to even.
SHUNT_FUNCTION std::uint16_t narrow_f16(float value) {
  const std::uint32_t bits = kernel_math::bits_of(value);
  const std::uint32_t sign = bits >> 16U & 0x8000U;
  const std::uint32_t size = bits & 0x7FFFFFFFU;
  std::uint32_t half = 0;
  if (size > 0x7F800000U) {
    half = 0x7E00U;
  } else if (size >= 0x47800000U) {
    half = 0x7C00U;
  } else if (size < 0x38800000U) {  // has steps of 2^-24, like floats above 0.5
    half = kernel_math::bits_of(kernel_math::float_of(size) + 0.5F) - 0x3F000000U;
  } else {
    half = (size - (112U << 23U) + 0xFFFU + (size >> 13U & 1U)) >> 13U;
  }
  return static_cast<std::uint16_t>(sign | half);
}
SHUNT_FUNCTION std::uint16_t narrow_bf16(float value) {
  const std::uint32_t bits = kernel_math::bits_of(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<std::uint16_t>(bits >> 16U | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + (bits >> 16U & 1U)) >> 16U);
}

// REQUIRES: `of` is F32, F16, BF16 or I32.
SHUNT_FUNCTION float load(std::uint32_t of, const void* data, std::uint64_t index) {
  switch (of) {
    case dtype::F16:
      return widen_f16(static_cast<const std::uint16_t*>(data)[index]);
    case dtype::BF16:
      return widen_bf16(static_cast<const std::uint16_t*>(data)[index]);
    case dtype::I32:
      return static_cast<float>(static_cast<const std::int32_t*>(data)[index]);
    default:
      return static_cast<const float*>(data)[index];
  }
}
// REQUIRES: `of` is a floating dtype.
SHUNT_FUNCTION void store(std::uint32_t of, void* data, std::uint64_t index, float value) {
  switch (of) {
    case dtype::F16:
      static_cast<std::uint16_t*>(data)[index] = narrow_f16(value);
      break;
    case dtype::BF16:
      static_cast<std::uint16_t*>(data)[index] = narrow_bf16(value);
      break;
    default:
      static_cast<float*>(data)[index] = value;
  }
}

// Copies one element of a dtype that is not quantized, bit for bit.
SHUNT_FUNCTION void copy_element(std::uint32_t of, void* to, std::uint64_t to_index, const void* from,
                                 std::uint64_t from_index) {
  switch (row_bytes(of, 1)) {
    case 1:
      static_cast<std::uint8_t*>(to)[to_index] = static_cast<const std::uint8_t*>(from)[from_index];
      break;
    case 2:
      static_cast<std::uint16_t*>(to)[to_index] = static_cast<const std::uint16_t*>(from)[from_index];
      break;
    default:
      static_cast<std::uint32_t*>(to)[to_index] = static_cast<const std::uint32_t*>(from)[from_index];
  }
}

struct alignas(16) FourWords {
  std::uint32_t words[4];
};
struct alignas(16) FourFloats {
  float values[4];
};

SHUNT_FUNCTION bool is_in_sixteens(const void* at) { return reinterpret_cast<std::uintptr_t>(at) % 16 == 0; }

// Reads 16 bytes with one access. REQUIRES: the address is a multiple of 16.
SHUNT_FUNCTION FourWords load_four(const void* from) {
#if defined(__clang__) && defined(__NVPTX__)
  FourWords four;
  asm volatile("ld.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(four.words[0]), "=r"(four.words[1]), "=r"(four.words[2]), "=r"(four.words[3])
               : "l"(from));
  return four;
#elif defined(SHUNT_KERNELS_ON_HOST)
  // GCC 12 merges an aligned read with reads of the same bytes by another path, and calls all of them aligned.
  FourWords four;
  __builtin_memcpy(&four, from, sizeof(four));
  return four;
#else
  return *static_cast<const FourWords*>(from);
#endif
}
// Reads four floats, with one access if they begin at a multiple of 16 bytes.
SHUNT_FUNCTION FourFloats read_four(const float* x, bool in_sixteens) {
  if (in_sixteens) return __builtin_bit_cast(FourFloats, load_four(x));
  return {{x[0], x[1], x[2], x[3]}};
}
// Writes four floats, likewise.
SHUNT_FUNCTION void write_four(float* to, const FourFloats& four) {
#if !defined(SHUNT_KERNELS_ON_HOST)
  if (is_in_sixteens(to)) {
    *reinterpret_cast<FourFloats*>(to) = four;
    return;
  }
#endif
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < 4; ++i) to[i] = four.values[i];
}
struct alignas(8) TwoFloats {
  float values[2];
};
// Reads two floats, with one access if they begin at a multiple of 8 bytes.
SHUNT_FUNCTION TwoFloats read_two(const float* x, bool in_eights) {
#if defined(__clang__) && defined(__NVPTX__)
  if (in_eights) {
    TwoFloats two;
    asm volatile("ld.v2.f32 {%0, %1}, [%2];" : "=f"(two.values[0]), "=f"(two.values[1]) : "l"(x));
    return two;
  }
#endif
  static_cast<void>(in_eights);
  return {{x[0], x[1]}};
}
// The same as load_four for what is needed only once: past the first-level cache.
SHUNT_FUNCTION FourWords load_once(const void* from) {
#if defined(__clang__) && defined(__NVPTX__)
  FourWords four;
  asm volatile("ld.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(four.words[0]), "=r"(four.words[1]), "=r"(four.words[2]), "=r"(four.words[3])
               : "l"(from));
  return four;
#else
  return load_four(from);
#endif
}

// The same at any even address.
SHUNT_FUNCTION FourWords load_once_at_even(const void* from) {
  if (is_in_sixteens(from)) return load_once(from);
  FourWords four;
  const auto* const halves = static_cast<const std::uint16_t*>(from);
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < 4; ++i)
    four.words[i] = halves[std::uint64_t{2} * i] | static_cast<std::uint32_t>(halves[std::uint64_t{2} * i + 1U]) << 16U;
  return four;
}

// Returns the bytes of `low` (0 to 3) and `high` (4 to 7) that the four lowest nibbles of `selector` name.
SHUNT_FUNCTION std::uint32_t byte_permute(std::uint32_t low, std::uint32_t high, std::uint32_t selector) {
#if defined(__clang__) && defined(__NVPTX__)
  return __nvvm_prmt(low, high, selector);
#else
  const std::uint64_t both = low | std::uint64_t{high} << 32U;
  std::uint32_t bytes = 0;
  for (std::uint32_t i = 0; i < 4; ++i)
    bytes |= static_cast<std::uint32_t>(both >> (selector >> 4U * i & 7U) * 8U & 255U) << 8U * i;
  return bytes;
#endif
}

// Returns (word & mask) | other, as one instruction.
SHUNT_FUNCTION std::uint32_t masked_or(std::uint32_t word, std::uint32_t mask, std::uint32_t other) {
#if defined(__clang__) && defined(__NVPTX__)
  std::uint32_t bits;
  asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(bits) : "r"(word), "r"(mask), "r"(other));
  return bits;
#else
  return (word & mask) | other;
#endif
}

// Returns 32 bits of `low` and `high`, from bit `shift` of `low` on. REQUIRES: `shift` < 32.
SHUNT_FUNCTION std::uint32_t bits_from(std::uint32_t low, std::uint32_t high, std::uint32_t shift) {
#if defined(__clang__) && defined(__NVPTX__)
  std::uint32_t bits;
  asm("shf.r.wrap.b32 %0, %1, %2, %3;" : "=r"(bits) : "r"(low), "r"(high), "r"(shift));
  return bits;
#else
  return static_cast<std::uint32_t>((low | std::uint64_t{high} << 32U) >> shift);
#endif
}

// Merges the values of all threads of the block and returns the result to each of them. REQUIRES: all threads call it.
// `parts` is read before the next call's first sync() ends, so there is no sync() at the end.
template <class T, class Merge>
SHUNT_FUNCTION T merged(T value, Merge merge) {
  constexpr std::uint32_t kPart = 8;
  static_assert(kPart * kPart == kGroup);
  SHUNT_SHARED T values[kGroup];
  SHUNT_SHARED T parts[kPart];
  values[lane()] = value;
  sync();
  if (lane() < kPart) {
    const std::uint64_t first = std::uint64_t{lane()} * kPart;
    T part = values[first];
    for (std::uint32_t i = 1; i < kPart; ++i) part = merge(part, values[first + i]);
    parts[lane()] = part;
  }
  sync();
  T all = parts[0];
  for (std::uint32_t i = 1; i < kPart; ++i) all = merge(all, parts[i]);
  return all;
}
template <class T>
SHUNT_FUNCTION T sum_of_group(T value) {
  return merged(value, [](T a, T b) { return a + b; });
}
SHUNT_FUNCTION float largest_of_group(float value) {
  return merged(value, [](float a, float b) { return kernel_math::max(a, b); });
}

// Returns the sum of term(column) over the columns of a row to all threads of the block. REQUIRES: all threads call it.
// A thread sums a stretch of its columns before it adds that to the rest, so that long rows stay precise.
template <class Term>
SHUNT_FUNCTION float sum_of_columns(std::uint32_t columns, Term term) {
  constexpr std::uint32_t kStretch = 64 * kGroup;
  float sum = 0.0F;
  for (std::uint64_t first = lane(); first < columns; first += kStretch) {
    const std::uint64_t end = first + kStretch < columns ? first + kStretch : columns;
    float stretch = 0.0F;
    for (std::uint64_t column = first; column < end; column += kGroup) stretch += term(column);
    sum += stretch;
  }
  return sum_of_group(sum);
}
// The same for the largest term; NaN if there is one.
template <class Term>
SHUNT_FUNCTION float largest_of_columns(std::uint32_t columns, Term term) {
  float largest = kernel_math::float_of(0xFF800000U);
  for (std::uint64_t column = lane(); column < columns; column += kGroup)
    largest = kernel_math::max(largest, term(column));
  return largest_of_group(largest);
}

}  // namespace shunt
