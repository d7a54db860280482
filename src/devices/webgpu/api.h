// The compute part of Dawn's C interface of May 2025, and the library that provides it, opened at run time.
//
// Layouts and numbers are those of the library in npm's bun-webgpu-linux-x64 0.1.7. They differ from today's webgpu.h
// (https://github.com/webgpu-native/webgpu-headers) in sizes and in some numbers, so no system header will do. The
// names are ours; the order and size of fields are Dawn's. Plain tables of pointers; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>

#include "shunt/status.h"

namespace shunt::webgpu {

using InstanceHandle = struct InstanceObject*;
using AdapterHandle = struct AdapterObject*;
using DeviceHandle = struct DeviceObject*;
using QueueHandle = struct QueueObject*;
using BufferHandle = struct BufferObject*;
using ShaderModuleHandle = struct ShaderModuleObject*;
using BindGroupLayoutHandle = struct BindGroupLayoutObject*;
using PipelineLayoutHandle = struct PipelineLayoutObject*;
using ComputePipelineHandle = struct ComputePipelineObject*;
using BindGroupHandle = struct BindGroupObject*;
using CommandEncoderHandle = struct CommandEncoderObject*;
using CommandBufferHandle = struct CommandBufferObject*;
using ComputePassEncoderHandle = struct ComputePassEncoderObject*;

// Texts without a length end in a zero byte.
inline constexpr std::size_t kZeroTerminated = ~std::size_t{0};
struct StringView {
  const char* data = nullptr;
  std::size_t length = kZeroTerminated;

