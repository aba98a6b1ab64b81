import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { OptionalParams } from '../../../callbacks/gpt-manager-options.js';
import { buildEngine } from '../../../engine/building/builder.js';
import { cachedEngine } from '../../../engine/building/engine-cache.js';
import { engineDigest } from '../../../engine/building/engine-digest.js';
import { NativeExecutor } from '../../../engine/executors/native/native-executor.js';
import { tensorflowKind } from '../../../engine/kinds/tensorflow-kind.js';
import { wasmKind } from '../../../engine/kinds/wasm-kind.js';
import { checkOptionalParams } from '../../../engine/options/engine-limits.js';
import { headRows } from '../../../engine/speculation/hidden-rows.js';
import { loadExecutor, memoryNeeds } from '../../../engine/worker/load-executor.js';
import { makeStepBatch } from '../../../tools/support/step-batch.js';
import {
  engineOptions,
  nativeEngine,
  TestEngines,
  tinyModelPath,
} from '../../../tools/support/test-engine.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { MADE_HEADS, madeHeadPath } from '../../support/made-heads.js';
import { MADE_MODELS, madeModelPath, writeMadeModel } from '../../support/made-models.js';

const engines = new TestEngines();
const folder = temporaryFolder('skein-load-head');
afterAll(() => engines.remove());

const SIZES = { maxSeqLen: 64, threads: 1, tokensPerBlock: 16, maxNumTokens: 64, maxNumSequences: 6 };
const withHead = () => engines.get(madeHeadPath(folder, 'qwen3.5'), 'f32', true);
const without = () => engines.get(madeHeadPath(folder, 'qwen3.5'), 'f32');

async function requestOf(params: OptionalParams, engine = withHead()) {
  const { directory: enginePath } = await engine;
  return { enginePath, params: { ...SIZES, ...params }, modelType: 'InflightFusedBatching' as const };
}

describe("a model's head", () => {
  it('drafts over the weights of the model, and its rows are counted', async () => {
    const loaded = await loadExecutor(await requestOf({ speculate: 'mtp' }));
    const { width, most } = loaded.draft!.head!;
    expect(width).toBe(32);
    expect(most).toBe(headRows({ maxNumSequences: 6, maxDraftLen: 8 }));
    expect(loaded.draft!.executor.options).toMatchObject({
      maxNumSequences: 6,
      numBlocks: loaded.executor.options.numBlocks,
    });
    const fixedOf = async (params: OptionalParams) => (await memoryNeeds(await requestOf(params))).fixed;
    const [plain, drafting] = [await fixedOf({ maxDraftLen: 8 }), await fixedOf({ speculate: 'mtp' })];
    expect(drafting.packedWeights).toBe(plain.packedWeights);
    expect(drafting.storedWeights).toBe(plain.storedWeights);
    const rows = most * 6 + 64 + 2 * loaded.draft!.executor.options.maxNumTokens;
    const own = loaded.draft!.executor.memory().workspaceBytes;
    expect(drafting.workspace - plain.workspace).toBe(4 * width * rows + own);
    loaded.draft!.executor.close();
    loaded.executor.close();
  });

  it('maps the file of packed weights that its model has', async () => {
    const engine = await withHead();
    const packed = () => readdirSync(engine.directory).filter((name) => name.startsWith('packed-'));
    const plan = engine.plan.head!;
    const open = (own: typeof plan) =>
      new NativeExecutor({ ...nativeEngine(engine), plan: own }, engineOptions({ ...engine, plan: own }, {}));
    const model = open(engine.plan);
    expect(packed()).toHaveLength(1);
    const { ino, mtimeMs } = statSync(join(engine.directory, packed()[0]!));
    const head = open(plan);
    expect(packed()).toHaveLength(1);
    expect(statSync(join(engine.directory, packed()[0]!))).toMatchObject({ ino, mtimeMs });
    head.close();
    model.close();
  });

  it('needs rows, and room for those that are kept', async () => {
    const engine = await withHead();
    const plan = engine.plan.head!;
    const head = new NativeExecutor(
      { ...nativeEngine(engine), plan },
      engineOptions({ ...engine, plan }, {}),
    );
    const batch = makeStepBatch([{ tokens: [4, 5, 6], cached: 0, blocks: [0] }], {
      tokensPerBlock: 32,
      inverseFrequencies: new Float32Array(4),
      newBlocks: [0],
    });
    expect(() => head.forward(batch)).toThrow('rowInputs has 0 entries, but 96 are needed.');
    const rowInputs = new Float32Array(96);
    expect(() => head.forward({ ...batch, rowInputs, keptRows: new Float32Array(95) })).toThrow(
      'keptRows has 95 entries, but 96 are needed.',
    );
    expect(head.forward({ ...batch, rowInputs, keptRows: null })).toHaveLength(128);
    head.close();
  });

  it('is in an engine of its own in the cache', async () => {
    const model = madeHeadPath(folder, 'qwen3.5');
    const cached = (draftHead: boolean) =>
      cachedEngine({ model, precision: 'f32', draftHead, cacheDirectory: join(folder, 'cache'), threads: 1 });
    const [bare, whole] = [await cached(false), await cached(true)];
    expect(bare.plan.head).toBeUndefined();
    expect(whole.plan.head).toBeDefined();
    expect(whole.directory).toContain('-f32-mtp-v');
    // It changes no answer, so both are the same engine when compared.
    expect(engineDigest(whole)).toBe(engineDigest(bare));
    // Nothing of a plan is another one where no head is asked for.
    expect(bare.plan).toEqual((await engines.get(madeModelPath(folder, 'qwen3.5'), 'f32')).plan);
  });
});

