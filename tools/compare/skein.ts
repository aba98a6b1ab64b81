import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { packageRoot } from '../../base/package-info.js';
import type { InstructionSet } from '../../callbacks/gpt-manager-options.js';
import type { WeightPrecision } from '../../engine/directory/engine-directory.js';
import { measureCopiedContexts } from './copied-contexts.js';
import { EngineBench, type EngineRates, type ManagerClass } from './engine-bench.js';
import { medianRates, runsOf } from './runs.js';
import { hasCopiedContexts, type Shape } from './shapes.js';
import type { Side, Values } from './side.js';

/** Skein's formats of weights, from the largest. */
export const PRECISIONS: readonly WeightPrecision[] = ['f32', 'bf16', 'int8', 'int4'];
const SETTLING_MS = 500;
/** Tokens of a block of the KV cache; the default of the library. */
const TOKENS_PER_BLOCK = 32;

/** What computes: threads, and an instruction set other than the one that Skein chooses. */
export interface Computing {
  threads: number;
  instructionSet?: InstructionSet;
}

/**
 * Skein with one format of the weights: whole, with the host's callbacks, the worker and the loop. Only shapes with
 * copied or shared contexts are measured at the executor, which can copy blocks.
 *
 * @param folder where engines are built
 * @param format a precision, or precision@set: with another instruction set than the one that Skein chooses
 */
export async function skeinSide(
  folder: string,
  model: string,
  format: string,
  threads: number,
): Promise<Side<Shape>> {
  const [precision, set] = format.split('@') as [WeightPrecision, InstructionSet | undefined];
  const computing = { threads, ...(set === undefined ? {} : { instructionSet: set }) };
  const { buildEngine } = (await dist(
    'engine/building/builder.js',
  )) as typeof import('../../engine/building/builder.js');
  const engine = join(folder, precision);
  await buildEngine({ model, outputDirectory: engine, precision });
  const bytes = statSync(join(engine, 'weights.bin')).size;
  return {
    name: `skein ${format}`,
    engine: 'skein',
    format,
    bytes,
    version: skeinDigest(),
    measure: (shape) => measureEngine(engine, shape, computing),
  };
}

/** The rates of an engine that is built. */
export async function measureEngine(engine: string, shape: Shape, computing: Computing): Promise<Values> {
  if (shape.shared || hasCopiedContexts(shape)) return measureCopiedContexts(engine, shape, computing);
  const { GptManager } = (await dist('src/index.js')) as { GptManager: ManagerClass };
  const { sequences, promptTokens, generate } = shape;
  const length = promptTokens + generate;
  const bench = new EngineBench(GptManager, engine, {
    ...computing,
    maxNumSequences: sequences,
    maxSeqLen: length,
    kvCacheConfig: { maxTokens: sequences * (Math.ceil(length / TOKENS_PER_BLOCK) + 1) * TOKENS_PER_BLOCK },
  });
  try {
    await bench.ready;
    // The engine still has its pages provided after its start, as others have before theirs.
    await setTimeout(SETTLING_MS);
    await bench.measure({ sequences: 1, promptTokens: 16, generate: 4 });
    const runs: EngineRates[] = [];
    while (runs.length < runsOf(shape)) runs.push(await bench.measure(shape));
    return medianRates(runs);
  } finally {
    await bench.shutdown();
  }
}

/** The compiled package: its worker threads need JavaScript files. */
export function dist(path: string): Promise<unknown> {
  return import(new URL(`../../dist/${path}`, import.meta.url).href);
}

/**
 * A digest of the addon and the compiled package: measurements of another build are not shown next to this
 * one's.
 */
export function skeinDigest(): string {
  const hash = createHash('sha256');
  const root = packageRoot();
  hash.update(readFileSync(join(root, 'build', 'Release', 'skein.node')));
  const files = readdirSync(join(root, 'dist'), { recursive: true, encoding: 'utf8' });
  for (const file of files.filter((name) => name.endsWith('.js')).sort())
    hash.update(readFileSync(join(root, 'dist', file)));
  return hash.digest('hex').slice(0, 12);
}
