// node tests/web/report_test.mjs SHUNT [--screenshot FILE [--dark] [--width N]]: the page of `shunt report`, opened
// from a file. With --screenshot, takes a picture of the page (docs/images/report.png) instead of testing.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';

import { inBrowser } from './browser.mjs';

const root = fileURLToPath(new URL('../../', import.meta.url));
const { values: { screenshot, dark, width = '1280' }, positionals: [shunt] } = parseArgs({
  allowPositionals: true, options: { screenshot: { type: 'string' }, dark: { type: 'boolean' }, width: { type: 'string' } } });
if (shunt === undefined) {
  console.error('usage: node tests/web/report_test.mjs SHUNT [--screenshot FILE [--dark] [--width N]]');
  process.exit(2);
}
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'shunt-report-'));
const run = (...words) => execFileSync(shunt, words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });

// Records a trace of a model spread over three devices, and makes its page.
function record() {
  const trace = path.join(folder, 'trace.json');
  run('run', path.join(root, 'models/tiny-llama-q8_0.gguf'), 'Once upon a time', '-n', '16', '--greedy', '--strategy', 'layers',
    '--machine', path.join(root, 'examples/machines/two-unequal-gpus.json'), '--trace', trace);
  return trace;
}

// Makes a page of the trace after `change` has modified it.
function pageOf(trace, change = () => {}) {
  const json = JSON.parse(fs.readFileSync(trace, 'utf8'));
  change(json);
  const changed = path.join(folder, 'changed.json');
  fs.writeFileSync(changed, JSON.stringify(json));
  run('report', changed);
  return path.join(folder, 'changed.html');
}

// Opens the file without network. Any error in the page fails the test.
async function open(page, file) {
  const errors = [];
  page.removeAllListeners('pageerror');
  page.on('pageerror', (error) => errors.push(error));
  page.on('request', (request) => { if (!request.url().startsWith('file:')) errors.push(request.url()); });
  await page.goto(pathToFileURL(file).href);
  assert.deepEqual(errors, []);
  assert.equal(await page.evaluate(() => document.body.dataset.state), 'ready');
}

const textOf = (page, selector) => page.$eval(selector, ({ textContent }) => textContent);
const countOf = (page, selector) => page.$$eval(selector, ({ length }) => length);

async function everySectionIsThere(page, trace) {
  await open(page, pageOf(trace));
  assert.equal(await textOf(page, '#title'), 'tiny-llama-q8_0.gguf');
  assert.match(await textOf(page, '#origin'), /strategy layers.*two-unequal-gpus\.json/);
  assert.match(await textOf(page, '#devices'), /cpu.*gpu:0.*gpu:1/);
  for (const chart of ['#timeline', '#time-by-op', '#scatter']) assert.equal(await countOf(page, `${chart} canvas`), 1, chart);
  const rows = await page.$$eval('#time-by-device tbody tr', (all) => all.map(({ firstChild }) => firstChild.textContent));
  assert.ok(rows.includes('gpu:1') && rows.includes('cpu -> gpu:0'), rows.join());
  assert.equal(await countOf(page, '#map tbody tr'), 6, 'a row per layer');
  const colours = await page.$$eval('#map tbody tr', (all) => all.map((each) => each.querySelector('td').style.background));
  assert.equal(new Set(colours).size, 3, 'three devices, in turn');
  assert.equal(colours[0], colours[3]);
}

async function theTimelineZoomsAndTellsOfEvents(page, trace) {
  await open(page, pageOf(trace));
  const chart = () => echarts.getInstanceByDom(document.querySelector('#timeline'));
  const blocks = () => page.evaluate(`(${chart})().getOption().series[0].data.map(({ value }) => value)`);
  const before = await blocks();
  await page.evaluate(`(${chart})().dispatchAction({ type: 'dataZoom', startValue: 0, endValue: 20000 })`);
  await page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
  const after = await blocks();
  assert.ok(before.some(([, , , , together]) => together > 1), 'narrow ones are drawn together');
  assert.ok(after.length > 0 && after.every(([, start]) => start <= 20000), 'only what shows');
  assert.ok(after.every(([, , , , together]) => together === 1));
  const words = await page.evaluate((block) => describeEvent(block), after.at(-1));
  assert.match(words, /took .* predicted .*on cpu: placed by hand.*a step of/);
}

