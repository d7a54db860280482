// node tests/web/structs_test.mjs [COMPILER]: bindings/web/webgpu_structs.mjs agrees with src/devices/webgpu/api.h.
//
// Clang (clang++-19 by default) lays out the structs for wasm32 and asserts what the JavaScript assumes.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import { numbers, structs } from '../../bindings/web/webgpu_structs.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const assertion = (said, value) => `static_assert(${said} == ${value});`;

function* offsetsOf(type, prefix = '', begin = 0) {
  for (const [name, field] of Object.entries(type.fields)) {
    yield [prefix + name, begin + type.offsets[name]];
    if (field.fields) yield* offsetsOf(field, `${prefix}${name}.`, begin + type.offsets[name]);
  }
}

const assertions = Object.entries(numbers).map(([name, value]) => assertion(name, `decltype(${name})(${value}u)`));
for (const [name, type] of Object.entries(structs)) {
  assertions.push(assertion(`sizeof(${name})`, type.bytes), assertion(`alignof(${name})`, type.alignment));
  for (const [field, offset] of offsetsOf(type)) assertions.push(assertion(`offsetof(${name}, ${field})`, offset));
}
const source = ['#include "devices/webgpu/api.h"', 'namespace shunt::webgpu {', ...assertions, '}', ''].join('\n');
const flags = ['--target=wasm32-wasi', '-std=c++23', '-fno-exceptions', '-Iinclude', '-Isrc', '-fsyntax-only'];
const compiler = process.argv[2] ?? 'clang++-19';
const { status, stderr, error } = spawnSync(compiler, [...flags, '-xc++', '-'], { cwd: root, input: source });
if (error) console.error(String(error));
console.error(String(stderr ?? ''));
console.log(`${status === 0 ? 'ok' : 'FAILED'}: ${assertions.length} assertions`);
process.exitCode = status === 0 ? 0 : 1;
