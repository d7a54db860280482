// The devices that a browser must offer, and the text that the trained model must give there: two prompts, four tokens
// each.
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';

export const kDevices = ['cpu:simd', 'cpu:scalar', 'webgpu:0', 'webgl2:0'];
export const kTokens = 4;

const fileOf = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const reference = JSON.parse(fs.readFileSync(fileOf('tests/data/tiny-llama-reference.json'), 'utf8'));
// The shortest ones: SwiftShader is slow.
const prompts = reference.prompts.sort((a, b) => a.ids.length - b.ids.length).slice(0, 2);

// `prompts`: {text, ids, tokens}, where the tokens follow the ids.
export const kModels = [
  {
    file: fileOf('models/tiny-llama-q8_0.gguf'),
    // shunt run models/tiny-llama-q8_0.gguf TEXT -n 4 --greedy --devices cpu:scalar --json, on x86-64 Linux
    prompts: [
      { ...prompts[0], tokens: [653, 1939, 653, 586] },
      { ...prompts[1], tokens: [1940, 1986, 1934, 1986] },
    ],
  },
  {
    file: fileOf('tests/data/tiny-llama-f16.gguf'),
    // From Hugging Face transformers.
    prompts: prompts.map((prompt) => ({ ...prompt, tokens: prompt.greedy_ids.slice(0, kTokens) })),
  },
];
