import { afterAll, describe, expect, it } from 'vitest';
import { chunkMsText } from '../../../callbacks/options/words.js';
import { Skein } from '../../../dist/src/index.js';
import { checkOptionalParams } from '../../../engine/options/engine-limits.js';
import { chunkMsOn } from '../../../engine/worker/create-loop.js';
import { TestEngines, tinyModelPath } from '../../../tools/support/test-engine.js';

const engines = new TestEngines();
afterAll(() => engines.remove());

describe('chunkMsOn', () => {
  it('tells what suits an executor where nothing else is asked for', () => {
    const most = ['native', 'tensorflow', 'wasm'].map((name) => chunkMsOn(name, 'auto')?.most);
    expect(most).toEqual([75, 100, 200]);
    for (const name of ['native', 'fake', 'toString']) {
      expect(chunkMsOn(name, 'auto')).toEqual({ least: 30, most: 75 });
    }
  });

  it('keeps a bound that was given, and none', () => {
    expect(chunkMsOn('wasm', 7)).toEqual({ least: 7, most: 7 });
    expect(chunkMsOn('wasm', undefined)).toBeUndefined();
  });

  it('is told in the table of options', () => {
    expect(chunkMsText()).toBe('30 to 75; tensorflow 100; wasm 200');
  });
});

describe('a loaded model', () => {
  it.each([
    ['native', {}, 75],
    ['wasm', {}, 200],
    ['wasm', { maxChunkMs: 30 }, 30],
    ['wasm', { chunkedPrefill: false }, null],
  ] as const)('on %s with %o bounds chunks by %s ms', async (executor, options, ms) => {
    const { directory } = await engines.get(tinyModelPath('gqa'), 'f32');
    const skein = await Skein.load({
      model: directory,
      executor,
      kvCacheTokens: 256,
      chunkedPrefill: true,
      ...options,
    });
    try {
      expect(skein.info).toMatchObject({ executor, maxChunkMs: ms });
    } finally {
      await skein.close();
    }
  });
});

describe('OptionalParams.maxChunkMs', () => {
  it('is a count, or auto', () => {
    const check = (maxChunkMs: unknown) => () =>
      checkOptionalParams({ enableChunkedContext: true, maxChunkMs } as never, 'InflightFusedBatching');
    expect(check('auto')).not.toThrow();
    expect(check('soon')).toThrow('maxChunkMs');
    expect(check(0)).toThrow('maxChunkMs');
  });
});
