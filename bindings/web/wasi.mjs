// The few WASI services that the C and C++ libraries of shunt.wasm call. A page has no files, environment or arguments;
// stdout and stderr go to the console.
const kSuccess = 0;
const kBadFile = 8;
const kNotSupported = 52;

// `wasm.memory` is read late, since it exists only once the module does.
export function wasiImports(wasm) {
  const view = () => new DataView(wasm.memory.buffer);
  const services = {
    clock_time_get(clock, precision, result) {
      const kRealTime = 0;
      const milliseconds = clock === kRealTime ? Date.now() : performance.now();
      view().setBigUint64(result, BigInt(Math.round(milliseconds * 1e6)), true);
      return kSuccess;
    },
    random_get(address, bytes) {
      crypto.getRandomValues(new Uint8Array(wasm.memory.buffer, address, bytes));
      return kSuccess;
    },
    environ_sizes_get(count, bytes) {
      view().setUint32(count, 0, true);
      view().setUint32(bytes, 0, true);
      return kSuccess;
    },
    environ_get: () => kSuccess,
    fd_write(file, pieces, count, written) {
      const kStdout = 1;
      const kStderr = 2;
      if (file !== kStdout && file !== kStderr) return kBadFile;
      let text = '';
      let total = 0;
      for (let piece = pieces; piece < pieces + 8 * count; piece += 8) {
        const [address, size] = [view().getUint32(piece, true), view().getUint32(piece + 4, true)];
        const bytes = new Uint8Array(wasm.memory.buffer, address, size);
        text += new TextDecoder().decode(bytes);
        total += bytes.length;
      }
      console.log(text.trimEnd());
      view().setUint32(written, total, true);
      return kSuccess;
    },
    fd_prestat_get: () => kBadFile,
    proc_exit(code) {
      throw new Error(`shunt.wasm ended with ${code}`);
    },
  };
  return new Proxy(services, { get: (known, name) => known[name] ?? (() => kNotSupported) });
}
