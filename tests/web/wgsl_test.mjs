// node tests/web/wgsl_test.mjs FOLDER: a browser's WebGPU takes every kernel of FOLDER/*.wgsl.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { inBrowser } from './browser.mjs';

// Runs in the page. Answers one row per kernel: its name and what was said against it.
async function createPipelines(kernels) {
  const adapter = await navigator.gpu?.requestAdapter();
  if (!adapter) return { error: 'this Chromium has no WebGPU adapter' };
  const { maxStorageBuffersPerShaderStage } = adapter.limits;
  const device = await adapter.requestDevice({ requiredLimits: { maxStorageBuffersPerShaderStage } });
  const rows = [];
  for (const { name, code } of kernels) {
    device.pushErrorScope('validation');
    const module = device.createShaderModule({ code });
    const { messages } = await module.getCompilationInfo();
    const compute = { module, entryPoint: 'main' };
    const refused = await device.createComputePipelineAsync({ layout: 'auto', compute }).then(() => null, String);
    const error = await device.popErrorScope();
    const said = messages.map((each) => `${each.type} at ${each.lineNum}:${each.linePos}: ${each.message}`);
    rows.push({ name, against: [...said, error?.message, refused].filter(Boolean) });
  }
  return { adapter: `${adapter.info.vendor} ${adapter.info.architecture}`, rows };
}

const folder = process.argv[2];
if (folder === undefined) {
  console.error('usage: node tests/web/wgsl_test.mjs FOLDER');
  process.exit(2);
}
const kernels = fs.readdirSync(folder).filter((file) => file.endsWith('.wgsl')).sort().map((file) => ({
  name: path.basename(file, '.wgsl'),
  code: fs.readFileSync(path.join(folder, file), 'utf8'),
}));
const { error, adapter, rows = [] } = await inBrowser(async (page, address) => {
  await page.goto(`${address}empty.html`);
  return page.evaluate(createPipelines, kernels);
}, fileURLToPath(new URL('.', import.meta.url)));
if (error) console.error(error);
for (const { name, against } of rows) {
  console.log(`${against.length === 0 ? 'ok' : 'REFUSED'} ${name}`);
  for (const each of against) console.log(`  ${each}`);
}
const refused = rows.filter(({ against }) => against.length > 0).length;
console.log(`${rows.length - refused} of ${kernels.length} kernels on ${adapter}`);
process.exitCode = kernels.length > 0 && rows.length === kernels.length && refused === 0 ? 0 : 1;
