// The imports of the module "webgl": one function for each row of src/devices/webgl/api.h, under its name.
//
// WebGL has objects where OpenGL ES has numbers, so objects are kept here under numbers that are never reused. Pointers
// are offsets in the instance's memory, which may move whenever it grows, so views are recreated for every access.

const kInfoLogLength = 0x8b84;
const kUnsignaled = 0x9118;
const kContextLost = 0x9242;

class Objects {
  // Set when a requested object is gone because its context was lost and replaced.
  missed = false;
  #objects = new Map();
  #last = 0;

  add(object) {
    this.#last += 1;
    this.#objects.set(this.#last, object);
    return this.#last;
  }

  get(number) {
    const object = this.#objects.get(number);
    if (number !== 0 && object === undefined) this.missed = true;
    return object ?? null;
  }

  take(number) {
    const object = this.#objects.get(number);
    this.#objects.delete(number);
    return object ?? null;
  }

  clear() {
    this.#objects.clear();
  }
}

function makeContext() {
  const canvas = typeof OffscreenCanvas === 'undefined' ? document.createElement('canvas') : new OffscreenCanvas(1, 1);
  canvas.width = 1;
  canvas.height = 1;
  return canvas.getContext('webgl2', {
    alpha: false,
    antialias: false,
    depth: false,
    stencil: false,
    powerPreference: 'high-performance',
  });
}

