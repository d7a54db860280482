// Fills the page of `shunt report` from the data embedded in it.
'use strict';

const facts = JSON.parse(document.getElementById('data').textContent);
const { summary, plans, timeline, origin, speeds, verdict, limits, steps } = facts;

const kDeviceColours = ['#4477aa', '#dd7733', '#338855', '#aa4477', '#bb9922', '#4499bb', '#8866bb', '#777777'];
const kOpColours = ['#5b8ff9', '#61c9a8', '#f6bd16', '#e8684a', '#9270ca', '#6dc8ec', '#ff99c3', '#2f8f83', '#a0855b',
  '#8d98a3'];
const kRowsAtOnce = 200;
const kMostOps = 12;  // shown one by one in the chart of ops

const find = (selector) => document.querySelector(selector);
const isDark = matchMedia('(prefers-color-scheme: dark)');

// ---- Text and elements

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

const escaped = (text) => element('i', {}, String(text)).innerHTML;
const milliseconds = (us) => (us / 1e3).toLocaleString('en', { maximumFractionDigits: us < 1e4 ? 3 : 1 });
const percent = (part) => `${(100 * part).toLocaleString('en', { maximumFractionDigits: 1 })} %`;
const times = (count, thing) => `${count.toLocaleString('en')} ${thing}${count === 1 ? '' : 's'}`;

function microseconds(us) {
  if (us >= 1e6) return `${(us / 1e6).toFixed(2)} s`;
  if (us >= 1e3) return `${(us / 1e3).toFixed(2)} ms`;
  return `${us.toFixed(us < 10 ? 2 : 1)} us`;
}

function bytes(count) {
  if (count >= 2 ** 30) return `${(count / 2 ** 30).toFixed(2)} GiB`;
  return count >= 2 ** 20 ? `${(count / 2 ** 20).toFixed(2)} MiB` : `${(count / 1024).toFixed(1)} KiB`;
}

function row(cells, attributes = {}) {
  return element('tr', attributes, ...cells.map((cell) => (
    typeof cell === 'number' || cell?.number !== undefined
      ? element('td', { class: 'number' }, String(cell.number ?? cell)) : element('td', {}, cell))));
}
const number = (text) => ({ number: text });

// ---- Colours

const deviceIds = [...new Set([
  ...(origin?.devices ?? []).map(({ id }) => id),
  ...plans.flatMap(({ units }) => units.map(({ device }) => device)),
  ...summary.devices.map(({ name }) => name),
])];
const colourOfDevice = (id) => kDeviceColours[deviceIds.indexOf(id) % kDeviceColours.length];
const opNames = summary.ops.map(({ name }) => name);
const colourOfOp = (name) => kOpColours[Math.min(opNames.indexOf(name), kOpColours.length - 1)];

function legend(selector, entries) {
  find(selector).replaceChildren(...entries.map(({ name, colour, note = '' }) => element('li', {},
    element('i', { class: 'swatch', style: `background: ${colour}` }), `${name} `, element('span', {}, note))));
}

// ---- Header

// Fills the top of the page: the verdict, what failed, and the memory of each device.
function fillVerdict() {
  find('#verdict').textContent = verdict.sentence;
  find('#failures-section').hidden = verdict.failures.length === 0;
  find('#failures').append(...verdict.failures.map((text) => element('li', {}, text)));
  find('#memory').hidden = verdict.memory.length === 0;
  find('#memory tbody').append(...verdict.memory.map((use) => row([use.devices,
    ...['total', 'weight', 'state', 'value', 'scratch'].map((what) => number(bytes(use[`${what}_bytes`])))])));
}

function latencyFigures() {
  const figures = [];
  if (verdict.first_token_us > 0) figures.push([microseconds(verdict.first_token_us), 'to the first token']);
  if (verdict.tokens > 0) {
    figures.push([microseconds(verdict.token_p50_us), `or less for half of ${times(verdict.tokens, 'token')}`],
      [microseconds(verdict.token_p90_us), 'or less for 90 %'],
      [microseconds(verdict.token_p99_us), 'or less for 99 %']);
  }
  return figures;
}

