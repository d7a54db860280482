// node tests/web/conformance_test.mjs FOLDER: every op is right on every device of a browser, with shunt.wasm of FOLDER
// (build/web/page).
import assert from 'node:assert/strict';

import { inBrowser } from './browser.mjs';
import { kDevices } from './expectations.mjs';

async function verify(device) {
  const { Shunt } = await import('./shunt.mjs');
  window.shunt ??= await Shunt.load();
  return window.shunt.verify({ device });
}

const [, , folder] = process.argv;
if (folder === undefined) {
  console.error('usage: node tests/web/conformance_test.mjs FOLDER');
  process.exit(2);
}
await inBrowser(async (page, address) => {
  await page.goto(address);
  for (const device of kDevices) {
    const { ok, tallies, failures, unexpected_passes: unexpected } = await page.evaluate(verify, device);
    const sum = (key) => tallies.reduce((total, tally) => total + tally[key], 0);
    console.log(`${device}: ${sum('passed')} cases right, ${sum('failed')} wrong, ${sum('declined')} declined`);
    for (const { op, case: name, what } of failures) console.log(`  ${op} ${name}: ${what}`);
    for (const row of unexpected) console.log(`  known to fail, but right: ${JSON.stringify(row)}`);
    assert.ok(ok, `${device} is wrong`);
    assert.ok(sum('passed') > 0);
  }
}, folder);
