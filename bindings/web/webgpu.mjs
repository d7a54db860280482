// The browser's WebGPU behind the C functions of src/devices/webgpu/api.h: imports of the module "webgpu".
//
// A handle is a number that names an object until it is released. An asynchronous result becomes a future of its
// instance. The callback of a settled future runs only in InstanceWaitAny or InstanceProcessEvents. Only
// InstanceWaitAny and Availability suspend WebAssembly.
import { array, pointer, u32 } from './layouts.mjs';
import { numbers, structs } from './webgpu_structs.mjs';

const { kSuccess, kTypeOfWgsl, kAnyLimit } = numbers;
const kAnyBytes = Number(numbers.kAnyBytes);
// Statuses of failed waits and callbacks, which api.h does not name.
const kTimedOut = 2;
const kFailed = 3;
const kLostReasons = { unknown: 1, destroyed: 2 };
const kAvailability = { noWebGpu: 0, noAdapter: 1, available: 2 };  // as in instead/devices/webgpu/api.cpp
const kErrorFilters = {
  [numbers['ErrorFilter::validation']]: 'validation',
  [numbers['ErrorFilter::out_of_memory']]: 'out-of-memory',
  [numbers['ErrorFilter::internal']]: 'internal',
};
const kPowerPreferences = {
  [numbers['PowerPreference::low_power']]: 'low-power',
  [numbers['PowerPreference::high_performance']]: 'high-performance',
};
const kBufferTypes = {
  [numbers['BufferBindingType::uniform']]: 'uniform',
  [numbers['BufferBindingType::storage']]: 'storage',
};
const kReleased = [
  'Instance', 'Adapter', 'Device', 'Queue', 'Buffer', 'ShaderModule', 'BindGroupLayout', 'PipelineLayout',
  'ComputePipeline', 'BindGroup', 'CommandEncoder', 'CommandBuffer', 'ComputePassEncoder',
];
const kLongestTimerMs = 2 ** 31 - 1;
// The limits that kernels depend on: api.h's name -> the browser's.
const kLimits = {
  max_storage_buffers_per_stage: 'maxStorageBuffersPerShaderStage',
  max_storage_textures_per_stage: 'maxStorageTexturesPerShaderStage',
  max_uniform_buffers_per_stage: 'maxUniformBuffersPerShaderStage',
  max_uniform_binding_bytes: 'maxUniformBufferBindingSize',
  max_storage_binding_bytes: 'maxStorageBufferBindingSize',
  min_uniform_offset_alignment: 'minUniformBufferOffsetAlignment',
  min_storage_offset_alignment: 'minStorageBufferOffsetAlignment',
  max_vertex_buffers: 'maxVertexBuffers',
  max_buffer_bytes: 'maxBufferSize',
};

function typeOfError(error) {
  if (!error) return numbers['ErrorType::none'];
  if (error instanceof GPUValidationError) return numbers['ErrorType::validation'];
  if (error instanceof GPUOutOfMemoryError) return numbers['ErrorType::out_of_memory'];
  return error instanceof GPUInternalError ? numbers['ErrorType::internal'] : numbers['ErrorType::unknown'];
}

function nameOfAdapter(info) {
  return info.device || info.description || [info.vendor, info.architecture].filter(Boolean).join(' ') || 'GPU';
}

// WebAssembly passes numbers as signed; all of this interface are unsigned.
const unsigned = (number) => (typeof number === 'bigint' ? Number(BigInt.asUintN(64, number)) : number >>> 0);

async function requestAdapter(powerPreference, forceFallbackAdapter) {
  const adapter = await navigator.gpu.requestAdapter({ powerPreference, forceFallbackAdapter });
  if (!adapter) throw new Error('the browser has no such adapter');
  return adapter;
}

async function availability() {
  if (!navigator.gpu) return kAvailability.noWebGpu;
  return (await navigator.gpu.requestAdapter()) ? kAvailability.available : kAvailability.noAdapter;
}

function limitsOf(limits) {
  const required = {};
  for (const [name, browsers] of Object.entries(kLimits))
    if (limits[name] !== kAnyLimit && limits[name] !== kAnyBytes) required[browsers] = limits[name];
  return required;
}

// An instance's futures, and unrequested events: everything that waits for its callback.
class Instance {
  futures = new Map();  // id -> call once settled, else null
  wake = () => {};      // ends a wait's sleep
  last = 0;

