// node tests/web/page_test.mjs FOLDER [--screenshot FILE]: the page of FOLDER (build/web/page) as users use it. With
// --screenshot, takes a picture of the page (docs/images/browser.png) instead of testing.
//
// On every device that a browser must offer, the model gives its native text, from both files. Generation can be
// stopped, errors are shown, and a lost device leaves the others usable.
import assert from 'node:assert/strict';
import { parseArgs } from 'node:util';

import { inBrowser } from './browser.mjs';
import { kDevices, kModels, kTokens } from './expectations.mjs';

// How a test takes a device of an API away while it computes.
const kLosses = {
  webgpu: () => window.madeForTest.devices.forEach((device) => device.destroy()),
  webgl2: () => window.madeForTest.contexts.forEach((gl) => gl.getExtension('WEBGL_lose_context')?.loseContext()),
};

// Runs in the page before anything else: keeps what the page makes of the browser's APIs.
function keepWhatIsMade() {
  window.madeForTest = { devices: [], contexts: [] };
  const { requestDevice } = GPUAdapter.prototype;
  GPUAdapter.prototype.requestDevice = async function request(...options) {
    const device = await requestDevice.apply(this, options);
    window.madeForTest.devices.push(device);
    return device;
  };
  for (const Canvas of [HTMLCanvasElement, OffscreenCanvas]) {
    const { getContext } = Canvas.prototype;
    Canvas.prototype.getContext = function get(...options) {
      const context = getContext.apply(this, options);
      if (context) window.madeForTest.contexts.push(context);
      return context;
    };
  }
}

const isReady = () => document.body.dataset.state === 'ready';
const textOf = (page, selector) => page.$eval(selector, (element) => element.textContent);

async function fill(page, selector, text) {
  await page.focus(selector);
  await page.$eval(selector, (field) => field.select());
  await page.keyboard.sendCharacter(text);
}

async function open(page, address) {
  await page.goto(address);
  await page.waitForFunction(isReady);
  // The page also has the ids, which are more exact than the text.
  await page.evaluate(async () => {
    const { Shunt } = await import('./shunt.mjs');
    const { generate } = Shunt.prototype;
    Shunt.prototype.generate = async function record(...request) {
      window.answer = await generate.apply(this, request);
      return window.answer;
    };
  });
}

async function ask(page, device, prompt, tokens) {
  await page.click(`input[value="${device}"]`);
  await fill(page, '#prompt', prompt);
  await fill(page, '#tokens', String(tokens));
  await page.click('#go');
}

async function saysWhatItSaysNatively(page, device, { text, ids, tokens }) {
  await ask(page, device, text, kTokens);
  await page.waitForFunction(isReady);
  assert.equal(await textOf(page, '#error'), '');
  const answer = await page.evaluate(() => window.answer);
  assert.deepEqual(answer.prompt_tokens, ids);
  assert.deepEqual(answer.tokens, tokens);
  assert.deepEqual(answer.devices, [device]);
  assert.equal(await textOf(page, '#made'), answer.text);
  assert.equal(await textOf(page, '#made-tokens'), `${kTokens} tokens`);
  const speeds = [await textOf(page, '#prompt-speed'), await textOf(page, '#made-speed')];
  for (const speed of speeds) assert.match(speed, /^[0-9]+\.[0-9] tokens\/s$/);
  console.log(`  ${device}: ${JSON.stringify(answer.text)}, ${speeds.join(', then ')}`);
}

async function modelsSayWhatTheySayNatively(page, address) {
  await open(page, address);
  const found = await page.$$eval('[name=device]', (choices) => choices.map(({ value }) => value));
  assert.deepEqual(kDevices.filter((device) => !found.includes(device)), [], `found: ${found.join(', ')}`);
  for (const { file, prompts } of kModels) {
    await page.$eval('details:has(#file)', (details) => { details.open = true; });
    const chooser = await page.$('#file');
    await chooser.uploadFile(file);
    await page.waitForFunction(isReady);
    console.log(`  ${await textOf(page, '#model')}`);
    for (const device of kDevices) {
      // One prompt of the second file on SwiftShader: that another prompt follows, the first file shows.
      const isBrief = file !== kModels[0].file && !device.startsWith('cpu:');
      for (const prompt of isBrief ? prompts.slice(0, 1) : prompts) await saysWhatItSaysNatively(page, device, prompt);
    }
  }
}