function fillHeader() {
  const model = origin?.model.split('/').at(-1);
  find('#title').textContent = model ?? facts.trace;
  document.title = `Shunt: ${find('#title').textContent}`;
  find('#origin').textContent = origin === null ? '' : [
    `shunt ${origin.command}`, `strategy ${origin.strategy}`, origin.context && times(origin.context, 'token') + ' of context',
    origin.cache_type && `cache ${origin.cache_type}`, origin.machine && `simulated machine ${origin.machine.split('/').at(-1)}`, `version ${origin.version}`,
  ].filter(Boolean).join(' · ');
  const nameOf = (id) => origin?.devices.find((device) => device.id === id);
  legend('#devices', deviceIds.map((id) => ({
    name: id, colour: colourOfDevice(id), note: nameOf(id) ? `${nameOf(id).name} (${nameOf(id).type})` : '',
  })));
  const figures = [[microseconds(summary.span_us), 'from the first event to the last'],
    [summary.runs.events.toLocaleString('en'), 'runs of plans']];
  if (speeds?.prompt_tokens > 0) {
    figures.push([`${speeds.prompt_tokens_per_s.toFixed(1)} tokens/s`, times(speeds.prompt_tokens, 'token') + ' of prompt']);
  }
  if (speeds?.generated_tokens_per_s > 0) {
    figures.push([`${speeds.generated_tokens_per_s.toFixed(1)} tokens/s`,
      times(speeds.generated_tokens, 'token') + ' generated']);
  }
  figures.push(...latencyFigures());
  const { predicted_us: predicted, compared_us: compared } = summary.runs;
  if (compared > 0) figures.push([percent(predicted / compared), 'of the actual time was predicted']);
  const regret = plans.reduce((sum, plan) => sum + plan.regret_us * plan.actual.times, 0);
  if (plans.length > 0) figures.push([microseconds(regret), 'regret of all decisions']);
  const failed = summary.devices.reduce((sum, device) => sum + device.failed, 0);
  if (failed > 0) figures.push([failed, 'programs failed']);
  find('#figures').append(...figures.map(([value, what]) => element('div', {}, element('dt', {}, what),
    element('dd', {}, String(value)))));
  if (summary.events_overwritten > 0) {
    find('#warnings').hidden = false;
    find('#warnings').textContent = `The first ${summary.events_overwritten.toLocaleString('en')} of `
      + `${times(summary.events_recorded, 'event')} are missing and not counted: newer events overwrote them.`;
  }
}

// ---- Charts

const charts = [];

// Draws a chart with the ECharts options that `options(style)` returns, and redraws it when the colour scheme changes.
// Without the library, or with nothing to draw, the place of the chart says so.
function addChart(selector, isEmpty, options, prepare = () => {}) {
  const place = find(selector);
  const why = isEmpty ? 'The trace has nothing to show here.'
    : 'This build of shunt has no charts: install npm, then build shunt again (./dev build).';
  if (isEmpty || typeof echarts === 'undefined') {
    place.classList.add('absent');
    place.textContent = why;
    return;
  }
  let chart = null;
  const draw = () => {
    chart?.dispose();
    const colours = getComputedStyle(document.documentElement);
    const style = { text: colours.getPropertyValue('--text'), faint: colours.getPropertyValue('--faint'),
      line: colours.getPropertyValue('--line'), panel: colours.getPropertyValue('--panel') };
    chart = echarts.init(place, isDark.matches ? 'dark' : null);
    chart.setOption({
      backgroundColor: 'transparent', animation: false, textStyle: { fontFamily: 'system-ui, sans-serif' },
      tooltip: { confine: true, backgroundColor: style.panel, borderColor: style.line, textStyle: { color: style.text, fontSize: 12 } },
      ...options(style),
    });
    prepare(chart);
  };
  draw();
  isDark.addEventListener('change', draw);
  charts.push(() => chart.resize());
}

