// How a CUDA-style kernel finds its call: plain data, written by the host and read by the kernels of FAMILY.cu.
//
// A call is a block of device memory: CudaCall, then the family's arguments. It is constant for a program; `parameters`
// points to what changes between submissions. A kernel's parameters are the address of its call and a copy of it.
#pragma once

#include <cstdint>

namespace shunt {

inline constexpr std::uint32_t kCudaGroupSize = 64;  // threads per block, unless a kernel wants another number
inline constexpr std::uint32_t kMaxCudaInputs = 8;
// The bytes of a call's arguments, after which its constants begin.
inline constexpr std::uint32_t kCudaArgumentBytes = 256;
// The bytes before CudaCall::scratch: counters, which are zero when a kernel begins and when it has ended.
inline constexpr std::uint32_t kCudaCounterBytes = 4096;

// Device addresses; 0: none.
struct CudaCall {
  std::uint64_t parameters = 0;
  std::uint64_t output = 0;
  std::uint64_t inputs[kMaxCudaInputs]{};
  std::uint64_t constants = 0;
  std::uint64_t scratch = 0;
  std::uint32_t unwritten = 0;  // bits: inputs that no kernel before it in the program writes
  std::uint32_t reserved[3]{};
};
static_assert(sizeof(CudaCall) == 112 && sizeof(CudaCall) % 16 == 0);

inline constexpr std::uint32_t kMostSharedCalls = 4;
inline constexpr std::uint32_t kCudaCopiedConstants = 48;  // bytes

// Copies of a launch's calls, with the first of their constants.
struct alignas(16) CudaCopy {
  std::uint8_t bytes[sizeof(CudaCall) + kCudaArgumentBytes + kCudaCopiedConstants];
};
struct CudaCopies {
  CudaCopy calls[kMostSharedCalls];
};

// How calls share the blocks of a launch, whose parameter is the first call: where each of the others begins.
struct CudaShares {
  std::uint32_t begins[kMostSharedCalls - 1]{~0U, ~0U, ~0U};  // first blocks, ascending; ~0: there is no such call
  std::uint32_t offsets[kMostSharedCalls - 1]{};              // of their CudaCall, in bytes from the first one
};

}  // namespace shunt
