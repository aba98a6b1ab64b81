import { mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { buildEngine } from '../../../engine/building/builder.js';
import { type Engine, EngineError, layOutWeights, openEngine } from '../../../engine/building/engine.js';
import { cachedEngine } from '../../../engine/building/engine-cache.js';
import { checkWeights } from '../../../engine/building/weights-checksum.js';
import type { EngineManifest } from '../../../engine/directory/engine-directory.js';
import { planNetwork } from '../../../models/architectures/index.js';
import { LIMITS } from '../../../models/checkpoints/config-fields.js';
import { openCheckpoint } from '../../../models/checkpoints/open-checkpoint.js';
import type { ModelConfig } from '../../../models/model-config.js';
import { expertsConfig } from '../../support/experts-config.js';
import { expertsTensors, tensorsByExpert, writeExpertsGguf } from '../../support/experts-model.js';
import { freshFolders } from '../../support/fresh-folders.js';

const fresh = freshFolders('skein-expert-weights');
const model = writeExpertsGguf(join(fresh(), 'like-q4-k-m.gguf'));

/** Tensors of an engine whose names end so, as dtype and rows. */
const partsOf = ({ manifest }: Engine, name: string) =>
  manifest.tensors.filter((tensor) => tensor.name.endsWith(name)).map(({ dtype, rows }) => [dtype, rows]);

describe('an engine of a GGUF with experts', () => {
  it('has every matrix in its own type, and routers in f32', async () => {
    const engine = await buildEngine({ model, outputDirectory: join(fresh(), 'engine'), precision: 'auto' });
    expect(engine.manifest).toMatchObject({ precision: 'stored', outputPrecision: 'stored' });
    expect(partsOf(engine, 'router')).toEqual([
      ['f32', 4],
      ['f32', 4],
    ]);
    expect(partsOf(engine, '0.experts.3.gateUp')).toEqual([['q4_k', 512]]);
    expect(partsOf(engine, '1.experts.3.gateUp')).toEqual([
      ['q4_k', 256],
      ['q6_k', 256],
    ]);
    expect(partsOf(engine, '.experts.0.down')).toEqual([
      ['q6_k', 256],
      ['q4_k', 256],
    ]);
    await checkWeights(engine);
  });

  it('leaves the matrices in the GGUF, as slices of its tensors', async () => {
    const engine = await cachedEngine({ model, precision: 'auto', cacheDirectory: fresh() });
    const here = engine.manifest.tensors.filter(({ pieces }) => pieces === undefined);
    expect(here.filter(({ rows }) => rows > 1).map(({ name }) => name)).toEqual(['embedding']);
    const { tensors } = openCheckpoint(model);
    const placeOf = (name: string) => tensors.get(`model.layers.1.mlp.experts.2.${name}.weight`)!;
    const pieces = engine.manifest.tensors.find(({ name }) => name === 'layers.1.experts.2.down')!.pieces!;
    expect(pieces).toEqual([
      {
        type: 'Q4_K',
        offset: placeOf('down_proj').offset,
        byteLength: placeOf('down_proj').byteLength,
        rows: 256,
      },
    ]);
    await checkWeights(engine);
    expect(openEngine(engine.directory)).toEqual(engine);
  });

  it('has the same weights where the file has a tensor for each expert', async () => {
    const tensors = tensorsByExpert(expertsTensors('llama'));
    const files = [{ tensors }, {}].map((change, i) =>
      writeExpertsGguf(join(fresh(), `${i}.gguf`), { architecture: 'llama', ...change }),
    );
    const [single, stacked] = await Promise.all(
      files.map((file) =>
        buildEngine({ model: file, outputDirectory: join(fresh(), 'engine'), precision: 'stored' }),
      ),
    );
    expect(readFileSync(single!.weightsFile).equals(readFileSync(stacked!.weightsFile))).toBe(true);
    expect(single!.manifest.tensors).toEqual(stacked!.manifest.tensors);
  });
});

/** Sizes of Qwen3-30B-A3B, narrow: what is tested are the numbers of weights. */
const MANY: ModelConfig = expertsConfig({
  hiddenSize: 32,
  numLayers: 48,
  numHeads: 4,
  numKvHeads: 2,
  headDim: 8,
  rope: { theta: 10_000, rotaryDim: 8, scaling: { type: 'none' } },
  experts: { count: 128, used: 8, width: 32, normalize: true },
});

/** What engine.json says of an engine whose matrices lie in a GGUF as large as any, with names and numbers as long as they become. */
function manifestOf(config: ModelConfig, inSource: boolean): EngineManifest {
  const plan = planNetwork(config);
  const elsewhere = (name: string) => inSource && name.includes('.experts.');
  const { tensors, byteLength } = layOutWeights(
    plan,
    'int8',
    'int8',
    () => [],
    ({ name }) => elsewhere(name),
  );
  const piece = { type: 'Q8_0', offset: 123_456_789_012, byteLength: 1_671_168, rows: 32 } as const;
  return {
    formatVersion: inSource ? 3 : 2,
    skeinVersion: '0.0.0',
    precision: 'int8',
    outputPrecision: 'int8',
    config,
    maxInputLen: 64,
    maxSeqLen: 64,
    source: { path: '/model.gguf', format: 'gguf', hash: '0'.repeat(64) },
    weightsByteLength: byteLength,
    ...(inSource && { sourceFile: { path: '/model.gguf', byteLength: 2e11, modifiedMs: 1 } }),
    tensors: tensors.map((tensor) => ({
      ...tensor,
      checksum: 4_294_967_295,
      ...(elsewhere(tensor.name) && { pieces: Array.from({ length: tensor.rows / 32 }, () => piece) }),
    })),
  };
}

describe('engine.json of thousands of experts', () => {
  const folder = fresh();
  const written = manifestOf(MANY, false);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'weights.bin'), '');
  truncateSync(join(folder, 'weights.bin'), written.weightsByteLength);
  writeFileSync(join(folder, 'tokenizer.json'), '{}');
  const openChanged = (change: (manifest: EngineManifest) => void) => {
    const manifest = structuredClone(written);
    change(manifest);
    writeFileSync(join(folder, 'engine.json'), JSON.stringify(manifest));
    return openEngine(folder);
  };

  it('has two tensors for each, in a few megabytes, and is opened', () => {
    const experts = written.tensors.filter(({ name }) => name.includes('.experts.'));
    expect(experts).toHaveLength(2 * 48 * 128);
    const bytes = JSON.stringify(manifestOf(MANY, true), null, 1).length;
    expect(bytes).toBeGreaterThan(2e6);
    expect(bytes).toBeLessThan(5e6);
    expect(openChanged(() => {}).plan.weights).toHaveLength(written.tensors.length);
  });

  it('is no longer than what is read of one, with as many experts as there may be', () => {
    const experts = { count: LIMITS.experts, used: 8, width: 32, normalize: true };
    const config = { ...MANY, numLayers: LIMITS.allExperts / LIMITS.experts, experts };
    expect(JSON.stringify(manifestOf(config, true), null, 1).length).toBeLessThan(64 * 1024 * 1024);
  });

  it.each<[string, (manifest: EngineManifest) => void, RegExp]>([
    [
      'more experts than tensors',
      ({ config }) => (config.experts!.count = 1e9),
      /48 layers of 1000000000 experts, but only \d+ tensors/,
    ],
    [
      'a count that is none',
      ({ config }) => (config.experts!.count = null as never),
      /should have count, .*"count":null/,
    ],
    ['no experts', ({ config }) => (config.experts = null as never), /should have count, .*found null\.$/],
    ['fewer than none', ({ config }) => (config.experts!.count = -1), /should have count, .*"count":-1/],
    [
      'parts of experts',
      ({ config }) => (config.experts!.count = 12.5),
      /should have count, .*"count":12\.5/,
    ],
    ['no experts in it', ({ config }) => (config.experts = {} as never), /should have count, .*found \{\}/],
    [
      'shares of no kind',
      ({ config }) => (config.experts!.normalize = null as never),
      /normalize as true or false, found .*"normalize":null/,
    ],
    [
      'experts of other layers',
      ({ config }) => (config.experts!.layers = [true]),
      /layers of experts .* should be true or false for each of 48 layers, found \[true\]/,
    ],
    [
      'groups that do not divide them',
      ({ config }) => (config.experts!.groups = { count: 5, used: 2, top: 1 }),
      /makes no network: .*128 experts in 5 groups of one size/,
    ],
    [
      'more used ones',
      ({ config }) => (config.experts!.used = 129),
      /makes no network: .*129 of 128 experts/,
    ],
    [
      'a router in fewer bits',
      ({ tensors }) => {
        tensors.find(({ name }) => name.endsWith('.router'))!.dtype = 'int8';
      },
      /are not those of the network/,
    ],
    ['a missing tensor', ({ tensors }) => tensors.splice(5000, 1), /are not those of the network/],
    ['a tensor of no name', ({ tensors }) => (tensors[5000] = null as never), /are not those of the network/],
  ])('is refused where it tells %s', (_, change, message) => {
    expect(() => openChanged(change)).toThrow(EngineError);
    expect(() => openChanged(change)).toThrow(message);
  });
});