const lines = (...texts) => texts.filter(Boolean).map((text, index) => (
  index === 0 ? `<b>${escaped(text)}</b>` : escaped(text))).join('<br>');

// ---- Timeline

const { columns } = timeline;
const eventCount = columns.start.length;
const label = (index) => timeline.labels[index] ?? '';
const opOf = (index) => label(columns.name[index]).split(' ')[0];

// The events of each track, sorted by start.
const eventsOfTrack = timeline.tracks.map(() => []);
for (let index = 0; index < eventCount; ++index) eventsOfTrack[columns.track[index]].push(index);

function colourOfEvent(index) {
  if (columns.outcome[index] !== 'ok') return '#d03030';
  if (columns.kind[index] === 'op') return colourOfOp(opOf(index));
  return columns.kind[index] === 'run' ? '#9aa4ae' : colourOfDevice(label(columns.device[index]));
}

// The blocks to draw for [from, to] (ns) on that many pixels: [track, start, end, event, events drawn as one].
function visibleBlocks(from, to, pixels) {
  const narrow = (to - from) / pixels;
  const blocks = [];
  eventsOfTrack.forEach((events, track) => {
    let last = null;
    for (const index of events) {
      const start = columns.start[index];
      const end = start + columns.duration[index];
      if (end < from || start > to) continue;
      if (last !== null && end - last[1] < 2 * narrow) {
        if (columns.duration[index] > columns.duration[last[3]]) last[3] = index;
        last[2] = Math.max(last[2], end);
        ++last[4];
      } else {
        last = [track, start, end, index, 1];
        blocks.push(last);
      }
    }
  });
  return blocks;
}

function describeEvent([, start, end, index, together]) {
  if (together > 1) {
    return lines(times(together, 'event'), `from ${microseconds(start / 1e3)} to ${microseconds(end / 1e3)}`,
      `the longest: ${label(columns.name[index])}, ${microseconds(columns.duration[index] / 1e3)}`, 'Zoom in to separate them.');
  }
  const actual = columns.duration[index] / 1e3;
  const predicted = columns.predicted_us[index];
  const plan = plans.find((each) => each.number === columns.plan[index]);
  return lines(label(columns.name[index]), `${columns.kind[index]}, at ${microseconds(start / 1e3)}, step ${columns.step[index]}`,
    `took ${microseconds(actual)}${predicted > 0 ? `, predicted ${microseconds(predicted)}` : ''}`,
    columns.device[index] !== 0 && `on ${label(columns.device[index])}${columns.reason[index] !== 0 ? `: ${label(columns.reason[index])}` : ''}`,
    columns.bytes[index] > 0 && `${bytes(columns.bytes[index])} moved`, plan && `plan ${plan.number}, ${plan.title}`,
    columns.outcome[index] !== 'ok' && `failed: ${columns.outcome[index]}`);
}

function drawBlock(params, api) {
  const [left, y] = api.coord([api.value(1), api.value(0)]);
  const right = api.coord([api.value(2), api.value(0)])[0];
  const height = Math.min(api.size([0, 1])[1] * 0.72, 20);
  const { x, width } = params.coordSys;
  const from = Math.max(left, x);
  const to = Math.min(Math.max(right, left + 1), x + width);
  return to > from && {
    type: 'rect', shape: { x: from, y: y - height / 2, width: to - from, height }, style: { fill: api.visual('color') },
  };
}

