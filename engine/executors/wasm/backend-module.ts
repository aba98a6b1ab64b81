import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { packageRoot } from '../../../base/package-info.js';

/** Members of tfjs-backend-wasm's emscripten module that the executor uses. */
export interface BackendModule {
  readonly asm: { readonly memory?: object };
  readonly HEAPU8: Uint8Array<ArrayBuffer>;
  _malloc(bytes: number): number;
  _free(pointer: number): void;
  cwrap(name: string, result: null, parameters: string[]): (...values: unknown[]) => void;
}

type Factory = (settings: { wasmBinary: Uint8Array; onAbort(what: unknown): void }) => Promise<BackendModule>;

/**
 * The two files of @tensorflow/tfjs-backend-wasm that compute, copied by tools/build-wasm.mjs: its loader and its code with
 * SIMD. Together they are half a megabyte; the packages that they come from are 66, for browsers and for training.
 */
const FOLDER = 'dist/engine/executors/wasm';
const LOADER = 'tfjs-backend-wasm.cjs';
const CODE = 'tfjs-backend-wasm-simd.wasm';

/** Lets XNNPACK choose its number of threads; the code has none to choose from. */
const ANY_THREADS = -1;

/**
 * Opens a module with a heap of its own. tfjs-core knows nothing of it: memory is taken once, and a module
 * without references gives all of it back.
 */
export async function openBackendModule(): Promise<BackendModule> {
  const folder = join(packageRoot(), FOLDER);
  let factory: Factory;
  let wasmBinary: Uint8Array;
  try {
    factory = createRequire(import.meta.url)(join(folder, LOADER)) as Factory;
    wasmBinary = readFileSync(join(folder, CODE));
  } catch (error) {
    throw new Error(
      `The library of the wasm executor is not there (${join(folder, CODE)}); run "npm run build:ts".`,
      { cause: error },
    );
  }
  const module = await withoutListeners(
    () =>
      new Promise<BackendModule>((resolve, reject) => {
        const onAbort = (what: unknown) => reject(unusable(what));
        factory({ wasmBinary, onAbort }).then(resolve, (reason: unknown) => reject(unusable(reason)));
      }),
  );
  module.cwrap('init_with_threads_count', null, ['number'])(ANY_THREADS);
  return module;
}

const unusable = (reason: unknown) =>
  new Error(`The wasm executor's library cannot be used: ${messageOf(reason)}`);

const EVENTS = ['uncaughtException', 'unhandledRejection'] as const;

/**
 * Removes the listeners that emscripten's modules add: they rethrow uncaught errors, which would end the process. That is the
 * host's to decide.
 */
async function withoutListeners<T>(open: () => Promise<T> | T): Promise<T> {
  const before = EVENTS.map((event) => process.listeners(event as 'uncaughtException'));
  try {
    return await open();
  } finally {
    for (const [i, event] of EVENTS.entries()) {
      for (const listener of process.listeners(event as 'uncaughtException')) {
        if (!before[i]!.includes(listener)) process.removeListener(event, listener);
      }
    }
  }
}

function messageOf(reason: unknown): string {
  const { message } = (reason ?? {}) as { message?: unknown };
  return typeof message === 'string' ? message : String(reason);
}
