// node tests/web/wgsl_test.mjs FOLDER: a browser's WebGPU accepts every kernel of FOLDER/*.wgsl.
import { checkKernels } from './kernels.mjs';

// Runs in the page.
async function createPipelines(kernels) {
  const adapter = await navigator.gpu?.requestAdapter();
  if (!adapter) return { error: 'this Chromium has no WebGPU adapter' };
  const { maxStorageBuffersPerShaderStage } = adapter.limits;
  const device = await adapter.requestDevice({ requiredLimits: { maxStorageBuffersPerShaderStage } });
  const rows = [];
  for (const { name, code } of kernels) {
    device.pushErrorScope('validation');
    const module = device.createShaderModule({ code });
    const { messages } = await module.getCompilationInfo();
    const compute = { module, entryPoint: 'main' };
    const refused = await device.createComputePipelineAsync({ layout: 'auto', compute }).then(() => null, String);
    const error = await device.popErrorScope();
    const said = messages.map((each) => `${each.type} at ${each.lineNum}:${each.linePos}: ${each.message}`);
    rows.push({ name, against: [...said, error?.message, refused].filter(Boolean) });
  }
  return { adapter: `${adapter.info.vendor} ${adapter.info.architecture}`, rows };
}

await checkKernels(/\.wgsl$/, (name, code) => ({ name, code }), createPipelines);
