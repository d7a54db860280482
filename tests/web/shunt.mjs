#!/usr/bin/env node
// The part of the program shunt that tools/gpu/device_table.py calls, in headless Chromium:
//
//   tools/gpu/device_table.py tests/web/shunt.mjs --devices cpu:simd,cpu:scalar,webgpu:0,webgl2:0
//
// Each call starts a browser with the page of build/web/page (or SHUNT_PAGE, if set).
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { inBrowser } from './browser.mjs';

const kOptions = {
  json: { type: 'boolean' },
  devices: { type: 'string', default: '' },
  context: { type: 'string', short: 'c', default: '0' },
  'max-tokens': { type: 'string', short: 'n', default: '64' },
  greedy: { type: 'boolean', default: false },
  'ignore-eos': { type: 'boolean', default: false },
  tokens: { type: 'string', default: '' },
  every: { type: 'boolean', default: false },
  top: { type: 'string', default: '10' },
  perplexity: { type: 'boolean', default: false },
};

// Command -> {file, method, request}: the model, the method of Shunt, and the request.
const kCommands = {
  devices: () => ({ method: 'devices', request: {} }),
  run: ([file, prompt], values) => ({
    file,
    method: 'generate',
    request: { prompt, tokens: Number(values['max-tokens']), greedy: values.greedy, ignore_eos: values['ignore-eos'] },
  }),
  eval: ([file], values) => ({
    file,
    method: 'evaluate',
    request: {
      tokens: values.tokens.split(' ').map(Number),
      every: values.every,
      top: Number(values.top),
      perplexity: values.perplexity,
    },
  }),
  verify: (ops) => ({ method: 'verify', request: { ops } }),
};

async function answer({ file, method, request }) {
  const { download, Shunt } = await import('./shunt.mjs');
  const shunt = await Shunt.load();
  if (file) await shunt.openModel(await download('model.gguf'));
  return shunt[method](request);
}

const { values, positionals: [command, ...rest] } = parseArgs({ allowPositionals: true, options: kOptions });
if (!(command in kCommands)) {
  console.error(`usage: tests/web/shunt.mjs ${Object.keys(kCommands).join('|')} ...`);
  process.exit(2);
}
const call = kCommands[command](rest, values);
Object.assign(call.request, { device: values.devices, context: Number(values.context) });
const folder = process.env.SHUNT_PAGE ?? fileURLToPath(new URL('../../build/web/page', import.meta.url));
const files = { 'empty.html': fileURLToPath(new URL('empty.html', import.meta.url)) };
if (call.file) files['model.gguf'] = path.resolve(call.file);
const result = await inBrowser(async (page, address) => {
  await page.goto(`${address}empty.html`);
  return page.evaluate(answer, call);
}, folder, files);
console.log(JSON.stringify(result));
process.exitCode = result.ok === false ? 1 : 0;
