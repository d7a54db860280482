// node tests/web/wgsl_test.mjs FOLDER: a browser's WebGPU takes every kernel of FOLDER/*.wgsl.
//
// Chromium (CHROMIUM, else /usr/bin/chromium) computes on SwiftShader, so that this needs no GPU.
import fs from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const packages = createRequire(new URL('../../tools/npm/package.json', import.meta.url));
const { default: puppeteer } = await import(pathToFileURL(packages.resolve('puppeteer-core')));

const kFlags = [
  '--headless', '--no-sandbox', '--disable-gpu-sandbox', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync', '--enable-unsafe-webgpu',
  '--enable-unsafe-swiftshader', '--remote-debugging-port=0',
];

// Runs in the page. Answers one row per kernel: its name and what was said against it.
async function create_pipelines(kernels) {
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

async function in_browser(work) {
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'shunt-chromium-'));
  // WebGPU is for secure contexts only, and a page of this host is one.
  const server = http.createServer((_, answer) => answer.end('<!doctype html>')).listen(0, '127.0.0.1');
  await new Promise((listening) => server.on('listening', listening));
  const browser = await puppeteer.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    ignoreDefaultArgs: true,
    args: [...kFlags, `--user-data-dir=${profile}`, 'about:blank'],
  });
  try {
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
    return await work(page);
  } finally {
    await browser.close();
    server.close();
    fs.rmSync(profile, { recursive: true, force: true });
  }
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
const { error, adapter, rows = [] } = await in_browser((page) => page.evaluate(create_pipelines, kernels));
if (error) console.error(error);
for (const { name, against } of rows) {
  console.log(`${against.length === 0 ? 'ok' : 'REFUSED'} ${name}`);
  for (const each of against) console.log(`  ${each}`);
}
const refused = rows.filter(({ against }) => against.length > 0).length;
console.log(`${rows.length - refused} of ${kernels.length} kernels on ${adapter}`);
process.exitCode = kernels.length > 0 && rows.length === kernels.length && refused === 0 ? 0 : 1;
