// node tests/web/essl_test.mjs FOLDER: a browser's WebGL2 accepts every kernel of FOLDER/*.essl300*.
import { checkKernels } from './kernels.mjs';

const kCover = '#version 300 es\nvoid main() { gl_Position = vec4(0.0, 0.0, 0.0, 1.0); }\n';
const kPut = `#version 300 es
precision highp int;
flat in uint point_word;
layout(location = 0) out uint word;
void main() { word = point_word; }
`;

// Runs in the page.
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

function kernelOf(name, code) {
  if (name.endsWith('_points')) return { name, vertices: code, fragments: kPut };
  return { name, vertices: kCover, fragments: code };
}

await checkKernels(/\.essl300(_|$)/, kernelOf, link);