function fillTimeline() {
  const place = find('#timeline');
  const end = Math.max(1, summary.span_us * 1e3);
  const items = (from, to) => visibleBlocks(from, to, Math.max(200, place.clientWidth - 260)).map((block) => ({
    value: block, itemStyle: { color: colourOfEvent(block[3]), opacity: block[4] > 1 ? 0.75 : 1 },
  }));
  if (eventCount > 0) place.style.height = `${120 + 28 * timeline.tracks.length}px`;
  legend('#ops', eventCount === 0 ? [] : opNames.slice(0, kOpColours.length).map((name, at) => ({
    name: at === kOpColours.length - 1 && opNames.length > kOpColours.length ? 'other ops' : name, colour: colourOfOp(name),
  })));
  find('#left-out').textContent = timeline.left_out === 0 ? '' : `Left out: the ${times(timeline.left_out, 'shortest event')}, `
    + `none longer than ${microseconds(timeline.longest_left_out_us)}. They count everywhere below.`;
  addChart('#timeline', eventCount === 0, (style) => ({
    grid: { left: 12, right: 20, top: 10, bottom: 62, containLabel: true },
    tooltip: { confine: true, backgroundColor: style.panel, borderColor: style.line,
      textStyle: { color: style.text, fontSize: 12 }, formatter: ({ value }) => describeEvent(value) },
    xAxis: { type: 'value', min: 0, max: end, axisLabel: { formatter: (ns) => microseconds(ns / 1e3), color: style.faint, hideOverlap: true },
      splitLine: { lineStyle: { color: style.line } } },
    yAxis: { type: 'category', data: timeline.tracks, inverse: true, axisTick: { show: false },
      axisLabel: { color: style.text }, axisLine: { lineStyle: { color: style.line } } },
    dataZoom: [{ type: 'inside', filterMode: 'none', minSpan: 0 },
      { type: 'slider', filterMode: 'none', height: 18, bottom: 10, showDataShadow: false,
        labelFormatter: (ns) => microseconds(ns / 1e3) }],
    series: [{ type: 'custom', renderItem: drawBlock, encode: { x: [1, 2], y: 0 }, data: items(0, end), clip: true }],
  }), (chart) => {
    let pending = false;
    chart.on('dataZoom', () => {
      if (pending) return;
      pending = true;
      requestAnimationFrame(() => {
        pending = false;
        const [{ startValue, endValue }] = chart.getOption().dataZoom;
        chart.setOption({ series: [{ data: items(startValue, endValue) }] });
      });
    });
  });
}

// ---- A step

function fillSteps() {
  find('#steps-section').hidden = steps.length === 0;
  find('#limits').textContent = limits?.sentence ?? '';
  find('#steps').append(...steps.map(({ title, sentence, us: whole, parts }) => {
    const line = (what, us) => row([what, number((us / 1e3).toFixed(3)), number(`${(100 * us / Math.max(whole, 1e-9)).toFixed(1)} %`),
      element('i', { class: 'bar', style: `width: ${Math.min(Math.max(100 * us / whole, 0), 100)}%` })]);
    const head = element('thead', {}, element('tr', {}, ...[title, 'ms', 'Share', ''].map((text) => element('th', {}, text))));
    const body = element('tbody', {}, ...parts.map(({ what, us }) => line(what, us)),
      row(['all', number((whole / 1e3).toFixed(3)), number('100.0 %'), '']));
    return element('div', { class: 'scroll' }, element('table', {}, head, body), element('p', { class: 'hint' }, sentence));
  }));
}

// ---- Where time went

