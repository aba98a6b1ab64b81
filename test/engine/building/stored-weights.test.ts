import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { buildEngine } from '../../../engine/building/builder.js';
import { type Engine, openEngine } from '../../../engine/building/engine.js';
import { NativeExecutor } from '../../../engine/executors/native/native-executor.js';
import { WeightReader } from '../../../engine/executors/portable/weights/weight-reader.js';
import { makeStepBatch } from '../../../tools/support/step-batch.js';
import { writeExpertsGguf } from '../../support/experts-model.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { executorOptions, instructionSets } from '../../support/native-options.js';
import {
  DYNAMIC,
  LIKE_Q4_K_M,
  OF_GRIDS,
  OF_GROUPS_AND_TABLES,
  OF_MANY_TYPES,
  writeSuperblockModel,
} from '../../support/superblock-model.js';

const root = temporaryFolder('skein-stored');
let count = 0;

async function built(model: string, precision: string, outputPrecision = 'auto'): Promise<Engine> {
  const outputDirectory = join(root, `engine-${count++}`);
  return buildEngine({ model, outputDirectory, precision, outputPrecision });
}

const shared = new Map<string, Promise<Engine>>();

/** An engine of a model for all instruction sets. */
function sharedEngine(model: string, precision: string): Promise<Engine> {
  const key = `${precision} ${model}`;
  const engine = shared.get(key) ?? built(model, precision);
  shared.set(key, engine);
  return engine;
}

/** Tensors of a layer's matrices: weight, precision and rows of each. */
function matricesOf({ manifest }: Engine, layer: number): string[] {
  return manifest.tensors
    .filter(({ name, rows }) => name.startsWith(`layers.${layer}.`) && rows > 1)
    .map(({ name, dtype, rows, firstRow = 0 }) => `${name.split('.')[2]} ${dtype} ${firstRow}+${rows}`);
}

function readWeights({ manifest, plan, weightsFile }: Engine): Map<string, Float32Array> {
  const reader = new WeightReader({ plan, tensors: manifest.tensors, weightsFile });
  const values = new Map(plan.weights.map(({ name }) => [name, reader.read(name)]));
  reader.close();
  return values;
}

/** The logits of every token of a prompt. */
function logitsOf(engine: Engine, instructionSet: (typeof instructionSets)[number]): Float32Array {
  const { directory: packedFolder, manifest, ...rest } = engine;
  const native = { ...rest, tensors: manifest.tensors, packedFolder };
  const executor = new NativeExecutor(native, executorOptions({ instructionSet }));
  const inverseFrequencies = Float32Array.from({ length: 64 }, (_, i) => 10_000 ** (-i / 64));
  const tokens = Array.from({ length: 20 }, (_, i) => (i * 5) % 6);
  const logits = executor.forward(
    makeStepBatch([{ tokens, cached: 0, blocks: [0, 1], logits: 'all' }], {
      tokensPerBlock: 16,
      inverseFrequencies,
    }),
  );
  const copy = logits.slice();
  executor.close();
  return copy;
}

