// Checks that a browser accepts the kernels built for it.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { inBrowser } from './browser.mjs';

// Hands kernels to `take` in a page: an array of kernelOf(file, code) for the files of the command line's FOLDER whose
// names match `pattern`. `take` returns the adapter's name and a row per kernel with its name and any complaint, or an
// error. Prints the rows; the exit status is 0 if there are kernels and no complaints.
export async function checkKernels(pattern, kernelOf, take) {
  const [, script, folder] = process.argv;
  if (folder === undefined) {
    console.error(`usage: node tests/web/${path.basename(script)} FOLDER`);
    process.exit(2);
  }
  const files = fs.readdirSync(folder).filter((file) => pattern.test(file)).sort();
  const kernels = files.map((file) => kernelOf(file, fs.readFileSync(path.join(folder, file), 'utf8')));
  const { error, adapter, rows = [] } = await inBrowser(async (page, address) => {
    await page.goto(`${address}empty.html`);
    return page.evaluate(take, kernels);
  }, fileURLToPath(new URL('.', import.meta.url)));
  if (error) console.error(error);
  for (const { name, against } of rows) {
    console.log(`${against.length === 0 ? 'ok' : 'REFUSED'} ${name}`);
    for (const each of against) console.log(`  ${each}`);
  }
  const refused = rows.filter(({ against }) => against.length > 0).length;
  console.log(`${rows.length - refused} of ${kernels.length} kernels on ${adapter}`);
  process.exitCode = kernels.length > 0 && rows.length === kernels.length && refused === 0 ? 0 : 1;
}