function fillTimes() {
  const whole = Math.max(summary.span_us, 1e-9);
  if (summary.runs_with_ops > 0 && summary.runs_with_ops < summary.runs.events) {
    find('#sampled').textContent = `Ops were timed one by one in ${summary.runs_with_ops} of ${times(summary.runs.events, 'run')}; `
      + 'their sums represent all runs.';
  }
  const predicted = ({ predicted_us: us }) => number(us > 0 ? milliseconds(us) : '');
  find('#time-by-device tbody').append(...[...summary.devices, ...summary.links].map((tally) => row([tally.name,
    number(milliseconds(tally.actual_us)), number(percent(tally.actual_us / whole)), predicted(tally), tally.events,
    number(tally.bytes > 0 ? bytes(tally.bytes) : '')])));
  find('#overlaps').hidden = summary.overlaps.length === 0;
  find('#overlaps tbody').append(...summary.overlaps.map(({ first, second, us, of_shorter: share }) => row([
    `${first} and ${second}`, number(milliseconds(us)), number(percent(share))])));
  find('#time-table tbody').append(...summary.ops_by_device.map((tally) => row([tally.name,
    number(milliseconds(tally.actual_us)), predicted(tally), tally.events])));
  if (typeof echarts === 'undefined') find('#time-table').hidden = summary.ops.length === 0;

  const shown = opNames.length > kMostOps ? [...opNames.slice(0, kMostOps - 1), 'other'] : opNames;
  const sums = new Map(deviceIds.map((id) => [id, new Array(shown.length).fill(0)]));
  for (const { name, actual_us: us } of summary.ops_by_device) {
    const [op, device] = name.split(' on ');
    const place = shown.indexOf(op);
    sums.get(device)[place < 0 ? shown.length - 1 : place] += us / 1e3;
  }
  if (shown.length > 0) find('#time-by-op').style.height = `${70 + 24 * shown.length}px`;
  addChart('#time-by-op', shown.length === 0, (style) => ({
    grid: { left: 8, right: 24, top: 6, bottom: 40, containLabel: true },
    tooltip: { trigger: 'axis', axisPointer: { type: 'shadow' }, confine: true, backgroundColor: style.panel,
      borderColor: style.line, textStyle: { color: style.text, fontSize: 12 }, valueFormatter: (ms) => microseconds(ms * 1e3) },
    xAxis: { type: 'value', name: 'ms', nameLocation: 'middle', nameGap: 24, splitLine: { lineStyle: { color: style.line } },
      axisLabel: { color: style.faint } },
    yAxis: { type: 'category', data: shown, inverse: true, axisTick: { show: false }, axisLabel: { color: style.text } },
    series: [...sums].filter(([, values]) => values.some((value) => value > 0)).map(([id, data]) => ({
      type: 'bar', stack: 'all', name: id, data, barWidth: 13, itemStyle: { color: colourOfDevice(id) },
    })),
  }));
}

// ---- Placement

const nodeOf = ({ nodes }) => nodes.at(-1) ?? '';
const predictedOf = (unit) => unit.candidates.find(({ device }) => device === unit.device)?.compute_us ?? 0;
const describeUnit = (unit) => `${nodeOf(unit)}: ${unit.op} on ${unit.device}: ${unit.reason}; predicted `
  + microseconds(predictedOf(unit)) + (unit.actual.times > 0 ? `, took ${microseconds(unit.actual.mean_us)}` : '');

function showMap(plan) {
  const layers = new Map();
  const roles = [];  // of the columns: an op, numbered if a layer has several
  const outside = [];
  for (const unit of plan.units) {
    const layer = /^blk\.(\d+)\./.exec(nodeOf(unit))?.[1];
    if (layer === undefined) {
      outside.push(unit);
      continue;
    }
    if (!layers.has(layer)) layers.set(layer, new Map());
    const units = layers.get(layer);
    let [role, count] = [unit.op, 1];
    while (units.has(role)) role = `${unit.op} ${++count}`;
    if (!roles.includes(role)) roles.push(role);
    units.set(role, unit);
  }
  const cell = (unit) => (unit === undefined ? element('td')
    : element('td', { style: `background: ${colourOfDevice(unit.device)}`, title: describeUnit(unit) }));
  const head = element('thead', {}, element('tr', {}, element('th'),
    ...roles.map((role) => element('th', {}, element('span', {}, role)))));
  const body = element('tbody', {}, ...[...layers].map(([layer, units]) => element('tr', {},
    element('th', {}, layer), ...roles.map((role) => cell(units.get(role))))));
  const rest = element('ul', { class: 'legend' }, ...outside.map((unit) => element('li', { title: describeUnit(unit) },
    element('i', { class: 'swatch', style: `background: ${colourOfDevice(unit.device)}` }), nodeOf(unit) || unit.op)));
  find('#map').replaceChildren(...(roles.length > 0 ? [element('table', {}, head, body)] : []), rest);
}

const planName = (plan) => `${plan.number}: ${plan.title}, ${times(plan.actual.times, 'run')}`;
const planOptions = () => plans.map((plan) => element('option', { value: plan.number }, planName(plan)));