// `wasm.memory`: the WebAssembly.Memory of the instance.
export function webglImports(wasm) {
  let gl = null;
  const objects = new Objects();

  // Pointers arrive as signed numbers.
  const bytes = (at, count) => new Uint8Array(wasm.memory.buffer, at >>> 0, count);
  // The host's data may begin at any byte, but a view of words may not.
  const words = (at, count) =>
    at % 4 === 0
      ? new Uint32Array(wasm.memory.buffer, at >>> 0, count)
      : new Uint32Array(bytes(at, 4 * count).slice().buffer);
  const putWord = (at, value) => new DataView(wasm.memory.buffer).setInt32(at >>> 0, Number(value), true);
  const word = (at) => new DataView(wasm.memory.buffer).getInt32(at >>> 0, true);

  const text = (at, count) => new TextDecoder().decode(bytes(at, count));
  const name = (at) => text(at, bytes(at).indexOf(0));
  // Writes a zero-terminated text; returns its bytes without the zero.
  const putText = (at, capacity, value) => {
    const { written } = new TextEncoder().encodeInto(value, bytes(at, capacity - 1));
    bytes(at, capacity)[written] = 0;
    return written;
  };
  const putLog = (log, capacity, length, at) => putWord(length, putText(at, capacity, log ?? ''));
  const logBytes = (log) => new TextEncoder().encode(log ?? '').length + 1;

  const generate = (create) => (count, numbers) => {
    for (let i = 0; i < count; ++i) putWord(numbers + 4 * i, objects.add(create()));
  };
  const remove = (destroy) => (count, numbers) => {
    for (let i = 0; i < count; ++i) destroy(objects.take(word(numbers + 4 * i)));
  };

  return {
    Open() {
      if (gl === null || gl.isContextLost()) {
        objects.clear();
        gl = makeContext();
      }
      return gl === null ? 0 : 1;
    },

    GetError() {
      if (!objects.missed) return gl.getError();
      objects.missed = false;
      return kContextLost;
    },
    GetIntegerv: (what, value) => putWord(value, gl.getParameter(what) ?? 0),

    CreateShader: (type) => objects.add(gl.createShader(type)),
    ShaderSource(shader, count, texts, lengths) {
      let source = '';
      for (let i = 0; i < count; ++i) source += text(word(texts + 4 * i), word(lengths + 4 * i));
      gl.shaderSource(objects.get(shader), source);
    },
    CompileShader: (shader) => gl.compileShader(objects.get(shader)),
    GetShaderiv(shader, what, value) {
      const object = objects.get(shader);
      if (what === kInfoLogLength) putWord(value, logBytes(gl.getShaderInfoLog(object)));
      else putWord(value, gl.getShaderParameter(object, what) ?? 0);
    },
    GetShaderInfoLog: (shader, capacity, length, at) =>
      putLog(gl.getShaderInfoLog(objects.get(shader)), capacity, length, at),
    DeleteShader: (shader) => gl.deleteShader(objects.take(shader)),

    CreateProgram: () => objects.add(gl.createProgram()),
    AttachShader: (program, shader) => gl.attachShader(objects.get(program), objects.get(shader)),
    LinkProgram: (program) => gl.linkProgram(objects.get(program)),
    GetProgramiv(program, what, value) {
      const object = objects.get(program);
      if (what === kInfoLogLength) putWord(value, logBytes(gl.getProgramInfoLog(object)));
      else putWord(value, gl.getProgramParameter(object, what) ?? 0);
    },
    GetProgramInfoLog: (program, capacity, length, at) =>
      putLog(gl.getProgramInfoLog(objects.get(program)), capacity, length, at),
    DeleteProgram: (program) => gl.deleteProgram(objects.take(program)),
    UseProgram: (program) => gl.useProgram(objects.get(program)),
    GetUniformLocation(program, at) {
      const location = gl.getUniformLocation(objects.get(program), name(at));
      return location === null ? -1 : objects.add(location);
    },
    Uniform1i: (location, value) => gl.uniform1i(objects.get(location), value),
    GetUniformBlockIndex: (program, at) => gl.getUniformBlockIndex(objects.get(program), name(at)),
    UniformBlockBinding: (program, block, binding) => gl.uniformBlockBinding(objects.get(program), block, binding),

    GenBuffers: generate(() => gl.createBuffer()),
    DeleteBuffers: remove((buffer) => gl.deleteBuffer(buffer)),
    BindBuffer: (target, buffer) => gl.bindBuffer(target, objects.get(buffer)),
    BindBufferRange: (target, binding, buffer, begin, count) =>
      gl.bindBufferRange(target, binding, objects.get(buffer), begin, count),
    BufferData: (target, count, from, usage) => gl.bufferData(target, bytes(from, count), usage),
    BufferSubData: (target, begin, count, from) => gl.bufferSubData(target, begin, bytes(from, count)),

    GenTextures: generate(() => gl.createTexture()),
    DeleteTextures: remove((texture) => gl.deleteTexture(texture)),
    ActiveTexture: (unit) => gl.activeTexture(unit),
    BindTexture: (target, texture) => gl.bindTexture(target, objects.get(texture)),
    TexStorage2D: (target, levels, format, width, height) => gl.texStorage2D(target, levels, format, width, height),
    TexParameteri: (target, what, value) => gl.texParameteri(target, what, value),
    TexSubImage2D: (target, level, x, y, width, height, format, type, from) =>
      gl.texSubImage2D(target, level, x, y, width, height, format, type, words(from, width * height)),
    CopyTexSubImage2D: (target, level, toX, toY, x, y, width, height) =>
      gl.copyTexSubImage2D(target, level, toX, toY, x, y, width, height),

    GenFramebuffers: generate(() => gl.createFramebuffer()),
    DeleteFramebuffers: remove((framebuffer) => gl.deleteFramebuffer(framebuffer)),
    BindFramebuffer: (target, framebuffer) => gl.bindFramebuffer(target, objects.get(framebuffer)),
    FramebufferTexture2D: (target, attachment, textureTarget, texture, level) =>
      gl.framebufferTexture2D(target, attachment, textureTarget, objects.get(texture), level),
    CheckFramebufferStatus: (target) => gl.checkFramebufferStatus(target),
    ClearBufferuiv: (what, index, value) => gl.clearBufferuiv(what, index, words(value, 4)),
    Viewport: (x, y, width, height) => gl.viewport(x, y, width, height),
    DrawArrays: (mode, first, count) => gl.drawArrays(mode, first, count),
    // Four words per texel; `to` is the address of an array of words.
    ReadPixels: (x, y, width, height, format, type, to) =>
      gl.readPixels(x, y, width, height, format, type, words(to, 4 * width * height)),

    FenceSync: (condition, flags) => objects.add(gl.fenceSync(condition, flags)),
    GetSynciv(sync, what, capacity, length, value) {
      putWord(value, gl.getSyncParameter(objects.get(sync), what) ?? kUnsignaled);
      putWord(length, 1);
    },
    DeleteSync: (sync) => gl.deleteSync(objects.take(sync)),
    Flush: () => gl.flush(),
    IsContextLost: () => (gl.isContextLost() ? 1 : 0),
    DescribeGpu(capacity, at) {
      const unmasked = gl.getExtension('WEBGL_debug_renderer_info');
      putText(at, capacity, gl.getParameter(unmasked?.UNMASKED_RENDERER_WEBGL ?? gl.RENDERER) ?? 'unknown');
    },
  };
}