  StringView() = default;
  explicit StringView(std::string_view text) : data(text.data()), length(text.size()) {}
  [[nodiscard]] std::string_view view() const {
    if (data == nullptr) return {};
    return length == kZeroTerminated ? std::string_view(data) : std::string_view(data, length);
  }
};

using Bool = std::uint32_t;
using Flags = std::uint64_t;
using Status32 = std::uint32_t;
inline constexpr Status32 kSuccess = 1;  // of every callback and wait

struct ChainedStruct {
  const ChainedStruct* next = nullptr;
  std::uint32_t type = 0;
};
inline constexpr std::uint32_t kTypeOfWgsl = 2;
inline constexpr std::uint32_t kTypeOfMemoryHeaps = 0x00050013;

struct Future {
  std::uint64_t id = 0;
};
struct FutureWaitInfo {
  Future future;
  Bool completed = 0;
};
inline constexpr std::uint32_t kAllowProcessEvents = 2;  // the callback mode we use

template <class Callback>
struct CallbackInfo {
  const ChainedStruct* next = nullptr;
  std::uint32_t mode = kAllowProcessEvents;
  Callback callback = nullptr;
  void* first = nullptr;  // the callback's last two arguments
  void* second = nullptr;
};
template <class Callback>
struct SpontaneousCallbackInfo {
  const ChainedStruct* next = nullptr;
  Callback callback = nullptr;
  void* first = nullptr;
  void* second = nullptr;
};

enum class ErrorType : std::uint32_t { none = 1, validation, out_of_memory, internal, unknown };
enum class ErrorFilter : std::uint32_t { validation = 1, out_of_memory, internal };

using AdapterCallback = void (*)(Status32, AdapterHandle, StringView message, void*, void*);
using DeviceCallback = void (*)(Status32, DeviceHandle, StringView message, void*, void*);
using DeviceLostCallback = void (*)(const DeviceHandle*, std::uint32_t reason, StringView message, void*, void*);
using ErrorCallback = void (*)(const DeviceHandle*, ErrorType, StringView message, void*, void*);
using ErrorScopeCallback = void (*)(Status32, ErrorType, StringView message, void*, void*);
using MapCallback = void (*)(Status32, StringView message, void*, void*);
using WorkDoneCallback = void (*)(Status32, StringView message, void*, void*);

struct InstanceDescriptor {
  const ChainedStruct* next = nullptr;
  const ChainedStruct* next_of_capabilities = nullptr;
  Bool timed_wait_any_enable = 0;
  std::size_t timed_wait_any_max_count = 0;
};

enum class PowerPreference : std::uint32_t { none, low_power, high_performance };
enum class BackendType : std::uint32_t { none = 0, vulkan = 6 };
struct RequestAdapterOptions {
  const ChainedStruct* next = nullptr;
  std::uint32_t feature_level = 2;  // core
  PowerPreference power_preference = PowerPreference::none;
  Bool force_fallback_adapter = 0;
  BackendType backend_type = BackendType::none;
  void* compatible_surface = nullptr;
};

enum class AdapterType : std::uint32_t { discrete = 1, integrated, cpu, unknown };
struct AdapterInfo {
  const ChainedStruct* next = nullptr;
  StringView vendor;
  StringView architecture;
  StringView device;
  StringView description;
  std::uint32_t backend_type = 0;
  AdapterType adapter_type = AdapterType::unknown;
  std::uint32_t vendor_id = 0;
  std::uint32_t device_id = 0;
  std::uint32_t subgroup_min_size = 0;
  std::uint32_t subgroup_max_size = 0;
};

inline constexpr std::uint32_t kFeatureMemoryHeaps = 0x00050016;
inline constexpr Flags kHeapOfDevice = 1;
struct MemoryHeapInfo {
  Flags properties = 0;
  std::uint64_t bytes = 0;
};
struct AdapterPropertiesMemoryHeaps {
  ChainedStruct chain;
  std::size_t count = 0;
  const MemoryHeapInfo* heaps = nullptr;
};

// Means no requirement; limits that no kernel depends on have no name here.
inline constexpr std::uint32_t kAnyLimit = ~std::uint32_t{0};
inline constexpr std::uint64_t kAnyBytes = ~std::uint64_t{0};
template <std::size_t count>
constexpr std::array<std::uint32_t, count> any_limits() {
  std::array<std::uint32_t, count> limits{};
  limits.fill(kAnyLimit);
  return limits;
}
struct Limits {
  const ChainedStruct* next = nullptr;
  std::array<std::uint32_t, 11> of_textures_and_bindings = any_limits<11>();
  std::uint32_t max_storage_buffers_per_stage = kAnyLimit;
  std::uint32_t max_storage_textures_per_stage = kAnyLimit;
  std::uint32_t max_uniform_buffers_per_stage = kAnyLimit;
  std::uint64_t max_uniform_binding_bytes = kAnyBytes;
  std::uint64_t max_storage_binding_bytes = kAnyBytes;
  std::uint32_t min_uniform_offset_alignment = kAnyLimit;
  std::uint32_t min_storage_offset_alignment = kAnyLimit;
  std::uint32_t max_vertex_buffers = kAnyLimit;
  std::uint64_t max_buffer_bytes = kAnyBytes;
  std::array<std::uint32_t, 16> of_stages = any_limits<16>();
};
static_assert(sizeof(Limits) == 168);

struct DeviceDescriptor {
  const ChainedStruct* next = nullptr;
  StringView label;
  std::size_t required_feature_count = 0;
  const std::uint32_t* required_features = nullptr;
  const Limits* required_limits = nullptr;
  const ChainedStruct* next_of_queue = nullptr;
  StringView queue_label;
  CallbackInfo<DeviceLostCallback> device_lost;
  SpontaneousCallbackInfo<ErrorCallback> uncaptured_error;
};

using BufferUsage = Flags;
inline constexpr BufferUsage kMapRead = 0x1;
inline constexpr BufferUsage kCopySource = 0x4;
inline constexpr BufferUsage kCopyTarget = 0x8;
inline constexpr BufferUsage kUniform = 0x40;
inline constexpr BufferUsage kStorage = 0x80;
struct BufferDescriptor {
  const ChainedStruct* next = nullptr;
  StringView label;
  BufferUsage usage = 0;
  std::uint64_t bytes = 0;
  Bool mapped_at_creation = 0;
};
inline constexpr Flags kMapModeRead = 1;

struct ShaderSourceWgsl {
  ChainedStruct chain{nullptr, kTypeOfWgsl};
  StringView code;
};
struct ShaderModuleDescriptor {
  const ChainedStruct* next = nullptr;
  StringView label;
};

enum class BufferBindingType : std::uint32_t { unused = 0, uniform = 2, storage = 3 };
struct BindGroupLayoutEntry {
  const ChainedStruct* next = nullptr;
  std::uint32_t binding = 0;
  Flags visibility = 4;  // the compute stage
  std::uint32_t array_size = 0;
  struct {
    const ChainedStruct* next = nullptr;
    BufferBindingType type = BufferBindingType::unused;
    Bool has_dynamic_offset = 0;
    std::uint64_t min_bytes = 0;
  } buffer;
  struct {
    const ChainedStruct* next = nullptr;
    std::uint32_t type = 0;
  } sampler;
  struct {
    const ChainedStruct* next = nullptr;
    std::uint32_t sample_type = 0;
    std::uint32_t view_dimension = 0;
    Bool multisampled = 0;
  } texture;
  struct {
    const ChainedStruct* next = nullptr;
    std::uint32_t access = 0;
    std::uint32_t format = 0;
    std::uint32_t view_dimension = 0;
  } storage_texture;
};
struct BindGroupLayoutDescriptor {
  const ChainedStruct* next = nullptr;
  StringView label;
  std::size_t entry_count = 0;
  const BindGroupLayoutEntry* entries = nullptr;
};
struct PipelineLayoutDescriptor {
  const ChainedStruct* next = nullptr;
  StringView label;
  std::size_t layout_count = 0;
  const BindGroupLayoutHandle* layouts = nullptr;
  std::uint32_t immediate_bytes = 0;
};
struct ConstantEntry {
  const ChainedStruct* next = nullptr;
  StringView key;  // the number of an @id
  double value = 0.0;
};
struct ComputePipelineDescriptor {
  const ChainedStruct* next = nullptr;
  StringView label;
  PipelineLayoutHandle layout = nullptr;
  const ChainedStruct* next_of_stage = nullptr;
  ShaderModuleHandle module = nullptr;
  StringView entry_point;
  std::size_t constant_count = 0;
  const ConstantEntry* constants = nullptr;
};
struct BindGroupEntry {
  const ChainedStruct* next = nullptr;
  std::uint32_t binding = 0;
  BufferHandle buffer = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  void* sampler = nullptr;
  void* texture_view = nullptr;
};
struct BindGroupDescriptor {
  const ChainedStruct* next = nullptr;
  StringView label;
  BindGroupLayoutHandle layout = nullptr;
  std::size_t entry_count = 0;
  const BindGroupEntry* entries = nullptr;
};

// X(result, name, arguments): the library exports it as wgpuNAME. A descriptor that is never needed is a null void*.
#define SHUNT_WEBGPU_FUNCTIONS(X)                                                                                  \
  X(InstanceHandle, CreateInstance, (const InstanceDescriptor*))                                                   \
  X(void, InstanceRelease, (InstanceHandle))                                                                       \
  X(Future, InstanceRequestAdapter, (InstanceHandle, const RequestAdapterOptions*, CallbackInfo<AdapterCallback>)) \
  X(void, InstanceProcessEvents, (InstanceHandle))                                                                 \
  X(Status32, InstanceWaitAny, (InstanceHandle, std::size_t, FutureWaitInfo*, std::uint64_t timeout_ns))           \
  X(Status32, AdapterGetInfo, (AdapterHandle, AdapterInfo*))                                                       \
  X(void, AdapterInfoFreeMembers, (AdapterInfo))                                                                   \
  X(void, AdapterPropertiesMemoryHeapsFreeMembers, (AdapterPropertiesMemoryHeaps))                                 \
  X(Status32, AdapterGetLimits, (AdapterHandle, Limits*))                                                          \
  X(Bool, AdapterHasFeature, (AdapterHandle, std::uint32_t))                                                       \
  X(Future, AdapterRequestDevice, (AdapterHandle, const DeviceDescriptor*, CallbackInfo<DeviceCallback>))          \
  X(void, AdapterRelease, (AdapterHandle))                                                                         \
  X(QueueHandle, DeviceGetQueue, (DeviceHandle))                                                                   \
  X(BufferHandle, DeviceCreateBuffer, (DeviceHandle, const BufferDescriptor*))                                     \
  X(ShaderModuleHandle, DeviceCreateShaderModule, (DeviceHandle, const ShaderModuleDescriptor*))                   \
  X(BindGroupLayoutHandle, DeviceCreateBindGroupLayout, (DeviceHandle, const BindGroupLayoutDescriptor*))          \
  X(PipelineLayoutHandle, DeviceCreatePipelineLayout, (DeviceHandle, const PipelineLayoutDescriptor*))             \
  X(ComputePipelineHandle, DeviceCreateComputePipeline, (DeviceHandle, const ComputePipelineDescriptor*))          \
  X(BindGroupHandle, DeviceCreateBindGroup, (DeviceHandle, const BindGroupDescriptor*))                            \
  X(CommandEncoderHandle, DeviceCreateCommandEncoder, (DeviceHandle, const void*))                                 \
  X(void, DevicePushErrorScope, (DeviceHandle, ErrorFilter))                                                       \
  X(Future, DevicePopErrorScope, (DeviceHandle, CallbackInfo<ErrorScopeCallback>))                                 \
  X(void, DeviceDestroy, (DeviceHandle))                                                                           \
  X(void, DeviceRelease, (DeviceHandle))                                                                           \
  X(void, QueueWriteBuffer, (QueueHandle, BufferHandle, std::uint64_t offset, const void*, std::size_t))           \
  X(void, QueueSubmit, (QueueHandle, std::size_t, const CommandBufferHandle*))                                     \
  X(Future, QueueOnSubmittedWorkDone, (QueueHandle, CallbackInfo<WorkDoneCallback>))                               \
  X(void, QueueRelease, (QueueHandle))                                                                             \
  X(Future, BufferMapAsync, (BufferHandle, Flags, std::size_t, std::size_t, CallbackInfo<MapCallback>))            \
  X(const void*, BufferGetConstMappedRange, (BufferHandle, std::size_t, std::size_t))                              \
  X(void, BufferUnmap, (BufferHandle))                                                                             \
  X(void, BufferDestroy, (BufferHandle))                                                                           \
  X(void, BufferRelease, (BufferHandle))                                                                           \
  X(void, ShaderModuleRelease, (ShaderModuleHandle))                                                               \
  X(void, BindGroupLayoutRelease, (BindGroupLayoutHandle))                                                         \
  X(void, PipelineLayoutRelease, (PipelineLayoutHandle))                                                           \
  X(void, ComputePipelineRelease, (ComputePipelineHandle))                                                         \
  X(void, BindGroupRelease, (BindGroupHandle))                                                                     \
  X(ComputePassEncoderHandle, CommandEncoderBeginComputePass, (CommandEncoderHandle, const void*))                 \
  X(void, CommandEncoderCopyBufferToBuffer,                                                                        \
    (CommandEncoderHandle, BufferHandle, std::uint64_t from, BufferHandle, std::uint64_t to, std::uint64_t bytes)) \
  X(CommandBufferHandle, CommandEncoderFinish, (CommandEncoderHandle, const void*))                                \
  X(void, CommandEncoderRelease, (CommandEncoderHandle))                                                           \
  X(void, CommandBufferRelease, (CommandBufferHandle))                                                             \
  X(void, ComputePassEncoderSetPipeline, (ComputePassEncoderHandle, ComputePipelineHandle))                        \
  X(void, ComputePassEncoderSetBindGroup,                                                                          \
    (ComputePassEncoderHandle, std::uint32_t group, BindGroupHandle, std::size_t, const std::uint32_t*))           \
  X(void, ComputePassEncoderDispatchWorkgroups,                                                                    \
    (ComputePassEncoderHandle, std::uint32_t, std::uint32_t, std::uint32_t))                                       \
  X(void, ComputePassEncoderEnd, (ComputePassEncoderHandle))                                                       \
  X(void, ComputePassEncoderRelease, (ComputePassEncoderHandle))

// NOLINTBEGIN(readability-identifier-naming): the names are the API's
struct Functions {
#define SHUNT_WEBGPU_MEMBER(answer, name, arguments) answer(*name) arguments = nullptr;
  SHUNT_WEBGPU_FUNCTIONS(SHUNT_WEBGPU_MEMBER)
#undef SHUNT_WEBGPU_MEMBER
};
// NOLINTEND(readability-identifier-naming)

// Releases a handle with its owner: Owned<BufferHandle>(handle, {functions.BufferRelease}).
template <class Handle>
struct Release {
  void (*function)(Handle) = nullptr;
  void operator()(Handle handle) const { function(handle); }
};
template <class Handle>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Release<Handle>>;

// Opens the library that SHUNT_WEBGPU_LIBRARY names, else libwebgpu_wrapper.so beside this program, in ../lib from
// there, or where the system looks. It stays loaded until the process ends. Errors: unsupported, with what would help.
[[nodiscard]] Result<Functions> open_library();

}  // namespace shunt::webgpu
