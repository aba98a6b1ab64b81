import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { buildEngine } from '../../engine/building/builder.js';
import { type Engine, loadableEngine } from '../../engine/building/engine.js';
import { cachedEngine } from '../../engine/building/engine-cache.js';
import type { EngineTensor } from '../../engine/directory/engine-directory.js';
import { NativeExecutor } from '../../engine/executors/native/native-executor.js';
import { WeightReader } from '../../engine/executors/portable/weights/weight-reader.js';
import { makeStepBatch } from '../../tools/support/step-batch.js';
import { expertsTensors, tensorsByExpert, writeExpertsGguf } from './experts-model.js';
import { executorOptions } from './native-options.js';
import {
  LIKE_Q4_K_M,
  OF_GROUPS_AND_TABLES,
  OF_MANY_TYPES,
  ofOneType,
  writeSuperblockModel,
} from './superblock-model.js';

/** GGUFs of every type, and engines of them: in the cache, where matrices stay in the GGUF, and with all weights of their own. */
export class SourceEngines {
  readonly #root = mkdtempSync(join(tmpdir(), 'skein-source-'));
  #count = 0;
  #models: readonly [string, string][] | null = null;
  /** The model like Q4_K_M. */
  readonly mixed = writeSuperblockModel(join(this.#root, 'q4-k-m.gguf'), LIKE_Q4_K_M);

  /** A path that nothing is at. */
  fresh(): string {
    return join(this.#root, `folder-${this.#count++}`);
  }

  /** Models with every type that a tensor can have, by what they are like. They are written once. */
  models(): readonly [string, string][] {
    this.#models ??= this.#writeModels();
    return this.#models;
  }

  #writeModels(): [string, string][] {
    const write = (name: string, ...rest: [typeof LIKE_Q4_K_M, string?, number?]) =>
      writeSuperblockModel(join(this.#root, `${name}.gguf`), ...rest);
    return [
      ['like Q4_K_M', this.mixed],
      ['of many types', write('many', OF_MANY_TYPES)],
      ['in parts', this.split()],
      ['of groups and tables', write('tables', OF_GROUPS_AND_TABLES, 'Q5_0')],
      ['of experts', writeExpertsGguf(join(this.#root, 'experts.gguf'))],
      [
        'with a tensor for each expert',
        writeExpertsGguf(join(this.#root, 'each-expert.gguf'), {
          architecture: 'llama',
          tensors: tensorsByExpert(expertsTensors('llama')),
        }),
      ],
      ...['Q4_0', 'Q4_1', 'Q8_0', 'Q3_K', 'BF16', 'F16', 'F32'].map((type): [string, string] => [
        type,
        write(type, ofOneType(type), type === 'Q3_K' ? 'Q6_K' : type),
      ]),
    ];
  }

  /** The first of three parts of the model like Q4_K_M, in a folder of their own. */
  split(): string {
    const folder = this.fresh();
    mkdirSync(folder);
    return writeSuperblockModel(join(folder, 'split.gguf'), LIKE_Q4_K_M, undefined, 3);
  }

  /** A copy of the model like Q4_K_M in a folder of its own, with the times of the first. */
  copyOfModel(): string {
    const file = join(this.fresh(), basename(this.mixed));
    mkdirSync(dirname(file));
    copyFileSync(this.mixed, file);
    const { atime, mtime } = statSync(this.mixed);
    utimesSync(file, atime, mtime);
    return file;
  }

  cached(model: string, cacheDirectory = this.fresh(), precision = 'auto'): Promise<Engine> {
    return cachedEngine({ model, precision, cacheDirectory });
  }

  complete(model: string, outputDirectory = this.fresh(), precision = 'auto'): Promise<Engine> {
    return buildEngine({ model, precision, outputDirectory });
  }

  remove(): void {
    rmSync(this.#root, { recursive: true, force: true });
  }
}

const inverseFrequencies = Float32Array.from({ length: 64 }, (_, i) => 10_000 ** (-i / 64));
/** A prompt of which every token has logits. */
export const promptBatch = makeStepBatch(
  [{ tokens: Array.from({ length: 20 }, (_, i) => (i * 5) % 6), cached: 0, blocks: [0, 1], logits: 'all' }],
  { tokensPerBlock: 16, inverseFrequencies },
);

/** The logits of every token of a prompt. */
export function logitsOf(engine: Engine, changes: Parameters<typeof executorOptions>[0] = {}): Float32Array {
  const executor = new NativeExecutor(loadableEngine(engine), executorOptions(changes));
  const logits = executor.forward(promptBatch).slice();
  executor.close();
  return logits;
}

export const packedFiles = ({ directory }: Engine): string[] =>
  readdirSync(directory)
    .filter((name) => name.startsWith('packed-'))
    .map((name) => join(directory, name));

/** The panels of all packed files, without the headers. */
export const panelsOf = (engine: Engine): Buffer[] =>
  packedFiles(engine).map((file) => readFileSync(file).subarray(4096));

/** Flips a bit in the middle of a tensor of the model's file, whose time stays what it was. */
export function flipInSource(model: string, tensor: EngineTensor): void {
  const bytes = readFileSync(model);
  const { offset, byteLength } = tensor.pieces![0]!;
  bytes[offset + (byteLength >> 1)]! ^= 0x10;
  const { atime, mtime } = statSync(model);
  writeFileSync(model, bytes);
  utimesSync(model, atime, mtime);
}

/** The bytes of every weight as float32, as executors without panels read them. */
export function everyWeight(engine: Engine): Map<string, Buffer> {
  const reader = new WeightReader(loadableEngine(engine));
  const names = engine.plan.weights.map(({ name }) => name);
  const values = new Map(names.map((name) => [name, Buffer.from(reader.read(name).buffer)]));
  reader.close();
  return values;
}
