import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { openEngine } from '../../../engine/building/engine.js';
import type { LoadedExecutor } from '../../../engine/executors/loaded-executor.js';
import { storedWeightBytes } from '../../../engine/executors/memory-budget.js';
import { loadExecutor } from '../../../engine/worker/load-executor.js';
import { kvBytesPerBlock } from '../../../kvcache/kv-cache-size.js';
import { TestEngines, tinyModelPath } from '../../../tools/support/test-engine.js';
import { temporaryFolder } from '../../support/fresh-folders.js';

const engines = new TestEngines();
const folder = temporaryFolder('skein-draft');
afterAll(() => engines.remove());

const MODEL_TYPE = 'InflightFusedBatching';
const SIZES = { maxSeqLen: 64, threads: 1, tokensPerBlock: 16, maxNumTokens: 64 };

async function load(variant: string, draft: string, bytes = 2 ** 40): Promise<LoadedExecutor> {
  const { directory: enginePath } = await engines.get(tinyModelPath(variant), 'f32');
  const params = { ...SIZES, draftEnginePath: draft };
  return loadExecutor({ enginePath, params, modelType: MODEL_TYPE }, () => ({ bytes, from: 'the test' }));
}

function close({ executor, draft }: LoadedExecutor): void {
  draft?.executor.close();
  executor.close();
}

describe('the engine of a draft model', () => {
  it('has as many blocks as the engine itself, out of the same memory', async () => {
    const target = await engines.get(tinyModelPath('gqa'), 'f32');
    const draft = await engines.get(tinyModelPath('bias'), 'bf16');
    const wide = await load('gqa', draft.directory);
    const taken = [
      [target, wide.executor],
      [draft, wide.draft!.executor],
    ] as const;
    let loadedBytes = 0;
    let perBlock = 0;
    for (const [engine, executor] of taken) {
      const { weightBytes, workspaceBytes } = executor.memory();
      const { tensors } = openEngine(engine.directory).manifest;
      loadedBytes += weightBytes + workspaceBytes + storedWeightBytes(engine.plan, tensors);
      perBlock += kvBytesPerBlock(engine.plan.caches, 16, 'f32');
    }
    close(wide);
    const loaded = await load('gqa', draft.directory, loadedBytes + 40 * perBlock);
    expect(loaded.executor.options.numBlocks).toBe(36);
    expect(loaded.draft!.executor.options.numBlocks).toBe(36);
    close(loaded);
  });

  it('must have a vocabulary of the same size', async () => {
    const { directory } = await engines.get(tinyModelPath('wide-head'), 'f32');
    await expect(load('gqa', directory)).rejects.toThrow(
      /^draftEnginePath \S+ cannot draft for \S+: its vocabulary has 323 tokens and that of the model 320; both need the same tokenizer\.$/,
    );
  });

  it('must mean the same by each token, and may differ in what changes none', async () => {
    const { directory } = await engines.get(tinyModelPath('gqa'), 'f32');
    const changed = join(folder, 'changed');
    cpSync(directory, changed, { recursive: true });
    const file = join(changed, 'tokenizer.json');
    const tokenizer = JSON.parse(readFileSync(file, 'utf8'));
    writeFileSync(file, JSON.stringify({ ...tokenizer, padding: null }));
    close(await load('gqa', changed));
    const [token, id] = Object.entries(tokenizer.model.vocab).at(-1)!;
    delete tokenizer.model.vocab[token];
    tokenizer.model.vocab['another one'] = id;
    writeFileSync(file, JSON.stringify(tokenizer));
    await expect(load('gqa', changed)).rejects.toThrow(
      `token ${id} is "another one" there and ${JSON.stringify(token)} here; both need the same tokenizer.`,
    );
  });

  it('is named where there is none', async () => {
    await expect(load('gqa', join(folder, 'nothing'))).rejects.toThrow(/nothing\/engine\.json: no such file/);
  });
});
