// HIP on an NVIDIA GPU: exports the HIP calls in use and forwards each to CUDA's driver, which it opens at run time. It
// shows that the hip backend runs; hip_on_nvidia.sh builds and uses it.
#include <dlfcn.h>

#include <cstddef>

#include "devices/cuda/handles.h"

using namespace shunt::cuda;

namespace {

constexpr int kNoDevice = 100;

template <class Function>
Function find(const char* name) {
  static void* const kLibrary = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  return kLibrary == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(kLibrary, name));
}

// HIP numbers attributes differently. Of those that it does not tell apart, CUDA's first is meant.
int cuda_attribute(int hip_attribute) {
#define SHUNT_DRIVER_ATTRIBUTE(member, cuda, hip) \
  if (hip_attribute == (hip)) return cuda;
#include "devices/cuda/calls.def"
  return 0;
}

}  // namespace

extern "C" {

// The hip backend passes PTX to libraries that export this.
void shunt_driver_takes_ptx() {}

// A row's HIP name is a macro argument, so the name of the one call that differs can be replaced before expansion.
#define hipDeviceGetAttribute shunt_device_attribute
#define SHUNT_DRIVER_CALL(member, cuda, hip, parameters, arguments) SHUNT_PASS_ON(cuda, hip, parameters, arguments)
#define SHUNT_PASS_ON(cuda, hip, parameters, arguments)            \
  int hip parameters {                                             \
    static const auto kFunction = find<int(*) parameters>(#cuda);  \
    return kFunction == nullptr ? kNoDevice : kFunction arguments; \
  }
#include "devices/cuda/calls.def"
#undef hipDeviceGetAttribute

int hipDeviceGetAttribute(int* value, int attribute, int device) {
  return shunt_device_attribute(value, cuda_attribute(attribute), device);
}

}  // extern "C"
