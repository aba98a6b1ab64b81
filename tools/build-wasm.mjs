// Compiles the wasm executor's kernels: engine/executors/wasm/kernels/*.ts (AssemblyScript) -> dist/engine/executors/wasm/kernels.wasm,
// in .dist-next, which becomes dist when all is built.
//
// They compute in the heap of tfjs-backend-wasm, so that they have a memory of their own nowhere: it is
// imported, and nothing of theirs may lie in it (no constants in memory, no allocator). Of that package two
// files are copied next to them, since the others are a hundred times as much and of no use here; NOTICES.txt
// has the licences of what is in these files.
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import asc from 'assemblyscript/asc';
import { backendNotices } from './wasm-notices.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const target = join(root, '.dist-next/engine/executors/wasm');
mkdirSync(target, { recursive: true });

const backend = join(root, 'node_modules/@tensorflow/tfjs-backend-wasm');
// The loader is CommonJS, for the code without and with SIMD alike.
copyFileSync(join(backend, 'wasm-out/tfjs-backend-wasm.js'), join(target, 'tfjs-backend-wasm.cjs'));
copyFileSync(
  join(backend, 'wasm-out/tfjs-backend-wasm-simd.wasm'),
  join(target, 'tfjs-backend-wasm-simd.wasm'),
);
writeFileSync(join(target, 'NOTICES.txt'), backendNotices(backend));

const { error, stderr } = await asc.main([
  'engine/executors/wasm/kernels/index.ts',
  ...['--baseDir', root],
  ...['--outFile', '.dist-next/engine/executors/wasm/kernels.wasm'],
  ...['--runtime', 'stub'],
  ...['--stackSize', '0'],
  '--importMemory',
  '--noAssert',
  ...['--enable', 'simd'],
  ...['--optimizeLevel', '3'],
  ...['--shrinkLevel', '0'],
  '--converge',
  // v128 passes between the kernels, never to JavaScript.
  ...['--disableWarning', '112'],
]);
if (error) {
  console.error(stderr.toString());
  process.exit(1);
}
const compiled = readFileSync(join(target, 'kernels.wasm'));
if (hasData(compiled)) {
  console.error('skein: the kernels of the wasm executor have constants in memory, which is not theirs');
  process.exit(1);
}

/** Whether a module has a section of data (11). */
function hasData(bytes) {
  let at = 8;
  while (at < bytes.length) {
    const id = bytes[at++];
    let length = 0;
    for (let shift = 0, more = true; more; shift += 7) {
      const byte = bytes[at++];
      length += (byte & 127) * 2 ** shift;
      more = byte > 127;
    }
    if (id === 11 && length > 1) return true;
    at += length;
  }
  return false;
}