async function decisionsAreSortedFilteredAndExplained(page, trace) {
  await open(page, pageOf(trace));
  const nodes = () => page.$$eval('#decisions tr.decision', (all) => all.map(({ cells }) => cells[1].textContent));
  const all = (await nodes()).length;
  await page.type('#filter', 'blk.5 linear');
  const some = await nodes();
  assert.ok(some.length > 0 && some.length < all && some.every((node) => node.startsWith('blk.5.')), some.join());
  await page.select('#filter-device', 'cpu');
  assert.deepEqual(await nodes(), [], 'the last layer is elsewhere');
  await page.select('#filter-device', 'gpu:1');
  await page.click('#decisions th:nth-child(2)');
  assert.deepEqual(await nodes(), [...some].sort());
  await page.click('#decisions tr.decision');
  const candidates = await textOf(page, '#decisions .candidates');
  assert.match(candidates, /another device was named/);
  assert.match(candidates, /gpu:1placed by hand/);
  await page.click('#decisions tr.decision');
  assert.equal(await countOf(page, '#decisions .candidates'), 0);
}

// The verdict: what ran where, what was lost and what would be better; token times; each device's memory.
async function itOpensWithAVerdict(page, trace) {
  await open(page, pageOf(trace));
  assert.match(await textOf(page, '#verdict'), /\d+ % of the work ran on \S+, .*; nothing failed; .*\.$/);
  assert.equal(await page.$eval('#failures-section', ({ hidden }) => hidden), true);
  const memory = await page.$$eval('#memory tbody tr', (all) => all.map(({ cells }) => cells[0].textContent));
  assert.deepEqual(memory.sort(), ['cpu', 'gpu:0', 'gpu:1']);
  const figures = await textOf(page, '#figures');
  for (const words of ['to the first token', 'or less for half of 15 tokens', 'or less for 90 %', 'or less for 99 %']) assert.ok(figures.includes(words), figures);
  await open(page, pageOf(trace, (json) => {
    const program = json.traceEvents.find(({ cat }) => cat === 'program');
    program.args.outcome = 'device_lost';
  }));
  assert.match(await textOf(page, '#verdict'), /; 1 failure \(below\); /);
  assert.equal(await page.$eval('#failures-section', ({ hidden }) => hidden), false);
  assert.match(await textOf(page, '#failures'), /device_lost/);
}

// A table for each kind of step, with the bound if the trace has limits.
async function stepsHaveTheirParts(page, trace) {
  const tables = () => page.$$eval('#steps table', (all) => all.map((each) => [...each.rows].map(({ cells }) => cells[0].textContent)));
  const notes = () => page.$$eval('#steps .hint', (all) => all.map(({ textContent }) => textContent));
  await open(page, pageOf(trace));
  const [generation, prompt] = await tables();
  assert.deepEqual([generation[0], generation.at(-1), prompt[0], prompt.at(-1)], ['generation, a token', 'all', 'prompt, 8 tokens', 'all']);
  assert.match((await notes())[0], /^mean of 15 steps, .* tokens\/s, predicted /);
  assert.equal(await textOf(page, '#limits'), '');
  await open(page, pageOf(trace, (json) => {
    json.otherData.limits = [{ weight_bytes: 2 ** 20, host_weight_bytes: 2 ** 19, least_host_weight_bytes: 2 ** 18, weight_elements: 1e6,
      read_bytes_per_s: 9e9, read_bytes_per_s_beside_weights: 7e9, link_bytes_per_s: 5e9, link_bytes_per_s_beside_reads: 4e9,
      gpu_bytes_per_s: 0, gpu_flops_per_s: 1e12, prompt_tokens: 7 }];
  }));
  const [limited, limitedPrompt] = await tables();
  assert.deepEqual(limited.slice(1, 3), ['host memory, by the processor and the link', 'budget that holds no weights']);
  assert.equal(limitedPrompt[0], 'prompt, 7 tokens');
  assert.match((await notes())[1], / of the bound, predicted /);
  assert.match(await textOf(page, '#limits'), /^512\.0 KiB of 1\.0 MiB of weights stay in host memory\nthe processor reads 9\.0 GB\/s/);
  await open(page, pageOf(trace, (json) => { json.otherData.plans = []; }));
  assert.equal(await page.$eval('#steps-section', ({ hidden }) => hidden), true);
}

