// A page in headless Chromium (CHROMIUM, or else /usr/bin/chromium), which computes on SwiftShader and needs no GPU.
import { once } from 'node:events';
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
const kNoise = /GL Driver Message .*GPU stall due to ReadPixels/;
const kTypes = {
  '.html': 'text/html; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.wasm': 'application/wasm',
};

// WebGPU requires a secure context, which a page from this host is. `fileOf(name)`: the file to serve as /name.
async function serve(fileOf) {
  const server = http.createServer((request, answer) => {
    const name = path.basename(new URL(request.url, 'http://host').pathname) || 'index.html';
    const file = fileOf(name);
    const bytes = fs.statSync(file, { throwIfNoEntry: false })?.size;
    if (bytes === undefined) return answer.writeHead(404).end();
    const type = kTypes[path.extname(file)] ?? 'application/octet-stream';
    answer.writeHead(200, { 'content-type': type, 'content-length': bytes });
    return fs.createReadStream(file).pipe(answer);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

// Calls work(page, address) with an empty page of a new browser. `address` serves the files of `folder` and `files`
// (name -> path). The page's console goes to stderr.
export async function inBrowser(work, folder, files = {}) {
  if (!fs.existsSync(folder)) throw new Error(`${folder} is missing; ./dev web builds the page`);
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'shunt-chromium-'));
  const server = await serve((name) => files[name] ?? path.join(folder, name));
  const browser = await puppeteer.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    ignoreDefaultArgs: true,
    protocolTimeout: 0,
    args: [...kFlags, `--user-data-dir=${profile}`, 'about:blank'],
  });
  try {
    const page = await browser.newPage();
    page.on('console', (message) => {
      if (!kNoise.test(message.text())) console.error(`page: ${message.text()}`);
    });
    page.on('pageerror', (error) => console.error(`page: ${error.stack ?? error}`));
    return await work(page, `http://127.0.0.1:${server.address().port}/`);
  } finally {
    await browser.close();
    server.close();
    fs.rmSync(profile, { recursive: true, force: true });
  }
}
