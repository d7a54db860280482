// node tests/web/conformance_test.mjs FOLDER: every op is right on every device of a browser, with shunt.wasm of FOLDER
// (build/web/page), and each device runs what its record in docs/support/ says.
import assert from 'node:assert/strict';
import fs from 'node:fs';

import { inBrowser } from './browser.mjs';
import { kDevices } from './expectations.mjs';

const kSupport = new URL('../../docs/support/', import.meta.url);

// The record whose label is the longest beginning of this one.
function keptRecord(label) {
  const records = fs.readdirSync(kSupport).map((name) => JSON.parse(fs.readFileSync(new URL(name, kSupport), 'utf8')));
  return records.filter((record) => label.startsWith(record.label)).sort((a, b) => b.label.length - a.label.length)[0];
}

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
    const { ok, tallies, failures, unexpected_passes: unexpected, devices } = await page.evaluate(verify, device);
    const sum = (key) => tallies.reduce((total, tally) => total + tally[key], 0);
    console.log(`${device}: ${sum('passed')} cases right, ${sum('failed')} wrong, ${sum('declined')} declined`);
    for (const { op, case: name, what } of failures) console.log(`  ${op} ${name}: ${what}`);
    for (const row of unexpected) console.log(`  known to fail, but right: ${JSON.stringify(row)}`);
    assert.ok(ok, `${device} is wrong`);
    assert.ok(sum('passed') > 0);
    for (const { label, ops } of devices)
      assert.deepEqual(ops, keptRecord(label)?.ops, `docs/support says otherwise of "${label}"; if ${device} is right now: ` +
        `tools/support.py --record tests/web/shunt.mjs --devices ${device}`);
  }
}, folder);
