// The types of the driver API of CUDA and HIP: handles, each with a type of its own, addresses of device memory, how a
// kernel is launched, and what AMD's GPUs are.
#pragma once

#include <cstdint>

namespace shunt::cuda {

using ContextHandle = struct ContextObject*;
using StreamHandle = struct StreamObject*;
using EventHandle = struct EventObject*;
using GraphHandle = struct GraphObject*;
using ExecutableHandle = struct ExecutableObject*;
using ModuleHandle = struct ModuleObject*;
using FunctionHandle = struct FunctionObject*;
using PoolHandle = struct PoolObject*;
using Address = std::uint64_t;

// CUlaunchAttribute and CUlaunchConfig.
struct LaunchAttribute {
  int id;
  int reserved = 0;
  int value;
  int rest[15] = {};
};
struct LaunchConfig {
  unsigned blocks, blocks_y, blocks_z;
  unsigned threads, threads_y, threads_z;
  unsigned shared_bytes;
  StreamHandle stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};
static_assert(sizeof(LaunchAttribute) == 72 && sizeof(LaunchConfig) == 56);

// CUmemAccessDesc: how a device accesses the memory of a pool.
struct PoolAccess {
  int location_type = 1;  // a device
  int device;
  int rights = 3;  // it reads and writes
};
static_assert(sizeof(PoolAccess) == 12);

// hipDeviceProp_t of HIP 5, which hipGetDeviceProperties of later libraries still writes; theirs has another name.
struct HipProperties {
  char before[396];
  char gfx[256];  // "gfx90a:sramecc+:xnack-"
  char after[1024];
};

}  // namespace shunt::cuda
