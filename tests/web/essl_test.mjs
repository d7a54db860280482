// node tests/web/essl_test.mjs FOLDER: a browser's WebGL2 takes every kernel of FOLDER/*.essl300*.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { inBrowser } from './browser.mjs';

const kCover = '#version 300 es\nvoid main() { gl_Position = vec4(0.0, 0.0, 0.0, 1.0); }\n';
const kPut = `#version 300 es
precision highp int;
flat in uint point_word;
layout(location = 0) out uint word;
void main() { word = point_word; }
`;

// Runs in the page. Answers one row per kernel: its name and what was said against it.
function link(kernels) {
  const gl = new OffscreenCanvas(1, 1).getContext('webgl2');
  if (!gl) return { error: 'this Chromium has no WebGL2' };
  const rows = kernels.map(({ name, vertices, fragments }) => {
    const against = [];
    const program = gl.createProgram();
    for (const [type, code] of [[gl.VERTEX_SHADER, vertices], [gl.FRAGMENT_SHADER, fragments]]) {
      const shader = gl.createShader(type);
      gl.shaderSource(shader, code);
      gl.compileShader(shader);
      against.push(gl.getShaderInfoLog(shader));
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    against.push(gl.getProgramInfoLog(program));
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) against.push('it does not link');
    if (gl.getUniformBlockIndex(program, 'Call') === gl.INVALID_INDEX) against.push('it has no block Call');
    return { name, against: against.filter(Boolean) };
  });
  return { adapter: gl.getParameter(gl.RENDERER), rows };
}

const folder = process.argv[2];
if (folder === undefined) {
  console.error('usage: node tests/web/essl_test.mjs FOLDER');
  process.exit(2);
}
const kernels = fs.readdirSync(folder).filter((file) => /\.essl300(_|$)/.test(file)).sort().map((file) => {
  const code = fs.readFileSync(path.join(folder, file), 'utf8');
  if (file.endsWith('_points')) return { name: file, vertices: code, fragments: kPut };
  return { name: file, vertices: kCover, fragments: code };
});
const { error, adapter, rows = [] } = await inBrowser(async (page, address) => {
  await page.goto(`${address}empty.html`);
  return page.evaluate(link, kernels);
}, fileURLToPath(new URL('.', import.meta.url)));
if (error) console.error(error);
for (const { name, against } of rows) {
  console.log(`${against.length === 0 ? 'ok' : 'REFUSED'} ${name}`);
  for (const each of against) console.log(`  ${each}`);
}
const refused = rows.filter(({ against }) => against.length > 0).length;
console.log(`${rows.length - refused} of ${kernels.length} kernels on ${adapter}`);
process.exitCode = kernels.length > 0 && rows.length === kernels.length && refused === 0 ? 0 : 1;