async function generationStops(page, address) {
  await open(page, address);
  await ask(page, 'webgpu:0', 'Once upon a time', 1000);  // slow enough that the story does not end first
  await page.waitForFunction(() => document.querySelector('#made').textContent !== '');
  assert.equal(await textOf(page, '#go'), 'Stop');
  await page.click('#go');
  await page.waitForFunction(isReady);
  assert.match(await textOf(page, '#status'), /interrupted/);
}

async function theKeyboardIsEnough(page, address) {
  const query = new URLSearchParams({ device: 'cpu:scalar', prompt: 'Once upon', tokens: '3' });
  await open(page, `${address}?${query}`);
  await page.focus('#prompt');
  await page.keyboard.down('Control');
  await page.keyboard.press('Enter');
  await page.keyboard.up('Control');
  await page.waitForFunction(() => document.body.dataset.state === 'ready' && window.answer);
  const answer = await page.evaluate(() => window.answer);
  assert.equal(answer.tokens.length, 3);
  assert.deepEqual(answer.devices, ['cpu:scalar']);
  assert.equal(await page.evaluate(() => document.activeElement.id), 'prompt');
}

async function aFileThatIsNoModelIsRefused(page, address) {
  await open(page, address);
  await (await page.$('#file')).uploadFile(process.argv[1]);
  await page.waitForFunction(() => !document.querySelector('#error').hidden);
  console.log(`  ${await textOf(page, '#error')}`);
}

// Returns what `look` sees on a page of a browser that `change` has modified.
async function changed(page, change, look) {
  const { identifier } = await page.evaluateOnNewDocument(change);
  await look();
  await page.removeScriptToEvaluateOnNewDocument(identifier);
}

async function aBrowserWithoutJspiIsTold(page, address) {
  await changed(page, () => { delete WebAssembly.Suspending; }, async () => {
    await page.goto(address);
    await page.waitForFunction(() => document.body.dataset.state === 'failed');
    assert.match(await textOf(page, '#error'), /JSPI.*Chrome/);
  });
}

async function aBrowserWithoutWebGpuSaysWhy(page, address) {
  const look = (reason) => async () => {
    await open(page, address);
    assert.equal(await page.$('[value="webgpu:0"]'), null);
    assert.ok(await page.$('[value="cpu:simd"]'));
    assert.match(await textOf(page, '#absent'), reason);
  };
  await changed(page, () => { delete Navigator.prototype.gpu; }, look(/webgpu: this browser has no WebGPU/));
  await changed(page, () => { GPU.prototype.requestAdapter = async () => null; }, look(/webgpu: .* offers no GPU/));
}

async function aLostDeviceIsReported(page, address) {
  for (const device of kDevices.filter((each) => each.split(':')[0] in kLosses)) {
    await open(page, address);
    await ask(page, device, 'Once upon a time', 1000);
    await page.waitForFunction(() => document.querySelector('#made').textContent !== '');
    await page.evaluate(kLosses[device.split(':')[0]]);
    await page.waitForFunction(isReady);
    const error = await textOf(page, '#error');
    console.log(`  ${error}`);
    assert.match(error, /Choose another device/);
    assert.ok(error.includes(device), 'the message names the device');
    await ask(page, 'cpu:simd', 'Once upon a time', 1);
    await page.waitForFunction(isReady);
    assert.equal(await textOf(page, '#error'), '');
    assert.equal(await textOf(page, '#made-tokens'), '1 tokens');
  }
}

async function takeScreenshot(page, address, file) {
  await page.setViewport({ width: 1100, height: 860 });
  await open(page, `${address}?device=cpu:simd&tokens=48`);
  await page.click('#go');
  await page.waitForFunction(isReady);
  await page.evaluate(() => document.activeElement.blur());
  await page.screenshot({ path: file });
}

const kTests = [
  modelsSayWhatTheySayNatively, generationStops, theKeyboardIsEnough, aFileThatIsNoModelIsRefused,
  aBrowserWithoutJspiIsTold, aBrowserWithoutWebGpuSaysWhy, aLostDeviceIsReported,
];

const { values: { screenshot }, positionals: [folder] } =
  parseArgs({ allowPositionals: true, options: { screenshot: { type: 'string' } } });
if (folder === undefined) {
  console.error('usage: node tests/web/page_test.mjs FOLDER [--screenshot FILE]');
  process.exit(2);
}
await inBrowser(async (page, address) => {
  page.setDefaultTimeout(0);  // ctest has a timeout
  await page.evaluateOnNewDocument(keepWhatIsMade);
  if (screenshot) return takeScreenshot(page, address, screenshot);
  for (const test of kTests) {
    console.log(test.name);
    await test(page, address);
  }
}, folder);
console.log('ok');
