// The page around Shunt: loads the model that lies beside it, then generates on the chosen device.
//
// ?device=webgpu:0&prompt=...&tokens=32&temperature=0 fills in the form. document.body.dataset.state is loading, ready,
// running, or failed when the page can do nothing more.
import { download, missingHere, Shunt } from './shunt.mjs';

const kModel = 'tiny-llama-q8_0.gguf';
const kAdvice = {
  device_lost: 'Choose another device, or reload the page to use this one again.',
  out_of_memory: 'Choose another device or a smaller model.',
};

const byId = (id) => document.getElementById(id);
const [form, inputs, go, file, made] = ['form', 'inputs', 'go', 'file', 'made'].map(byId);
let shunt = null;
let stop = null;  // an AbortController while generating

function show(state, text) {
  document.body.dataset.state = state;
  byId('status').textContent = text;
  byId('progress').hidden = state !== 'loading';
  inputs.disabled = state !== 'ready';
  file.disabled = state !== 'ready';
  go.disabled = state !== 'ready' && state !== 'running';
  go.textContent = state === 'running' ? 'Stop' : 'Generate';
}

function showError(error) {
  if (error) console.error(error);
  byId('error').textContent = error ? [error.message, kAdvice[error.code]].filter(Boolean).join(' — ') : '';
  byId('error').hidden = !error;
}

function showProgress(bytes, total) {
  if (!total) return;
  byId('progress').max = total;
  byId('progress').value = bytes;
}

async function open(name, bytes) {
  const model = await shunt.openModel(bytes);
  byId('model').textContent = `Model: ${name}, ${model.architecture}, ${(model.weight_bytes / 1e6).toFixed(1)} MB of ` +
    `weights, ${model.context} tokens of context`;
  show('ready', 'Ready.');
}

function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function deviceRow({ id, name, api_version, details }) {
  const choice = make('input', { type: 'radio', name: 'device', value: id, required: true });
  const text = [name, api_version, ...details].filter(Boolean).join(' · ');
  return make('label', { className: 'device' }, choice, make('span', {}, id), make('small', {}, text));
}

const absentRow = ([reason, apis]) => make('p', {}, `${apis.join(', ')}: ${reason}`);

function fillIn({ devices, absent }) {
  byId('devices').append(...devices.map(deviceRow));
  const apisByReason = new Map();
  for (const { api, reason } of absent) apisByReason.set(reason, [...(apisByReason.get(reason) ?? []), api]);
  byId('absent').append(...[...apisByReason].map(absentRow));
  const wanted = new URLSearchParams(location.search);
  for (const id of ['prompt', 'tokens', 'temperature']) if (wanted.has(id)) byId(id).value = wanted.get(id);
  const choices = [...form.querySelectorAll('[name=device]')];
  (choices.find(({ value }) => value === wanted.get('device')) ?? choices[0]).checked = true;
}

function showMeasures(result) {
  byId('prompt-tokens').textContent = `${result.prompt_tokens.length} tokens`;
  byId('prompt-speed').textContent = `${result.timings.prompt_tokens_per_s.toFixed(1)} tokens/s`;
  byId('made-tokens').textContent = `${result.tokens.length} tokens`;
  byId('made-speed').textContent = `${result.timings.generate_tokens_per_s.toFixed(1)} tokens/s`;
  byId('measures').hidden = false;
}

async function generate() {
  const temperature = byId('temperature').valueAsNumber;
  const request = {
    device: new FormData(form).get('device'),
    prompt: byId('prompt').value,
    tokens: byId('tokens').valueAsNumber,
    greedy: temperature === 0,
    temperature,
    seed: Math.floor(Math.random() * 2 ** 32),
  };
  const focused = document.activeElement;
  stop = new AbortController();
  showError(null);
  byId('measures').hidden = true;
  byId('given').textContent = request.prompt;
  made.textContent = '';
  byId('text').hidden = false;
  show('running', `Generating on ${request.device} …`);
  go.focus();
  try {
    const result = await shunt.generate(request, { onText: (piece) => made.append(piece), signal: stop.signal });
    showMeasures(result);
    show('ready', `Done on ${result.devices.join(', ')}, ended by: ${result.stop}.`);
  } catch (error) {
    showError(error);
    show('ready', '');
  }
  focused.focus();
}

form.addEventListener('submit', (event) => {
  event.preventDefault();
  if (document.body.dataset.state === 'running') stop.abort();
  else generate();
});
byId('prompt').addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) form.requestSubmit();
});
file.addEventListener('change', async () => {
  const [chosen] = file.files;
  if (!chosen) return;
  showError(null);
  show('loading', `Opening ${chosen.name} …`);
  try {
    await open(chosen.name, await chosen.arrayBuffer());
  } catch (error) {
    showError(error);
    show('ready', '');
  }
});

async function start() {
  show('loading', 'Loading the program …');
  if (missingHere()) throw new Error(missingHere());
  shunt = await Shunt.load({ onProgress: showProgress });
  show('loading', 'Looking for devices …');
  fillIn(await shunt.devices());
  show('loading', 'Loading the model …');
  await open(kModel, await download(kModel, showProgress));
}

start().catch((error) => {
  showError(error);
  show('failed', '');
});