function fillMap() {
  if (plans.length === 0) {
    find('#map-section').hidden = true;
    return;
  }
  const select = find('#map-plan');
  select.append(...planOptions());
  select.addEventListener('change', () => showMap(plans[select.selectedIndex]));
  select.selectedIndex = plans.reduce((best, plan, at) => (plan.actual.times > plans[best].actual.times ? at : best), 0);
  showMap(plans[select.selectedIndex]);
}

// ---- Predicted against actual

function fillScatter() {
  const points = plans.flatMap((plan) => plan.units.map((unit) => ({ plan, unit, x: predictedOf(unit), y: unit.actual.mean_us })))
    .filter(({ x, y }) => x > 0 && y > 0);
  const values = points.flatMap(({ x, y }) => [x, y]);
  const least = 10 ** Math.floor(Math.log10(values.reduce((a, b) => Math.min(a, b), Infinity)));
  const most = 10 ** Math.ceil(Math.log10(values.reduce((a, b) => Math.max(a, b), 0)));
  const guide = (factor, type, style) => ({
    type: 'line', silent: true, symbol: 'none', lineStyle: { color: style.faint, width: 1, type }, tooltip: { show: false },
    data: factor >= 1 ? [[least, least * factor], [most / factor, most]] : [[least / factor, least], [most, most * factor]],
  });
  find('#scatter').style.height = points.length > 0 ? '460px' : '';
  addChart('#scatter', points.length === 0, (style) => {
    const axis = (name, nameGap) => ({ type: 'log', name, nameLocation: 'middle', nameGap, min: least, max: most,
      axisLabel: { formatter: (us) => microseconds(us).replace(/\.0+ /, ' '), color: style.faint, hideOverlap: true },
      splitLine: { lineStyle: { color: style.line } } });
    return {
      grid: { left: 30, right: 30, top: 36, bottom: 34, containLabel: true },
      legend: { top: 0, textStyle: { color: style.text }, data: deviceIds },
      xAxis: axis('predicted', 30), yAxis: axis('actual', 54),
      series: [...deviceIds.map((id) => ({
        type: 'scatter', name: id, symbolSize: 7, itemStyle: { color: colourOfDevice(id), opacity: 0.65 },
        data: points.filter(({ unit }) => unit.device === id).map(({ plan, unit, x, y }) => ({ value: [x, y], plan, unit })),
        tooltip: { formatter: ({ data: { plan, unit } }) => lines(nodeOf(unit), unit.call,
          `predicted ${microseconds(predictedOf(unit))}, took ${microseconds(unit.actual.mean_us)} (${times(unit.actual.times, 'time')})`,
          planName(plan)) },
      })), guide(1, 'solid', style), guide(2, 'dotted', style), guide(0.5, 'dotted', style)],
    };
  });
}

// ---- Decisions

const kColumns = [
  { name: 'Plan', value: ({ plan }) => plan.number },
  { name: 'Node', value: ({ unit }) => nodeOf(unit) },
  { name: 'Op', value: ({ unit }) => unit.op },
  { name: 'Device', value: ({ unit }) => unit.device },
  { name: 'Reason', value: ({ unit }) => unit.reason },
  { name: 'Predicted', value: ({ unit }) => predictedOf(unit), show: microseconds },
  { name: 'Actual', value: ({ unit }) => (unit.actual.times > 0 ? unit.actual.mean_us : -1), show: (us) => (us < 0 ? '' : microseconds(us)) },
  { name: 'Regret', value: ({ unit }) => unit.regret_us, show: (us) => (us > 0 ? microseconds(us) : '') },
];

