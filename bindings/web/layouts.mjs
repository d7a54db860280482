// The layout of an interface's C structs in wasm32's memory, with functions to read and write values there.
//
// A type has `bytes`, `alignment`, `read(memory, at)` and `write(memory, at, value)`. `memory` is a DataView, to be
// recreated whenever WebAssembly may have run in between: its memory moves when it grows.

function scalar(bytes, read, write) {
  return { bytes, alignment: bytes, read, write };
}
export const u32 = scalar(
  4,
  (memory, at) => memory.getUint32(at, true),
  (memory, at, value) => memory.setUint32(at, value, true),
);
// A Number, for sizes, offsets and times. Values beyond 2^53 count as infinite.
export const u64 = scalar(
  8,
  (memory, at) => Number(memory.getBigUint64(at, true)),
  (memory, at, value) => memory.setBigUint64(at, BigInt(value), true),
);
export const f64 = scalar(
  8,
  (memory, at) => memory.getFloat64(at, true),
  (memory, at, value) => memory.setFloat64(at, value, true),
);
export const pointer = u32;
export const size = u32;

const roundUp = (value, unit) => Math.ceil(value / unit) * unit;

// `fields`: name -> type, in C's order. Values are objects with these names; writing leaves fields without a value
// unchanged in memory.
export function struct(fields) {
  const offsets = {};
  let end = 0;
  let alignment = 1;
  for (const [name, type] of Object.entries(fields)) {
    offsets[name] = roundUp(end, type.alignment);
    end = offsets[name] + type.bytes;
    alignment = Math.max(alignment, type.alignment);
  }
  return {
    fields,
    offsets,
    bytes: roundUp(end, alignment),
    alignment,
    read(memory, at) {
      const value = {};
      for (const [name, type] of Object.entries(fields)) value[name] = type.read(memory, at + offsets[name]);
      return value;
    },
    write(memory, at, value) {
      for (const [name, each] of Object.entries(value)) fields[name].write(memory, at + offsets[name], each);
    },
  };
}

export function array(type, count) {
  const indices = [...Array(count).keys()];
  return {
    bytes: type.bytes * count,
    alignment: type.alignment,
    read: (memory, at) => indices.map((index) => type.read(memory, at + index * type.bytes)),
    write(memory, at, values) {
      values.forEach((value, index) => type.write(memory, at + index * type.bytes, value));
    },
  };
}
