// node tools/wgsl.mjs IN.spv --output OUT.wgsl: a kernel's SPIR-V as WGSL, by naga (tools/npm).
import fs from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const packages = createRequire(new URL('npm/package.json', import.meta.url));
const { parseSpirv, validate, writeWgsl } = await import(pathToFileURL(packages.resolve('naga-wasm')));

const [from, option, to] = process.argv.slice(2);
if (from === undefined || option !== '--output' || to === undefined) {
  console.error('usage: node tools/wgsl.mjs IN.spv --output OUT.wgsl');
  process.exit(2);
}
try {
  const module = parseSpirv(fs.readFileSync(from));
  fs.writeFileSync(to, writeWgsl(module, validate(module)));
} catch (error) {
  // naga's own words; its stack says nothing of the kernel.
  console.error(`${from}: ${error.kind ?? 'error'}: ${error.formatted ?? error.message}`);
  process.exit(1);
}