function candidatesOf({ unit }) {
  const head = row(['Candidate', 'Reason', 'The whole plan', 'The op alone', 'Uncertainty']);
  const rows = unit.candidates.map((candidate) => {
    const { added_us: added, compute_us: compute, uncertainty_us: uncertainty } = candidate;
    const whole = added === null || added === 0 ? '' : `${added > 0 ? '+' : '-'} ${microseconds(Math.abs(added))}`;
    return row([candidate.device, candidate.detail === '' ? candidate.reason : `${candidate.reason}: ${candidate.detail}`,
      number(whole), number(compute > 0 ? microseconds(compute) : ''), compute > 0 ? number(`± ${microseconds(uncertainty)}`) : ''],
    { class: candidate.device === unit.device ? 'chosen' : undefined });
  });
  const took = unit.actual.times > 0
    ? `Took ${microseconds(unit.actual.mean_us)} (${microseconds(unit.actual.least_us)} to ${microseconds(unit.actual.most_us)}), ${times(unit.actual.times, 'time')}. `
    : 'Its time was not recorded. ';
  const regret = unit.regret_us > 0 ? `${unit.best_other} was predicted to save ${microseconds(unit.regret_us)} of that.` : '';
  const cell = element('td', { colspan: kColumns.length }, element('div', { class: 'call' }, unit.call),
    element('table', {}, head, ...rows), element('div', {}, took + regret));
  return element('tr', { class: 'candidates' }, cell);
}

function fillDecisions() {
  const all = plans.flatMap((plan) => plan.units.map((unit) => ({ plan, unit })));
  if (all.length === 0) {
    find('#decisions-section').hidden = true;
    return;
  }
  let order = { column: kColumns.at(-1), descending: true };
  let most = kRowsAtOnce;
  find('#filter-device').append(...deviceIds.map((id) => element('option', { value: id }, id)));
  find('#filter-plan').append(...planOptions());

  const chosen = () => {
    const words = find('#filter').value.toLowerCase().split(' ').filter(Boolean);
    const device = find('#filter-device').value;
    const plan = find('#filter-plan').value;
    return all.filter((decision) => {
      const text = `${nodeOf(decision.unit)} ${decision.unit.op} ${decision.unit.reason}`.toLowerCase();
      return words.every((word) => text.includes(word)) && (device === '' || decision.unit.device === device)
        && (plan === '' || String(decision.plan.number) === plan);
    });
  };
  const show = () => {
    const { column, descending } = order;
    const found = chosen().sort((a, b) => {
      const [x, y] = [column.value(a), column.value(b)];
      const sign = x < y ? -1 : Number(x > y);
      return descending ? -sign : sign;
    });
    find('#decisions thead tr').replaceChildren(...kColumns.map((each) => {
      const th = element('th', { class: each.show && 'number',
        'aria-sort': each === column ? (descending ? 'descending' : 'ascending') : undefined }, each.name);
      th.addEventListener('click', () => {
        order = { column: each, descending: each === column ? !descending : each.show !== undefined };
        show();
      });
      return th;
    }));
    find('#decisions tbody').replaceChildren(...found.slice(0, most).map((decision) => {
      const made = row(kColumns.map(({ value, show: format }) => (format ? number(format(value(decision))) : String(value(decision)))),
        { class: 'decision', tabindex: 0 });
      const toggle = () => {
        if (made.nextSibling?.className === 'candidates') made.nextSibling.remove();
        else made.after(candidatesOf(decision));
      };
      made.addEventListener('click', toggle);
      made.addEventListener('keydown', ({ key }) => { if (key === 'Enter') toggle(); });
      return made;
    }));
    find('#count').textContent = `${Math.min(most, found.length).toLocaleString('en')} of ${times(found.length, 'decision')}`;
    find('#more').hidden = found.length <= most;
  };
  for (const selector of ['#filter', '#filter-device', '#filter-plan']) {
    find(selector).addEventListener('input', () => {
      most = kRowsAtOnce;
      show();
    });
  }
  find('#more').addEventListener('click', () => {
    most += 5 * kRowsAtOnce;
    show();
  });
  show();
}

fillVerdict();
fillHeader();
fillTimeline();
fillSteps();
fillTimes();
fillMap();
fillScatter();
fillDecisions();
addEventListener('resize', () => charts.forEach((resize) => resize()));
document.body.dataset.state = 'ready';