// Nothing is wider than a phone's screen; tables scroll on their own.
async function itFitsANarrowScreen(page, trace) {
  for (const width of [420, 320, 1280]) {
    await page.setViewport({ width, height: 900 });
    await open(page, pageOf(trace));
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= width, `scrolls sideways at ${width}`);
    const wide = await page.$$eval('section, .chart, h1, #verdict, input, select', (all, most) => all
      .filter((each) => each.getBoundingClientRect().right > most).map(({ id, tagName }) => id || tagName), width);
    assert.deepEqual(wide, [], `at ${width}`);
    const canvas = await page.$eval('#timeline canvas', (each) => each.getBoundingClientRect().width);
    assert.ok(canvas > 0.7 * width - 60 && canvas < width, `${canvas} of ${width}`);
  }
}

async function anEmptyTraceIsAPage(page, trace) {
  await open(page, pageOf(trace, (json) => {
    json.traceEvents = [];
    json.otherData = { events_recorded: 0, events_overwritten: 0 };
  }));
  assert.match(await textOf(page, '#timeline'), /nothing to show/);
  assert.equal(await page.$eval('#decisions-section', ({ hidden }) => hidden), true);
}

// Names may contain anything.
async function namesAreNoMarkup(page, trace) {
  const name = '</script><img src=x onerror="throw 1"><!--';
  await open(page, pageOf(trace, (json) => {
    for (const event of json.traceEvents) if (event.cat === 'op') event.name = `linear ${name}`;
    for (const unit of json.otherData.plans[0].units) unit.nodes = [name];
    json.otherData.origin[0].model = name;
  }));
  assert.equal(await textOf(page, '#title'), name.split('/').at(-1));
  assert.equal(await countOf(page, 'img'), 0);
}

async function aLongTraceOpensInSeconds(page, trace) {
  const file = pageOf(trace, (json) => {
    const events = json.traceEvents.filter(({ ph }) => ph === 'X');
    const length = Math.max(...events.map(({ ts, dur }) => ts + dur));
    for (let copy = 1; json.traceEvents.length < 100000; ++copy) {
      for (const event of events) json.traceEvents.push({ ...event, ts: event.ts + copy * length });
    }
    json.otherData.events_recorded = json.traceEvents.length + 5;
    json.otherData.events_overwritten = 5;
  });
  const start = performance.now();
  await open(page, file);
  console.log(`  ${(fs.statSync(file).size / 2 ** 20).toFixed(1)} MiB, open in ${(performance.now() - start).toFixed(0)} ms`);
  assert.match(await textOf(page, '#left-out'), /Left out: the [0-9,]+ shortest events, none longer than/);
  assert.match(await textOf(page, '#warnings'), /The first 5 of 100,/);
}

async function takeScreenshot(page, trace, file) {
  await page.setViewport({ width: Number(width), height: 2200 });
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' }]);
  await open(page, pageOf(trace));
  await page.click('#decisions tr.decision');
  await page.evaluate(() => scrollTo(0, 0));
  await page.screenshot({ path: file });
}

const kTests = [itOpensWithAVerdict, stepsHaveTheirParts, itFitsANarrowScreen, everySectionIsThere, theTimelineZoomsAndTellsOfEvents, decisionsAreSortedFilteredAndExplained,
  anEmptyTraceIsAPage, namesAreNoMarkup, aLongTraceOpensInSeconds];

try {
  await inBrowser(async (page) => {
    page.setDefaultTimeout(0);  // ctest has a timeout
    const trace = record();
    if (screenshot) return takeScreenshot(page, trace, screenshot);
    for (const test of kTests) {
      console.log(test.name);
      await test(page, trace);
    }
  }, folder);
} finally {
  fs.rmSync(folder, { recursive: true, force: true });
}
console.log('ok');
