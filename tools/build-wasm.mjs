// Compiles the wasm executor's kernels: engine/executors/wasm/kernels/*.ts (AssemblyScript) -> dist/engine/executors/wasm/kernels.wasm,
// in .dist-next, which becomes dist when all is built.
//
// They compute in the heap of tfjs-backend-wasm, so that they have a memory of their own nowhere: it is imported, and
// nothing of theirs may lie in it (no constants in memory, no allocator).
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import asc from 'assemblyscript/asc';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
mkdirSync(join(root, '.dist-next/engine/executors/wasm'), { recursive: true });

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
