// A page in headless Chromium (CHROMIUM, else /usr/bin/chromium), which computes on SwiftShader: no GPU is needed.
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
const kTypes = {
  '.html': 'text/html; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.wasm': 'application/wasm',
};

// WebGPU is for secure contexts only, and a page of this host is one.
async function serve(folder) {
  const server = http.createServer((request, answer) => {
    const name = path.normalize(new URL(request.url, 'http://host').pathname);
    const file = folder && path.join(folder, name === '/' ? 'index.html' : name);
    if (!file) return answer.end('<!doctype html>');
    if (!fs.statSync(file, { throwIfNoEntry: false })?.isFile()) return answer.writeHead(404).end();
    answer.writeHead(200, {
      'content-type': kTypes[path.extname(file)] ?? 'application/octet-stream',
      'content-length': fs.statSync(file).size,
    });
    return fs.createReadStream(file).pipe(answer);
  }).listen(0, '127.0.0.1');
  await new Promise((listening) => { server.on('listening', listening); });
  return server;
}

// Calls work(page, address) with an empty page of a new browser; `address` serves `folder`, or an empty page without
// one. What the page itself says goes to stderr.
export async function inBrowser(work, { folder, flags = [] } = {}) {
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'shunt-chromium-'));
  const server = await serve(folder);
  const browser = await puppeteer.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    ignoreDefaultArgs: true,
    protocolTimeout: 0,
    args: [...kFlags, ...flags, `--user-data-dir=${profile}`, 'about:blank'],
  });
  try {
    const page = await browser.newPage();
    page.on('console', (message) => console.error(`page: ${message.text()}`));
    page.on('pageerror', (error) => console.error(`page: ${error.stack ?? error}`));
    return await work(page, `http://127.0.0.1:${server.address().port}/`);
  } finally {
    await browser.close();
    server.close();
    fs.rmSync(profile, { recursive: true, force: true });
  }
}
