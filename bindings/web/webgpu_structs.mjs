// The structs and constants of src/devices/webgpu/api.h, under the same names, in wasm32's layout.
// tests/web/structs_test.mjs has the compiler compare them.
import { array, f64, pointer, size, struct, u32, u64 } from './layouts.mjs';

export const numbers = {
  kZeroTerminated: 0xffffffff,
  kSuccess: 1,
  kTypeOfWgsl: 2,
  kAnyLimit: 0xffffffff,
  kAnyBytes: 0xffffffffffffffffn,
  'ErrorType::none': 1,
  'ErrorType::validation': 2,
  'ErrorType::out_of_memory': 3,
  'ErrorType::internal': 4,
  'ErrorType::unknown': 5,
  'ErrorFilter::validation': 1,
  'ErrorFilter::out_of_memory': 2,
  'ErrorFilter::internal': 3,
  'PowerPreference::low_power': 1,
  'PowerPreference::high_performance': 2,
  'AdapterType::cpu': 3,
  'AdapterType::unknown': 4,
  'BufferBindingType::uniform': 2,
  'BufferBindingType::storage': 3,
};

function endOfText(memory, at) {
  let end = at;
  while (memory.getUint8(end) !== 0) ++end;
  return end;
}

// Reads as a string; is written as {data, length}.
const stringFields = struct({ data: pointer, length: size });
const StringView = {
  ...stringFields,
  read(memory, at) {
    const { data, length } = stringFields.read(memory, at);
    if (data === 0) return '';
    const bytes = length === numbers.kZeroTerminated ? endOfText(memory, data) - data : length;
    return new TextDecoder().decode(new Uint8Array(memory.buffer, data, bytes));
  },
};

const ChainedStruct = struct({ next: pointer, type: u32 });
const Future = struct({ id: u64 });
const CallbackInfo = struct({ next: pointer, mode: u32, callback: pointer, first: pointer, second: pointer });
const SpontaneousCallbackInfo = struct({ next: pointer, callback: pointer, first: pointer, second: pointer });

export const structs = {
  StringView,
  ChainedStruct,
  Future,
  FutureWaitInfo: struct({ future: Future, completed: u32 }),
  'CallbackInfo<MapCallback>': CallbackInfo,
  'SpontaneousCallbackInfo<ErrorCallback>': SpontaneousCallbackInfo,
  RequestAdapterOptions: struct({
    next: pointer,
    feature_level: u32,
    power_preference: u32,
    force_fallback_adapter: u32,
    backend_type: u32,
    compatible_surface: pointer,
  }),
  AdapterInfo: struct({
    next: pointer,
    vendor: StringView,
    architecture: StringView,
    device: StringView,
    description: StringView,
    backend_type: u32,
    adapter_type: u32,
    vendor_id: u32,
    device_id: u32,
    subgroup_min_size: u32,
    subgroup_max_size: u32,
  }),
  AdapterPropertiesMemoryHeaps: struct({ chain: ChainedStruct, count: size, heaps: pointer }),
  Limits: struct({
    next: pointer,
    of_textures_and_bindings: array(u32, 11),
    max_storage_buffers_per_stage: u32,
    max_storage_textures_per_stage: u32,
    max_uniform_buffers_per_stage: u32,
    max_uniform_binding_bytes: u64,
    max_storage_binding_bytes: u64,
    min_uniform_offset_alignment: u32,
    min_storage_offset_alignment: u32,
    max_vertex_buffers: u32,
    max_buffer_bytes: u64,
    of_stages: array(u32, 16),
  }),
  DeviceDescriptor: struct({
    next: pointer,
    label: StringView,
    required_feature_count: size,
    required_features: pointer,
    required_limits: pointer,
    next_of_queue: pointer,
    queue_label: StringView,
    device_lost: CallbackInfo,
    uncaptured_error: SpontaneousCallbackInfo,
  }),
  BufferDescriptor: struct({ next: pointer, label: StringView, usage: u64, bytes: u64, mapped_at_creation: u32 }),
  ShaderSourceWgsl: struct({ chain: ChainedStruct, code: StringView }),
  ShaderModuleDescriptor: struct({ next: pointer, label: StringView }),
  BindGroupLayoutEntry: struct({
    next: pointer,
    binding: u32,
    visibility: u64,
    array_size: u32,
    buffer: struct({ next: pointer, type: u32, has_dynamic_offset: u32, min_bytes: u64 }),
    sampler: struct({ next: pointer, type: u32 }),
    texture: struct({ next: pointer, sample_type: u32, view_dimension: u32, multisampled: u32 }),
    storage_texture: struct({ next: pointer, access: u32, format: u32, view_dimension: u32 }),
  }),
  BindGroupLayoutDescriptor: struct({ next: pointer, label: StringView, entry_count: size, entries: pointer }),
  PipelineLayoutDescriptor: struct({
    next: pointer,
    label: StringView,
    layout_count: size,
    layouts: pointer,
    immediate_bytes: u32,
  }),
  ConstantEntry: struct({ next: pointer, key: StringView, value: f64 }),
  ComputePipelineDescriptor: struct({
    next: pointer,
    label: StringView,
    layout: pointer,
    next_of_stage: pointer,
    module: pointer,
    entry_point: StringView,
    constant_count: size,
    constants: pointer,
  }),
  BindGroupEntry: struct({
    next: pointer,
    binding: u32,
    buffer: pointer,
    offset: u64,
    bytes: u64,
    sampler: pointer,
    texture_view: pointer,
  }),
  BindGroupDescriptor: struct({
    next: pointer,
    label: StringView,
    layout: pointer,
    entry_count: size,
    entries: pointer,
  }),
};