describe('a head is refused', () => {
  it.each([
    [{ executor: 'wasm' }, /hands from a model to its head/],
    [{ executorModule: 'own.js' }, /hands from a model to its head/],
    [{ enableTrtOverlap: true }, /at the same time as the other micro-batch/],
    [{ draftEnginePath: 'draft' }, /drafts in the place of the model's head/],
    [{ tensorParallelSize: 2 }, /ranks do not run a model's head/],
    [{ panels: false }, /a GGUF is computed with as it lies/],
  ] as [OptionalParams, RegExp][])('with %j', (params, why) => {
    expect(() => checkOptionalParams({ speculate: 'mtp', ...params }, 'InflightFusedBatching')).toThrow(why);
  });

  it('with V1', () => {
    expect(() => checkOptionalParams({ speculate: 'mtp' }, 'V1')).toThrow(/V1 draws one token a step/);
  });

  it('where the engine was built without it', async () => {
    const request = await requestOf({ speculate: 'mtp' }, without());
    await expect(loadExecutor(request)).rejects.toThrow(
      `${request.enginePath}: has no head that guesses tokens, which speculation by mtp needs; where its model has one, skein build --draft-head`,
    );
  });

  it('by executors that hand over no rows', async () => {
    const { plan } = await withHead();
    for (const { name, supports } of [wasmKind, tensorflowKind])
      expect(supports(plan.head!)).toBe(
        `The ${name} executor hands no rows from a model to its head that guesses tokens; the native executor runs such models.`,
      );
  });

  it.each([
    ['a model without one', () => madeModelPath(folder, 'qwen3.5')],
    ['a family without any', () => tinyModelPath('gqa')],
    ['a GGUF of such a family', () => tinyModelPath('gguf')],
  ])('where there is none: %s', async (_, pathOf) => {
    const model = pathOf();
    const build = buildEngine({
      model,
      outputDirectory: join(folder, 'none'),
      precision: 'f32',
      draftHead: true,
    });
    await expect(build).rejects.toThrow(
      `${model}: has no head that guesses tokens (mtp.* in safetensors, nextn in a GGUF, of Qwen3.5 and Qwen3-Next), which speculate mtp drafts with; leave it out.`,
    );
  });

  it('with a second layer, and with a tensor of another shape', async () => {
    const made = MADE_MODELS.find(({ name }) => name === 'qwen3.5')!;
    const head = MADE_HEADS.find(({ name }) => name === 'qwen3.5')!;
    const build = (name: string, tensors: typeof head.tensors) =>
      buildEngine({
        model: writeMadeModel(join(folder, name), { ...made, tensors: [...made.tensors, ...tensors] }),
        outputDirectory: join(folder, `${name}-engine`),
        precision: 'f32',
        draftHead: true,
      });
    const second: typeof head.tensors = [
      ...head.tensors,
      ['mtp.layers.1.input_layernorm.weight', [32], 0, 1],
    ];
    await expect(build('second', second)).rejects.toThrow(
      /tensor mtp\.layers\.1\.input_layernorm\.weight is of a second layer of the head/,
    );
    const narrow = head.tensors.map((tensor): (typeof head.tensors)[number] =>
      tensor[0] === 'mtp.fc.weight' ? ['mtp.fc.weight', [32, 32], 0, 1] : tensor,
    );
    await expect(build('narrow', narrow)).rejects.toThrow(/tensor mtp\.fc\.weight .*32, 64/);
    const lacking = head.tensors.filter(([name]) => !name.endsWith('k_norm.weight'));
    await expect(build('lacking', lacking)).rejects.toThrow(
      /tensor model\.layers\.4\.self_attn\.k_norm\.weight that the configuration calls for is missing/,
    );
  });
});
