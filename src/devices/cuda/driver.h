// The driver API of CUDA, and HIP's of the same shape: the calls in use, found in a library that is opened at run time.
//
// The declarations are our own, so that no toolkit is needed: handles are untyped pointers, addresses on the device are
// 64-bit numbers, and a call answers a number, 0 for success. Numbers of errors are the same in both APIs.
// CUDA: https://docs.nvidia.com/cuda/cuda-driver-api/, HIP: https://rocm.docs.amd.com/projects/HIP/.
// Plain tables of pointers; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "shunt/status.h"

namespace shunt::cuda {

using Handle = void*;
using Address = std::uint64_t;

// X(member, name in CUDA, name in HIP, parameters)
#define SHUNT_DRIVER_FUNCTIONS(X)                                                                                      \
  X(init, cuInit, hipInit, unsigned)                                                                                   \
  X(driver_version, cuDriverGetVersion, hipDriverGetVersion, int*)                                                     \
  X(device_count, cuDeviceGetCount, hipGetDeviceCount, int*)                                                           \
  X(device, cuDeviceGet, hipDeviceGet, int*, int)                                                                      \
  X(device_name, cuDeviceGetName, hipDeviceGetName, char*, int, int)                                                   \
  X(device_uuid, cuDeviceGetUuid, hipDeviceGetUuid, std::uint8_t*, int)                                                \
  X(device_memory, cuDeviceTotalMem_v2, hipDeviceTotalMem, std::size_t*, int)                                          \
  X(device_attribute, cuDeviceGetAttribute, hipDeviceGetAttribute, int*, int, int)                                     \
  X(context_retain, cuDevicePrimaryCtxRetain, hipDevicePrimaryCtxRetain, Handle*, int)                                 \
  X(context_release, cuDevicePrimaryCtxRelease_v2, hipDevicePrimaryCtxRelease, int)                                    \
  X(context_enter, cuCtxSetCurrent, hipCtxSetCurrent, Handle)                                                          \
  X(memory_info, cuMemGetInfo_v2, hipMemGetInfo, std::size_t*, std::size_t*)                                           \
  X(memory_allocate, cuMemAlloc_v2, hipMalloc, Address*, std::size_t)                                                  \
  X(memory_free, cuMemFree_v2, hipFree, Address)                                                                       \
  X(host_allocate, cuMemHostAlloc, hipHostMalloc, void**, std::size_t, unsigned)                                       \
  X(host_free, cuMemFreeHost, hipHostFree, void*)                                                                      \
  X(fill, cuMemsetD8Async, hipMemsetD8Async, Address, unsigned char, std::size_t, Handle)                              \
  X(copy_to_device, cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync, Address, const void*, std::size_t, Handle)               \
  X(copy_to_host, cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync, void*, Address, std::size_t, Handle)                       \
  X(stream_create, cuStreamCreate, hipStreamCreateWithFlags, Handle*, unsigned)                                        \
  X(stream_destroy, cuStreamDestroy_v2, hipStreamDestroy, Handle)                                                      \
  X(stream_query, cuStreamQuery, hipStreamQuery, Handle)                                                               \
  X(capture_begin, cuStreamBeginCapture_v2, hipStreamBeginCapture, Handle, int)                                        \
  X(capture_end, cuStreamEndCapture, hipStreamEndCapture, Handle, Handle*)                                             \
  X(graph_instantiate, cuGraphInstantiateWithFlags, hipGraphInstantiateWithFlags, Handle*, Handle, unsigned long long) \
  X(graph_launch, cuGraphLaunch, hipGraphLaunch, Handle, Handle)                                                       \
  X(graph_destroy, cuGraphDestroy, hipGraphDestroy, Handle)                                                            \
  X(executable_destroy, cuGraphExecDestroy, hipGraphExecDestroy, Handle)                                               \
  X(module_load, cuModuleLoadData, hipModuleLoadData, Handle*, const void*)                                            \
  X(module_unload, cuModuleUnload, hipModuleUnload, Handle)                                                            \
  X(module_function, cuModuleGetFunction, hipModuleGetFunction, Handle*, Handle, const char*)                          \
  X(launch, cuLaunchKernel, hipModuleLaunchKernel, Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
    unsigned, Handle, void**, void**)                                                                                  \
  X(event_create, cuEventCreate, hipEventCreateWithFlags, Handle*, unsigned)                                           \
  X(event_destroy, cuEventDestroy_v2, hipEventDestroy, Handle)                                                         \
  X(event_record, cuEventRecord, hipEventRecord, Handle, Handle)                                                       \
  X(event_query, cuEventQuery, hipEventQuery, Handle)

struct DriverFunctions {
#define SHUNT_DRIVER_MEMBER(member, cuda, hip, ...) int (*member)(__VA_ARGS__) = nullptr;
  SHUNT_DRIVER_FUNCTIONS(SHUNT_DRIVER_MEMBER)
#undef SHUNT_DRIVER_MEMBER
};

inline constexpr int kSuccess = 0;
inline constexpr int kNotReady = 600;
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventWithoutTime = 2;
inline constexpr int kCaptureOfThread = 1;

// Numbers of the device attributes in use, which differ.
struct AttributeNumbers {
  int compute_units;
  int capability_major;
  int capability_minor;
  int integrated;
};

// One of the two APIs.
struct DriverApi {
  std::string_view name;  // of the backend
  std::string_view title;
  std::string_view vendor;
  std::span<const char* const> functions;  // in the order of the table
  std::span<const char* const> libraries;  // tried in this order
  const char* library_variable;            // names another library to open instead
  std::string_view install;
  AttributeNumbers attributes;
};
[[nodiscard]] const DriverApi& cuda_api();
[[nodiscard]] const DriverApi& hip_api();

// "what: out of memory (2)" with the code that fits. REQUIRES: `number` is an error.
[[nodiscard]] std::unexpected<Error> error_of(int number, std::string_view what);
[[nodiscard]] inline Status check(int number, std::string_view what) {
  if (number == kSuccess) return {};
  return error_of(number, what);
}

// The library, initialized. It stays loaded until the process ends, as its own threads may run.
class Driver {
 public:
  // Errors: unsupported, with the stage where it stopped and what helps.
  [[nodiscard]] static Result<std::shared_ptr<const Driver>> open(const DriverApi& api);

  [[nodiscard]] const DriverApi& api() const { return *api_; }
  [[nodiscard]] const DriverFunctions& call() const { return functions_; }
  // The library says of itself, by exporting shunt_driver_is_simulated, that it computes on the CPU.
  [[nodiscard]] bool simulated() const { return simulated_; }
  // Whether it takes PTX: CUDA, and a HIP over CUDA that exports shunt_driver_takes_ptx.
  [[nodiscard]] bool takes_ptx() const { return takes_ptx_; }

 private:
  Driver() = default;
  [[nodiscard]] Status load();

  const DriverApi* api_ = nullptr;
  DriverFunctions functions_;
  bool simulated_ = false;
  bool takes_ptx_ = false;
};

}  // namespace shunt::cuda