  // `answer`: a promise of the call that passes the answer to WebAssembly. It must not be rejected.
  add(answer) {
    const id = ++this.last;
    this.futures.set(id, null);
    answer.then((call) => {
      this.futures.set(id, call);
      this.wake();
    });
    return id;
  }

  // Passes on a future's result if it has arrived. Returns whether it has, now or before.
  settle(id) {
    const call = this.futures.get(id);
    if (call === null) return false;
    this.futures.delete(id);
    call?.();
    return true;
  }

  settleAll() {
    for (const id of [...this.futures.keys()]) this.settle(id);
  }

  async sleep(milliseconds) {
    let timer;
    await new Promise((wake) => {
      this.wake = wake;
      timer = setTimeout(wake, Math.min(milliseconds, kLongestTimerMs));
    });
    clearTimeout(timer);
    this.wake = () => {};
  }
}

// `wasm`: memory, table, malloc(bytes), free(pointer) of the instance, available once it is made.
export function webgpuImports(wasm) {
  const objects = new Map();  // handle -> {object, owner}; owner: its instance, with stray() for a device
  const mapped = new Map();   // GPUBuffer -> its copy in WebAssembly's memory
  let lastHandle = 0;

  const memory = () => new DataView(wasm.memory.buffer);
  const read = (name, at) => structs[name].read(memory(), at);
  const list = (type, count, at) => array(type, count).read(memory(), at);
  const kept = (handle) => {
    const found = objects.get(handle);
    if (found === undefined) throw new TypeError(`there is no WebGPU object ${handle}`);
    return found;
  };
  const get = (handle) => kept(handle).object;
  const keep = (object, owner) => {
    objects.set(++lastHandle, { object, owner });
    return lastHandle;
  };
  // Makes a handle for something that an object created.
  const keepOf = (maker, object) => keep(object, kept(maker).owner);

  const copy = (bytes) => {
    const at = wasm.malloc(bytes.length);
    if (at === 0 && bytes.length > 0) throw new RangeError(`WebAssembly has no ${bytes.length} bytes left`);
    new Uint8Array(wasm.memory.buffer, at, bytes.length).set(bytes);
    return at;
  };
  const copyText = (text) => {
    const bytes = new TextEncoder().encode(text);
    return { data: copy(bytes), length: bytes.length };
  };
  // Calls WebAssembly with the numbers, the message, and the callback's two pointers.
  const callBack = ({ callback, first, second }, numbers, message) => {
    const text = copyText(message);
    const view = copy(new Uint8Array(structs.StringView.bytes));
    structs.StringView.write(memory(), view, text);
    wasm.table.get(callback)(...numbers, view, first, second);
    wasm.free(view);
    wasm.free(text.data);
  };
  // Calls a device's callback, whose first argument is the address of the handle.
  const callBackOf = (device, info, number, message) => {
    const cell = copy(new Uint8Array(pointer.bytes));
    pointer.write(memory(), cell, device);
    callBack(info, [cell, number], message);
    wasm.free(cell);
  };
  const freeCopy = (buffer) => {
    wasm.free(mapped.get(buffer) ?? 0);
    mapped.delete(buffer);
  };
  // Makes a future of the object's instance. `start` returns a promise; `answered` and `refused` give the callback's
  // arguments.
  const future = (handle, at, start, answered, refused) => {
    const info = read('CallbackInfo<MapCallback>', at);
    const answer = start().then(
      (value) => () => callBack(info, answered(value), value?.message ?? ''),
      (error) => () => callBack(info, refused, error.message),
    );
    return BigInt(kept(handle).owner.instance.add(answer));
  };

  const keepDevice = (device, instance, { device_lost: lost, uncaptured_error: uncaptured }) => {
    const stray = (type, message) =>
      instance.add(Promise.resolve(() => callBackOf(handle, uncaptured, type, message)));
    const handle = keep(device, { instance, stray });
    device.addEventListener('uncapturederror', (event) => {
      event.preventDefault();
      stray(typeOfError(event.error), event.error.message);
    });
    instance.add(device.lost.then(({ reason, message }) => () =>
      callBackOf(handle, lost, kLostReasons[reason] ?? kLostReasons.unknown, message || 'the browser says no reason')));
    return handle;
  };

  const waitAny = async (handle, count, infos, timeoutNs) => {
    const instance = get(handle);
    const type = structs.FutureWaitInfo;
    const end = performance.now() + timeoutNs / 1e6;
    // Results that arrived earlier are available at once; a caller that asks again is waiting for another.
    if (list(type, count, infos).every(({ future: { id } }) => !instance.futures.has(id))) await instance.sleep(0);
    for (;;) {
      let settled = false;
      list(type, count, infos).forEach(({ future: { id } }, index) => {
        if (!instance.settle(id)) return;
        settled = true;
        type.write(memory(), infos + index * type.bytes, { completed: 1 });
      });
      if (settled) return kSuccess;
      const left = end - performance.now();
      if (left <= 0) return kTimedOut;
      await instance.sleep(left);
    }
  };

  const functions = {
    CreateInstance() {
      const instance = new Instance();
      return keep(instance, { instance });
    },
    InstanceRequestAdapter(instance, options, info) {
      const { power_preference: power, force_fallback_adapter: fallback } = read('RequestAdapterOptions', options);
      const start = () => requestAdapter(kPowerPreferences[power], Boolean(fallback));
      return future(instance, info, start, (adapter) => [kSuccess, keepOf(instance, adapter)], [kFailed, 0]);
    },
    InstanceProcessEvents: (instance) => get(instance).settleAll(),

    AdapterGetInfo(adapter, at) {
      const { info } = get(adapter);
      const texts = [info.vendor, info.architecture, nameOfAdapter(info), info.description].map(copyText);
      const [vendor, architecture, device, description] = texts;
      const type = numbers[info.isFallbackAdapter ? 'AdapterType::cpu' : 'AdapterType::unknown'];
      structs.AdapterInfo.write(memory(), at, { vendor, architecture, device, description, adapter_type: type });
      return kSuccess;
    },
    AdapterInfoFreeMembers(at) {
      for (const name of ['vendor', 'architecture', 'device', 'description'])
        wasm.free(pointer.read(memory(), at + structs.AdapterInfo.offsets[name]));
    },
    AdapterPropertiesMemoryHeapsFreeMembers: (at) => wasm.free(read('AdapterPropertiesMemoryHeaps', at).heaps),
    AdapterGetLimits(adapter, at) {
      const { limits } = get(adapter);
      const named = Object.entries(kLimits).map(([name, browsers]) => [name, limits[browsers]]);
      structs.Limits.write(memory(), at, Object.fromEntries(named));
      return kSuccess;
    },
    AdapterHasFeature: () => 0,  // the features that api.h names are Dawn's own
    AdapterRequestDevice(adapter, at, info) {
      const { owner: { instance } } = kept(adapter);
      const descriptor = read('DeviceDescriptor', at);
      const requiredLimits = limitsOf(read('Limits', descriptor.required_limits));
      const start = () => get(adapter).requestDevice({ label: descriptor.label, requiredLimits });
      const answered = (device) => [kSuccess, keepDevice(device, instance, descriptor)];
      return future(adapter, info, start, answered, [kFailed, 0]);
    },

    DeviceGetQueue: (device) => keepOf(device, get(device).queue),
    DeviceCreateBuffer(device, at) {
      const { label, usage, bytes } = read('BufferDescriptor', at);
      return keepOf(device, get(device).createBuffer({ label, usage, size: bytes }));
    },
    DeviceCreateShaderModule(device, at) {
      const { label, next } = read('ShaderModuleDescriptor', at);
      const { chain, code } = read('ShaderSourceWgsl', next);
      if (chain.type !== kTypeOfWgsl) throw new TypeError(`a shader module of type ${chain.type} is not WGSL`);
      return keepOf(device, get(device).createShaderModule({ label, code }));
    },
    DeviceCreateBindGroupLayout(device, at) {
      const { label, entry_count: count, entries: from } = read('BindGroupLayoutDescriptor', at);
      const entries = list(structs.BindGroupLayoutEntry, count, from).map(({ binding, visibility, buffer }) => ({
        binding,
        visibility,
        buffer: { type: kBufferTypes[buffer.type], minBindingSize: buffer.min_bytes },
      }));
      return keepOf(device, get(device).createBindGroupLayout({ label, entries }));
    },
    DeviceCreatePipelineLayout(device, at) {
      const { label, layout_count: count, layouts } = read('PipelineLayoutDescriptor', at);
      const bindGroupLayouts = list(pointer, count, layouts).map(get);
      return keepOf(device, get(device).createPipelineLayout({ label, bindGroupLayouts }));
    },
    DeviceCreateComputePipeline(device, at) {
      const descriptor = read('ComputePipelineDescriptor', at);
      const { label, layout, module, entry_point: entryPoint, constant_count: count } = descriptor;
      const entries = list(structs.ConstantEntry, count, descriptor.constants).map(({ key, value }) => [key, value]);
      const compute = { module: get(module), entryPoint, constants: Object.fromEntries(entries) };
      return keepOf(device, get(device).createComputePipeline({ label, layout: get(layout), compute }));
    },
    DeviceCreateBindGroup(device, at) {
      const { label, layout, entry_count: count, entries: from } = read('BindGroupDescriptor', at);
      const entries = list(structs.BindGroupEntry, count, from).map(({ binding, buffer, offset, bytes }) => ({
        binding,
        resource: { buffer: get(buffer), offset, size: bytes },
      }));
      return keepOf(device, get(device).createBindGroup({ label, layout: get(layout), entries }));
    },
    DeviceCreateCommandEncoder: (device) => keepOf(device, get(device).createCommandEncoder()),
    DevicePushErrorScope: (device, filter) => get(device).pushErrorScope(kErrorFilters[filter]),
    DevicePopErrorScope(device, info) {
      const answered = (error) => [kSuccess, typeOfError(error)];
      const refused = [kFailed, numbers['ErrorType::unknown']];
      return future(device, info, () => get(device).popErrorScope(), answered, refused);
    },
    DeviceDestroy: (device) => get(device).destroy(),

    QueueWriteBuffer: (queue, buffer, offset, from, bytes) =>
      get(queue).writeBuffer(get(buffer), offset, wasm.memory.buffer, from, bytes),
    QueueSubmit: (queue, count, commands) => get(queue).submit(list(pointer, count, commands).map(get)),
    QueueOnSubmittedWorkDone: (queue, info) =>
      future(queue, info, () => get(queue).onSubmittedWorkDone(), () => [kSuccess], [kFailed]),

    BufferMapAsync: (buffer, mode, offset, bytes, info) =>
      future(buffer, info, () => get(buffer).mapAsync(mode, offset, bytes), () => [kSuccess], [kFailed]),
    BufferGetConstMappedRange(handle, offset, bytes) {
      const buffer = get(handle);
      const range = new Uint8Array(buffer.getMappedRange(offset, bytes));
      freeCopy(buffer);
      mapped.set(buffer, copy(range));
      return mapped.get(buffer);
    },
    BufferUnmap(buffer) {
      freeCopy(get(buffer));
      get(buffer).unmap();
    },
    BufferDestroy(buffer) {
      freeCopy(get(buffer));
      get(buffer).destroy();
    },

    CommandEncoderBeginComputePass: (encoder) => keepOf(encoder, get(encoder).beginComputePass()),
    CommandEncoderCopyBufferToBuffer: (encoder, from, fromOffset, to, toOffset, bytes) =>
      get(encoder).copyBufferToBuffer(get(from), fromOffset, get(to), toOffset, bytes),
    CommandEncoderFinish: (encoder) => keepOf(encoder, get(encoder).finish()),
    ComputePassEncoderSetPipeline: (pass, pipeline) => get(pass).setPipeline(get(pipeline)),
    ComputePassEncoderSetBindGroup: (pass, index, group, count, offsets) =>
      get(pass).setBindGroup(index, get(group), list(u32, count, offsets)),
    ComputePassEncoderDispatchWorkgroups: (pass, x, y, z) => get(pass).dispatchWorkgroups(x, y, z),
    ComputePassEncoderEnd: (pass) => get(pass).end(),
  };
  for (const type of kReleased) functions[`${type}Release`] = (handle) => objects.delete(handle);

  // A browser exception must not unwind WebAssembly: it becomes an uncaptured error of the device.
  const guarded = (name) => (...numbers) => {
    const [handle, ...others] = numbers.map(unsigned);
    try {
      return functions[name](handle, ...others);
    } catch (error) {
      const stray = objects.get(handle)?.owner.stray;
      if (stray === undefined || error instanceof WebAssembly.RuntimeError) throw error;
      stray(numbers['ErrorType::unknown'], `${name}: ${error.message}`);
      return 0;
    }
  };
  return {
    ...Object.fromEntries(Object.keys(functions).map((name) => [name, guarded(name)])),
    InstanceWaitAny: new WebAssembly.Suspending((...numbers) => waitAny(...numbers.map(unsigned))),
    Availability: new WebAssembly.Suspending(availability),
  };
}
