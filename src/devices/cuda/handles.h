// The handles of the driver API of CUDA and HIP, each with a type of its own, and addresses of device memory.
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
using Address = std::uint64_t;

}  // namespace shunt::cuda
