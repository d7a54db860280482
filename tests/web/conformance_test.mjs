// node tests/web/conformance_test.mjs FOLDER: ops are right on every device of a browser, with shunt.wasm of FOLDER
// (build/web/page), and each device runs what its record in docs/support.json says of these ops.
//
// The processor's devices run every op, for WebAssembly's kernels run nowhere else. WebGPU and WebGL2 have the shaders
// of the same devices without a browser, whose tests run all ops (DeviceConformance), and the browser accepts all of
// these shaders (wgsl_test.mjs, essl_test.mjs). Here the first op of each family shows what the browser adds, which is
// its own calls and compilers.
import assert from 'node:assert/strict';
import fs from 'node:fs';

import { inBrowser } from './browser.mjs';
import { kDevices } from './expectations.mjs';

const kSupport = JSON.parse(fs.readFileSync(new URL('../../docs/support.json', import.meta.url), 'utf8'));

// The ops of the record with the longest label that this one starts with.
function keptOps(label) {
  const numbers = kSupport.devices.map((_, number) => number).filter((n) => label.startsWith(kSupport.devices[n].label));
  const best = numbers.sort((a, b) => kSupport.devices[b].label.length - kSupport.devices[a].label.length)[0];
  const ops = {};
  for (const [op, groups] of Object.entries(kSupport.ops))
    for (const [devices, counts] of groups) if (devices.includes(best)) ops[op] = counts;
  return ops;
}

// Families that these compilers take minutes for. Gathering decodes each dtype too, the page multiplies with two of them
// (page_test.mjs), and top_k sorts. A family that is missing here costs time, but no check.
const kSlow = ['linear', 'linear_experts', 'argsort'];

// Awkward sizes only: the larger ones take minutes on SwiftShader. Vulkan and a WebGL2 without a browser, which have the
// same kernels, run them (DevicesPastEveryBorder).
async function verify(device, ops, families) {
  const { Shunt } = await import('./shunt.mjs');
  window.shunt ??= await Shunt.load();
  return window.shunt.verify({ device, ops, families, sizes: false });
}

const [, , folder] = process.argv;
if (folder === undefined) {
  console.error('usage: node tests/web/conformance_test.mjs FOLDER');
  process.exit(2);
}
await inBrowser(async (page, address) => {
  await page.goto(address);
  for (const device of kDevices) {
    const isProcessor = device.startsWith('cpu:');
    const ops = isProcessor ? [] : Object.keys(kSupport.ops).filter((op) => !kSlow.includes(op));  // []: all
    const { ok, tallies, failures, unexpected_passes: unexpected, devices } =
      await page.evaluate(verify, device, ops, !isProcessor);
    const sum = (key) => tallies.reduce((total, tally) => total + tally[key], 0);
    console.log(`${device}: ${sum('passed')} cases right, ${sum('failed')} wrong, ${sum('declined')} declined`);
    for (const { op, case: name, what } of failures) console.log(`  ${op} ${name}: ${what}`);
    for (const row of unexpected) console.log(`  known to fail, but right: ${JSON.stringify(row)}`);
    assert.ok(ok, `${device} is wrong`);
    assert.ok(sum('passed') > 0);
    for (const { label, ops: counted } of devices) {
      const kept = Object.entries(keptOps(label)).filter(([op]) => isProcessor || op in counted);
      assert.deepEqual(counted, Object.fromEntries(kept), `docs/support.json says otherwise of "${label}"; if ${device} ` +
        `is right now: tools/support.py --record tests/web/shunt.mjs --devices ${device}`);
    }
  }
}, folder);
