import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { buildEngine } from '../../../engine/building/builder.js';
import { type Engine, loadableEngine } from '../../../engine/building/engine.js';
import { engineToLoad } from '../../../engine/building/engine-to-load.js';
import { openStoredEngine, ROW_TYPES } from '../../../engine/building/stored-engine.js';
import { NativeExecutor } from '../../../engine/executors/native/native-executor.js';
import { nativeKind } from '../../../engine/kinds/native-kind.js';
import { makeStepBatch } from '../../../tools/support/step-batch.js';
import { executorOptions, instructionSets } from '../../support/native-options.js';
import { logitsOf, promptBatch, SourceEngines } from '../../support/source-engines.js';
import { OF_GRIDS, ofOneType, writeSuperblockModel } from '../../support/superblock-model.js';
import { writeTinyModel } from '../../support/tiny-checkpoint.js';

const engines = new SourceEngines();
afterAll(() => engines.remove());

/** An engine with the numbers of the file, packed. */
const packed = (model: string): Promise<Engine> =>
  buildEngine({ model, precision: 'stored', outputPrecision: 'stored', outputDirectory: engines.fresh() });

describe('a GGUF that is computed with as it lies', () => {
  it.each(engines.models())('%s: its answers are those of its panels, bit for bit', async (_, model) => {
    const stored = openStoredEngine(model);
    const engine = await packed(model);
    for (const instructionSet of instructionSets)
      expect(logitsOf(stored, { instructionSet })).toEqual(logitsOf(engine, { instructionSet }));
  });

  it('has the same answers on any number of threads, and for a token alone', () => {
    const stored = openStoredEngine(engines.mixed);
    const all = logitsOf(stored);
    for (const threads of [1, 3, 5]) expect(logitsOf(stored, { threads })).toEqual(all);
    const executor = new NativeExecutor(loadableEngine(stored), executorOptions());
    const { vocabSize } = stored.plan;
    const prompt = Array.from({ length: 20 }, (_, i) => (i * 5) % 6);
    const frequencies = Float32Array.from({ length: 64 }, (_, i) => 10_000 ** (-i / 64));
    for (let token = 0; token < 20; token++) {
      const batch = makeStepBatch(
        [{ tokens: prompt.slice(0, token + 1), cached: token, blocks: [0, 1], logits: 'all' }],
        { tokensPerBlock: 16, inverseFrequencies: frequencies },
      );
      const own = executor.forward(batch);
      expect(own).toEqual(all.subarray(token * vocabSize, (token + 1) * vocabSize));
    }
    executor.close();
  });

  it('writes nothing, and takes no memory for weights but for norms', async () => {
    const folder = engines.fresh();
    mkdirSync(folder);
    const model = join(folder, 'model.gguf');
    copyFileSync(engines.mixed, model);
    chmodSync(folder, 0o555);
    const stored = await engineToLoad(model, false);
    const pieces = stored.manifest.tensors.flatMap((tensor) => tensor.pieces ?? []);
    const mapped = pieces.reduce((sum, { byteLength }) => sum + byteLength, 0);
    expect(stored.held!.length).toBeLessThan(0.01 * statSync(model).size);
    const executor = new NativeExecutor(loadableEngine(stored), executorOptions());
    executor.forward(promptBatch);
    expect(executor.memory().weightBytes).toBe(mapped);
    expect(mapped).toBeLessThan(statSync(model).size);
    executor.close();
    const { fixed } = await nativeKind.measure(loadableEngine(stored), executorOptions());
    expect(fixed).toMatchObject({ packedWeights: mapped, storedWeights: stored.held!.length });
    expect(readdirSync(folder)).toEqual(['model.gguf']);
    chmodSync(folder, 0o755);
  });

  it('is opened by its folder, and by the first of its parts', () => {
    const first = engines.split();
    const all = logitsOf(openStoredEngine(engines.mixed));
    expect(logitsOf(openStoredEngine(first))).toEqual(all);
    const byFolder = openStoredEngine(dirname(first));
    expect(byFolder.directory).toBe(first);
    expect(byFolder.manifest.sourceFile!.otherParts).toHaveLength(2);
  });
});

describe('the types of rows that are computed with as they lie', () => {
  it('are those of the kernels', () => {
    const header = readFileSync('engine/executors/native/kernels/kernels.h', 'utf8');
    const names = [...header.matchAll(/\{StoredType::k\w+, "(\w+)",/g)].map((match) => match[1]);
    expect(names.length).toBeGreaterThan(10);
    expect([...ROW_TYPES]).toEqual(names);
  });
});

describe('a model that is not computed with as it lies', () => {
  const grids = writeSuperblockModel(`${engines.fresh()}.gguf`, OF_GRIDS);

  it('is refused by the tensor and its type', () => {
    const message =
      /tensor model\.layers\.0\.self_attn\.\w+\.weight is of type \w+, whose rows no product reads.* let panels be true/;
    expect(() => openStoredEngine(grids)).toThrow(message);
  });

  it('is refused where it is no GGUF', () => {
    const folder = engines.fresh();
    writeTinyModel(folder);
    expect(() => openStoredEngine(folder)).toThrow('only a GGUF is computed with as it lies');
  });

  it('is refused where its file is cut off, or became so since it was opened', () => {
    const model = engines.copyOfModel();
    const stored = openStoredEngine(model);
    truncateSync(model, statSync(model).size - 1000);
    expect(() => openStoredEngine(model)).toThrow(model);
    expect(() => new NativeExecutor(loadableEngine(stored), executorOptions())).toThrow(model);
  });

  it('is refused where its rows hold no whole blocks', () => {
    const model = writeSuperblockModel(join(dirname(engines.mixed), 'odd.gguf'), ofOneType('Q4_K'));
    const bytes = readFileSync(model);
    // The tensor's type becomes one whose blocks do not fit into the bytes that follow.
    const name = bytes.indexOf('blk.0.attn_q.weight');
    const type = name + 'blk.0.attn_q.weight'.length + 4 + 2 * 8;
    expect(bytes.readUInt32LE(type)).toBe(12);
    bytes.writeUInt32LE(14, type);
    writeFileSync(model, bytes);
    expect(() => openStoredEngine(model)).toThrow(/attn_q|q_proj/);
  });

  it('is refused by an executor that gets rows of another type than it was told', () => {
    const stored = loadableEngine(openStoredEngine(engines.mixed));
    const tensors = stored.tensors.map((tensor) => ({
      ...tensor,
      ...(tensor.jobs && { jobs: tensor.jobs.map((job) => ({ ...job, type: 'Q4_1' as const })) }),
    }));
    expect(() => new NativeExecutor({ ...stored, tensors }, executorOptions())).toThrow(engines.mixed);
  });
});