describe('a GGUF of types that are kept', () => {
  const file = writeSuperblockModel(join(root, 'q4-k-m.gguf'), LIKE_Q4_K_M);
  const many = writeSuperblockModel(join(root, 'many.gguf'), OF_MANY_TYPES);
  const tables = writeSuperblockModel(join(root, 'tables.gguf'), OF_GROUPS_AND_TABLES, 'Q5_0');
  const grids = writeSuperblockModel(join(root, 'grids.gguf'), OF_GRIDS);
  const dynamic = writeSuperblockModel(join(root, 'dynamic.gguf'), DYNAMIC, 'Q5_K', 2);
  const experts = writeExpertsGguf(join(root, 'experts.gguf'));

  it('is taken as it is, each part of a stack in its own type, and found again', async () => {
    const engine = await built(file, 'auto');
    expect(engine.manifest).toMatchObject({ precision: 'stored', outputPrecision: 'stored' });
    expect(matricesOf(engine, 0)).toEqual([
      'qkv q4_k 0+384',
      'qkv q6_k 384+128',
      'attentionOutput q4_k 0+256',
      'gateUp q4_k 0+1024',
      'down q6_k 0+256',
    ]);
    expect(matricesOf(engine, 1)).toEqual([
      'qkv q4_k 0+512',
      'attentionOutput q4_k 0+256',
      'gateUp q4_k 0+1024',
      'down q4_k 0+256',
    ]);
    expect(openEngine(engine.directory)).toEqual(engine);
    // Superblocks take the bytes that they take in the file.
    const matrices = engine.manifest.tensors.filter(({ rows }) => rows > 1);
    const bytes = matrices.reduce((sum, { byteLength }) => sum + byteLength, 0);
    const elements = matrices.reduce((sum, { rows, columns }) => sum + rows * columns, 0);
    expect((8 * bytes) / elements).toBeLessThan(5);
  });

  it('has gate and up in types of their own', async () => {
    expect(matricesOf(await built(many, 'auto'), 1)).toContain('gateUp q6_k 0+512');
    expect(matricesOf(await built(many, 'auto'), 1)).toContain('gateUp q4_k 512+512');
  });

  it('has three values in int4, and what has no kernel of its own in int8', async () => {
    const engine = await built(grids, 'stored');
    expect(matricesOf(engine, 0)).toEqual([
      'qkv int8 0+384',
      'qkv int4 384+128',
      'attentionOutput int8 0+256',
      'gateUp int8 0+1024',
      'down int8 0+256',
    ]);
    expect(matricesOf(engine, 1)).toContain('gateUp int4 0+1024');
    const [stored, exact] = [engine, await built(grids, 'f32')].map(readWeights);
    const [up, f32] = [stored, exact].map((weights) => weights!.get('layers.1.gateUp')!);
    expect(Buffer.from(up!.buffer).equals(Buffer.from(f32!.buffer))).toBe(true);
  });

  it('of a dynamic file keeps what a kernel reads beside int8 for the rest', async () => {
    const engine = await built(dynamic, 'auto');
    expect(engine.manifest).toMatchObject({ precision: 'stored', outputPrecision: 'stored' });
    expect(matricesOf(engine, 0)).toEqual([
      'qkv q5_k 0+256',
      'qkv int8 256+256',
      'attentionOutput iq4_xs 0+256',
      'gateUp int8 0+1024',
      'down q4_k 0+256',
    ]);
  });

  it.each([
    ['like Q4_K_M', file],
    ['of many types', many],
    ['of groups and tables', tables],
    ['of experts', experts],
  ])('has the numbers of the file, %s', async (_, model) => {
    const [stored, exact] = [readWeights(await built(model, 'auto')), readWeights(await built(model, 'f32'))];
    for (const [name, values] of stored)
      expect(Buffer.from(values.buffer).equals(Buffer.from(exact.get(name)!.buffer)), name).toBe(true);
  });

  it.each(
    instructionSets.flatMap(
      (set) =>
        [
          [set, 'like Q4_K_M', file],
          [set, 'of many types', many],
          [set, 'of groups and tables', tables],
          [set, 'of experts', experts],
          [set, 'of grids', grids],
          [set, 'in the types of a dynamic file', dynamic],
        ] as const,
    ),
  )(
    'answers on %s as its numbers in float32 do, but for the rounding of activations, %s',
    async (instructionSet, _, model) => {
      const [stored, exact] = [await sharedEngine(model, 'auto'), await sharedEngine(model, 'f32')];
      const [found, expected] = [stored, exact].map((engine) => logitsOf(engine, instructionSet));
      const norm = (values: Float32Array) => Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));
      const difference = found!.map((value, i) => value - expected![i]!);
      expect(norm(difference) / norm(expected!)).toBeLessThan(0.04);
    },
  );

  it('can still be built in one precision', async () => {
    const engine = await built(file, 'int8', 'bf16');
    const dtypes = new Set(engine.manifest.tensors.filter(({ rows }) => rows > 1).map(({ dtype }) => dtype));
    expect([...dtypes].sort()).toEqual(['bf16', 'int8']);
  });

  it('is refused where engine.json tells rows that its matrices do not have', async () => {
    const engine = await built(file, 'auto');
    const manifestFile = join(engine.directory, 'engine.json');
    const text = readFileSync(manifestFile, 'utf8');
    for (const change of [
      { firstRow: 383 },
      { rows: 127 },
      { dtype: 'q3_k' },
      { rows: -128 },
      { dtype: 'q4_k' },
    ]) {
      const manifest = JSON.parse(text);
      const part = manifest.tensors.find(({ firstRow }: { firstRow?: number }) => firstRow === 384);
      Object.assign(part, change);
      writeFileSync(manifestFile, JSON.stringify(manifest));
      expect(() => openEngine(engine.directory), JSON.stringify(change)).toThrow(
        'its tensors in engine.json are not those of the network.',
      );
    }
  });
});
