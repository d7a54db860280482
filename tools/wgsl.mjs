// node tools/wgsl.mjs X.spv...: writes X.wgsl, the kernel's SPIR-V as WGSL, by naga (tools/npm), for each file.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const packages = createRequire(new URL('npm/package.json', import.meta.url));
const { parseSpirv, validate, writeWgsl } = await import(pathToFileURL(packages.resolve('naga-wasm')));

const files = process.argv.slice(2);
if (files.length === 0) {
  console.error('usage: node tools/wgsl.mjs X.spv...');
  process.exit(2);
}
for (const from of files)
  try {
    const module = parseSpirv(fs.readFileSync(from));
    fs.writeFileSync(from.replace(/\.spv$/, '.wgsl'), writeWgsl(module, validate(module)));
  } catch (error) {
    // naga's own words; its stack says nothing of the kernel.
    console.error(`${from}: ${error.kind ?? 'error'}: ${error.formatted ?? error.message}`);
    process.exit(1);
  }
