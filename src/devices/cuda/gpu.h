// The properties of a GPU by which kernels are chosen, asked of its driver. Any thread.
#pragma once

#include "devices/cuda/driver.h"
#include "ops/cuda.h"

namespace shunt::cuda {

// Returns 0 if the device does not answer.
[[nodiscard]] int attribute_of(const Driver& driver, int device, int number);

// The environment's SHUNT_CUDA_TARGET names another compute capability than an NVIDIA GPU's own, so that its kernels
// run there. Errors: invalid if that is no number or the GPU does not run those kernels, unsupported if this build has
// no kernels for an AMD GPU.
[[nodiscard]] Result<CudaGpu> gpu_of(const Driver& driver, int device);

}  // namespace shunt::cuda
