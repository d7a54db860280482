// Shunt in a browser: loads shunt.wasm and sends it requests.
//
//   const shunt = await Shunt.load();
//   await shunt.openModel(await (await fetch('model.gguf')).arrayBuffer());
//   await shunt.generate({ device: 'webgpu:0', prompt: 'Once' }, { onText: (piece) => console.log(piece) });
//
// Requests and answers are those of bindings/web/page.h; answers are what the program prints with --json. One request
// runs at a time, and the others wait. Errors are ShuntErrors. Needs WebAssembly with SIMD and JSPI.
import { wasiImports } from './wasi.mjs';
import { webglImports } from './webgl.mjs';
import { webgpuImports } from './webgpu.mjs';

// `code` is one of include/shunt/status.h: invalid, unsupported, out_of_memory, device_lost, timed_out, io, internal,
// interrupted.
export class ShuntError extends Error {
  constructor({ code, message }) {
    super(message);
    this.name = 'ShuntError';
    this.code = code;
  }
}

// Returns a message saying what this browser lacks; empty: nothing.
export function missingHere() {
  if (typeof WebAssembly === 'undefined') return 'This browser has no WebAssembly.';
  if (!('Suspending' in WebAssembly))
    return 'This browser cannot suspend WebAssembly (JSPI), which Chrome and Edge can from 137 on.';
  return '';
}

// Resolves after at least that many milliseconds, and after the browser has run other tasks.
function rest(milliseconds) {
  if (milliseconds >= 1) return new Promise((resolve) => setTimeout(resolve, milliseconds));
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}

async function bytesOf(response, onProgress) {
  const { ok, url, status, statusText } = response;
  if (!ok) throw new ShuntError({ code: 'io', message: `${url}: ${status} ${statusText}` });
  const total = Number(response.headers.get('content-length') ?? 0);
  const pieces = [];
  let done = 0;
  for (const reader = response.body.getReader(); ; ) {
    const { value, done: ended } = await reader.read();
    if (ended) return new Blob(pieces).arrayBuffer();
    pieces.push(value);
    done += value.length;
    onProgress?.(done, total);
  }
}

// Downloads a file. `onProgress(done, total)`: in bytes; the total is 0 if the server does not report it.
export async function download(url, onProgress) {
  return bytesOf(await fetch(url), onProgress);
}

export class Shunt {
  #exports;
  #page;
  #queue = Promise.resolve();
  #answer = '';
  #onText = undefined;

  // `wasm`: the URL of shunt.wasm.
  static async load({ wasm = new URL('shunt.wasm', import.meta.url), onProgress } = {}) {
    const missing = missingHere();
    if (missing) throw new ShuntError({ code: 'unsupported', message: missing });
    const shunt = new Shunt();
    await shunt.#start(await download(wasm, onProgress));
    return shunt;
  }

  async #start(code) {
    const shunt = this;
    const wasm = {
      get memory() { return shunt.#exports.memory; },
      get table() { return shunt.#exports.__indirect_function_table; },
      malloc: (bytes) => this.#exports.shunt_allocate(bytes) >>> 0,
      free: (address) => this.#exports.shunt_free(address),
    };
    const host = {
      rest: new WebAssembly.Suspending(rest),
      text: (address, bytes) => this.#onText?.(this.#text(address, bytes)),
      answer: (address, bytes) => { this.#answer = this.#text(address, bytes); },
    };
    const { instance } = await WebAssembly.instantiate(code, {
      host,
      wasi_snapshot_preview1: wasiImports(wasm),
      webgl: webglImports(wasm),
      webgpu: webgpuImports(wasm),
    });
    this.#exports = instance.exports;
    this.#exports._initialize();
    this.#page = this.#exports.shunt_page_open();
    this.#ask = WebAssembly.promising(this.#exports.shunt_page_ask);
  }
  #ask;

  #text(address, bytes) {
    return new TextDecoder().decode(new Uint8Array(this.#exports.memory.buffer, address >>> 0, bytes));
  }

  // Copies bytes into WebAssembly's memory; returns the copy's address.
  #copy(bytes) {
    const address = this.#exports.shunt_allocate(bytes.length) >>> 0;
    if (address === 0)
      throw new ShuntError({ code: 'out_of_memory', message: `The browser has no room for ${bytes.length} bytes.` });
    new Uint8Array(this.#exports.memory.buffer, address, bytes.length).set(bytes);
    return address;
  }

  async #answerTo(request) {
    const bytes = new TextEncoder().encode(JSON.stringify(request));
    const address = this.#copy(bytes);
    try {
      await this.#ask(this.#page, address, bytes.length);
    } finally {
      this.#exports.shunt_free(address);
    }
    const answer = JSON.parse(this.#answer);
    if (answer.error) throw new ShuntError(answer.error);
    return answer;
  }

  // Runs `work` when all earlier requests are done.
  #inTurn(work) {
    const done = this.#queue.then(work);
    this.#queue = done.catch(() => {});
    return done;
  }

  devices() {
    return this.#inTurn(() => this.#answerTo({ do: 'devices' }));
  }

  // `file`: an ArrayBuffer with the contents of a GGUF file.
  openModel(file) {
    return this.#inTurn(() => {
      const bytes = new Uint8Array(file);
      return this.#answerTo({ do: 'open_model', address: this.#copy(bytes), bytes: bytes.length });
    });
  }

  // `request`: as in page.h for run. `signal`: an AbortSignal that ends it after the current token.
  generate(request, { onText, signal } = {}) {
    return this.#inTurn(async () => {
      const interrupt = () => this.#exports.shunt_page_interrupt(this.#page);
      this.#onText = onText;
      signal?.addEventListener('abort', interrupt);
      try {
        return await this.#answerTo({ ...request, do: 'run' });
      } finally {
        signal?.removeEventListener('abort', interrupt);
        this.#onText = undefined;
      }
    });
  }

  evaluate(request) {
    return this.#inTurn(() => this.#answerTo({ ...request, do: 'eval' }));
  }

  // `request`: {device, ops, families, sizes}; with `families`, only the first op of each kernel family runs; without
  // `sizes: false`, large operands follow the awkward ones.
  verify(request) {
    return this.#inTurn(() => this.#answerTo({ ...request, do: 'verify' }));
  }
}
