import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { textOf } from '../../../base/skein-error.js';
import type { OptionalParams } from '../../../callbacks/gpt-manager-options.js';
import { checkRanks } from '../../../engine/options/check-ranks.js';
import { checkOptionalParams } from '../../../engine/options/engine-limits.js';
import { loadExecutor, memoryNeeds } from '../../../engine/worker/load-executor.js';
import { withFlagNames } from '../../../src/options/flag-names.js';
import { expertReadingNote } from '../../../src/serving/model-info.js';
import { TestEngines, tinyModelPath } from '../../../tools/support/test-engine.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { madeHeadPath } from '../../support/made-heads.js';

const engines = new TestEngines();
const folder = temporaryFolder('skein-load-experts');
afterAll(() => engines.remove());

const SIZES = { maxSeqLen: 64, threads: 1, tokensPerBlock: 16, maxNumTokens: 64, maxNumSequences: 2 };

async function requestOf(params: OptionalParams, variant = 'mixtral') {
  const { directory: enginePath } = await engines.get(tinyModelPath(variant), 'f32');
  return { enginePath, params: { ...SIZES, ...params }, modelType: 'InflightFusedBatching' as const };
}

const load = async (params: OptionalParams, bytes = 2 ** 40, variant = 'mixtral') =>
  loadExecutor(await requestOf(params, variant), () => ({ bytes, from: 'the test' }));

async function bytesOf(params: OptionalParams): Promise<number> {
  const { fixed, mostBytes } = await memoryNeeds(await requestOf(params));
  return fixed.packedWeights + fixed.storedWeights + fixed.workspace + mostBytes;
}

describe('a mixture that memory has no room for', () => {
  it('is refused with the share of its experts that would fit, and runs with that share', async () => {
    const most = (await bytesOf({ expertFraction: 0.7 })) + 4096;
    expect(most).toBeLessThan(await bytesOf({}));
    const error = await load({}, most).catch((thrown: unknown) => thrown as Error);
    const fitting =
      'One sequence of .* but 0 fit .* Its experts take \\d+ MB: with expertFraction = (0\\.\\d+), memory counts for that share of them, and the others are read from the disk as tokens go to them\\.';
    const [, share] = new RegExp(fitting).exec((error as Error).message)!;
    expect(Number(share)).toBeGreaterThanOrEqual(0.65);
    expect(withFlagNames(textOf(error))).toContain(`with --expert-fraction = ${share}`);
    const { executor } = await load({ expertFraction: Number(share) }, most);
    expect(executor.expertReads!()).toMatchObject({ readBytes: 0, bytesPerSecond: null });
    expect(executor.memory().weightBytes).toBeLessThan(most);
    executor.close();
  });

  it('is told what shares out memory among several models', async () => {
    const availableMemory = { bytes: 0, from: 'the test' };
    await expect(load({ availableMemory })).rejects.toThrow('with expertFraction = less than 1, memory');
  });

  it('is refused with its size alone where no share of its experts fits', async () => {
    await expect(load({}, 1000)).rejects.toThrow(/Its experts take \d+ MB\.$/);
  });
});

describe('the share of experts that memory is counted for', () => {
  it('has room for the experts of a layer', async () => {
    await expect(load({ expertFraction: 0.01 })).rejects.toThrow(
      /^expertFraction is 0\.01, which is \d+ MB of \d+ MB of experts; those of one layer, which a prompt reads together, take \d+ MB, so at least 0\.\d+ is needed\.$/,
    );
  });

  it('changes nothing of a model without experts', async () => {
    const { executor } = await load({ expertFraction: 0.1 }, 2 ** 40, 'gqa');
    expect(executor.expertReads!()).toBeNull();
    executor.close();
  });

  it('is of the native executor in one process', () => {
    const params = { expertFraction: 0.5, executor: 'wasm' } as const;
    expect(() => checkOptionalParams(params, 'InflightFusedBatching')).toThrow(
      'expertFraction is refused: the wasm executor has no use for it, since it holds all weights in memory',
    );
    expect(() => checkRanks({ optionalParams: { expertFraction: 0.5, pipelineParallelSize: 2 } })).toThrow(
      'expertFraction is 0.5, so one process reads experts from the disk',
    );
  });
});

it("a model's head reads its experts from the disk too, from the packed file of both", async () => {
  const { directory: enginePath } = await engines.get(madeHeadPath(folder, 'qwen3.5-moe'), 'f32', true);
  const params = { ...SIZES, speculate: 'mtp', expertFraction: 0.5 } as const;
  const made: number[] = [];
  for (let start = 0; start < 2; start++) {
    const { executor, draft } = await loadExecutor({
      enginePath,
      params,
      modelType: 'InflightFusedBatching',
    });
    for (const one of [executor, draft!.executor]) {
      const { bytes, countedBytes } = one.expertReads!()!;
      expect(bytes).toBeGreaterThan(0);
      expect(countedBytes).toBe(Math.ceil(bytes / 2));
      one.close();
    }
    const files = readdirSync(enginePath).filter((name) => name.startsWith('packed-'));
    expect(files).toHaveLength(1);
    made.push(statSync(join(enginePath, files[0]!)).ino);
  }
  expect(made[1]).toBe(made[0]);
});

it('the speed to be expected is told in a sentence', () => {
  const reading = { bytes: 6e9, countedBytes: 1.2e9, bytesPerToken: 3.6e8, bytesPerSecond: 9e8 };
  expect(expertReadingNote(reading)).toBe(
    'Experts are read from the disk: 6000 MB, of which memory is counted for 1200 MB; 360 MB a token at most, at 900 MB/s (measured), so at most 2.5 tokens/s for a sequence whose experts are not in memory.',
  );
  expect(expertReadingNote({ ...reading, bytesPerSecond: null })).toContain(
    'at 1000 MB/s (assumed), so at most 2.8 tokens/s',
  );
});
