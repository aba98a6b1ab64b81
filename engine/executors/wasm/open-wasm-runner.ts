import { option, says } from '../../../base/named-text.js';
import { retell } from '../../../base/skein-error.js';
import { ExecutorUnavailableError } from '../executor-kind.js';
import type { NetworkRunner, OpenRunner } from '../portable/network-runner.js';
import { WasmHeap } from './heap.js';
import { loadWeights } from './load-weights.js';
import { checkHeap, heapBytes, memoryLayout } from './memory-layout.js';
import { RelativeTables } from './relative-tables.js';
import { WasmRunner } from './wasm-runner.js';
import { webAssembly } from './web-assembly.js';
import { takeWorkspace } from './workspace.js';

/** A module with one SIMD instruction: a V8 or a processor without SIMD refuses it. */
const SIMD_MODULE = Uint8Array.of(
  ...[0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 10, 9, 1, 7, 0, 65, 0, 253, 15, 26, 11],
);

/** Reason why no such runner can run here; null: it can. */
export function wasmProblem(): string | null {
  if (webAssembly.validate(SIMD_MODULE)) return null;
  return 'The wasm executor needs the SIMD instructions of WebAssembly, which Node.js does not offer on this processor.';
}

/**
 * Runs networks on @tensorflow/tfjs-backend-wasm, in the calling thread. Matrices and the KV cache are f32, whatever type the
 * weights are stored in.
 */
export const openWasmRunner: OpenRunner = async (engine, options): Promise<NetworkRunner> => {
  const problem = wasmProblem();
  if (problem !== null) throw new ExecutorUnavailableError(problem);
  checkOptions(options);
  const { plan } = engine;
  const layout = memoryLayout(plan, options);
  checkHeap(layout);
  const heap = await WasmHeap.open();
  const take = (bytes: number): number => {
    const pointer = heap.take(bytes);
    if (pointer !== null) return pointer;
    throw new Error(
      `The wasm executor could not take ${bytes} bytes: its heap has ${heap.bytes} of the ${heapBytes(layout)} that ` +
        'this model needs, and the machine gives no more.',
    );
  };
  // Grows the heap once instead of often, so that only this place can fail.
  heap.giveBack(take(heapBytes(layout)));
  const pool = take(Math.max(layout.kvCache, layout.staging));
  const states = take(layout.states);
  const workspace = takeWorkspace(plan, options, { pool, states }, take);
  const weights = loadWeights(engine, heap, pool, take);
  const relative = new RelativeTables(plan, options, heap, workspace.relative);
  return new WasmRunner({ plan, options, heap, weights, workspace, layout, relative });
};

function checkOptions({ kvDtype, tokensPerBlock }: Parameters<OpenRunner>[1]): void {
  if (kvDtype !== 'f32') {
    throw retell(
      new Error(),
      says`The wasm executor keeps the KV cache as f32, but ${option('kvDtype')} is ${kvDtype}.`,
    );
  }
  if (tokensPerBlock % 8 !== 0) {
    throw retell(
      new Error(),
      says`The wasm executor needs ${option('tokensPerBlock')} to be a multiple of 8, but it is ${tokensPerBlock}.`,
    );
  }
}
