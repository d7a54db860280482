// Runs a CUDA-style kernel on the CPU: the threads of a block take turns on stacks of their own, and the whole block
// waits at sync(). One block at a time, on one thread of the process at a time.
#pragma once

#include <cstdint>

#include "ops/cuda_call.h"

namespace shunt::simulated {

using KernelFunction = void (*)(const CudaCall* call);

// The lanes of every other block run backwards, so that a barrier that is missing shows.
void run_blocks(KernelFunction kernel, const CudaCall* call, std::uint64_t blocks);

}  // namespace shunt::simulated
