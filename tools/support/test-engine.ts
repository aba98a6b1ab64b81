import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { InstructionSet } from '../../callbacks/gpt-manager-options.js';
import { buildEngine } from '../../engine/building/builder.js';
import { type Engine, loadableEngine } from '../../engine/building/engine.js';
import type { EnginePrecision, WeightPrecision } from '../../engine/directory/engine-directory.js';
import type { ExecutorOptions } from '../../engine/executors/executor.js';
import { chooseInstructionSet } from '../../engine/executors/native/instruction-set.js';
import { loadAddon } from '../../engine/executors/native/load-addon.js';
import { type NativeEngine, NativeExecutor } from '../../engine/executors/native/native-executor.js';

/** Instruction sets that this machine runs, from the slowest to the fastest. */
export const INSTRUCTION_SETS: readonly InstructionSet[] = loadAddon().supportedInstructionSets();

/** The one that runs where none is named. */
export const BEST_INSTRUCTION_SET: InstructionSet = chooseInstructionSet(
  INSTRUCTION_SETS,
  undefined,
  undefined,
);

/** True if products with bf16 weights, and attention over a bf16 cache, round their rows to bf16. */
export const multipliesPairs = (set: InstructionSet): boolean =>
  ['avx512bf16', 'amx', 'neonbf16'].includes(set);

/** Weights with the KV cache that they have by default, or those of bf16 with one in int8. */
export type Format = WeightPrecision | 'bf16 with an int8 cache';
export const INT8_CACHE = 'bf16 with an int8 cache' as const;
export const precisionOf = (format: Format): WeightPrecision => (format === INT8_CACHE ? 'bf16' : format);
export const cacheOf = (format: Format): TestExecutorOptions =>
  format === INT8_CACHE ? { kvDtype: 'int8' } : {};

/** Path of a committed tiny model: see tools/reference/tiny-models.py. */
export function tinyModelPath(variant: string): string {
  return fileURLToPath(new URL(`../../test/fixtures/tiny-${variant}`, import.meta.url));
}

/** Builds engines into a temporary folder; `remove` deletes it. */
export class TestEngines {
  readonly #folder = mkdtempSync(join(tmpdir(), 'skein-test-'));
  readonly #engines = new Map<string, Promise<Engine>>();

  /** The engine of a model in a precision, built once. @param draftHead true: with its head that guesses tokens */
  get(model: string, precision: EnginePrecision, draftHead = false): Promise<Engine> {
    const key = `${precision} ${draftHead} ${model}`;
    const known = this.#engines.get(key);
    if (known) return known;
    const outputDirectory = join(this.#folder, String(this.#engines.size));
    const engine = buildEngine({ model, outputDirectory, precision, threads: 1, draftHead });
    this.#engines.set(key, engine);
    return engine;
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Options of the executor that a test changes; the others are small and enough for a few hundred tokens. */
export type TestExecutorOptions = Partial<ExecutorOptions>;

/** A native executor on an engine. The KV cache is bf16 unless the weights are f32 or the options say otherwise. */
export function openExecutor(engine: Engine, options: TestExecutorOptions = {}): NativeExecutor {
  return new NativeExecutor(nativeEngine(engine), engineOptions(engine, options));
}

/** The part of an engine that executors take. */
export function nativeEngine(engine: Engine): NativeEngine {
  return loadableEngine(engine);
}

/** Options with which executors are opened on an engine, where a test does not say otherwise. */
export function engineOptions({ manifest, plan }: Engine, options: TestExecutorOptions): ExecutorOptions {
  const maxSeqLen = options.maxSeqLen ?? 256;
  const tokensPerBlock = options.tokensPerBlock ?? 32;
  return {
    threads: 1,
    maxNumTokens: 256,
    maxNumSequences: 1,
    maxLogitRows: 32,
    maxSeqLen,
    tokensPerBlock,
    numBlocks: Math.ceil(maxSeqLen / tokensPerBlock),
    kvDtype: manifest.precision === 'f32' ? 'f32' : 'bf16',
    ...(plan.states !== undefined && { numStateSlots: options.maxNumSequences ?? 1 }),
    ...options,
  };
}
