import { describe, expect, it } from 'vitest';
import type { KvCacheConfig, OptionalParams } from '../../../callbacks/gpt-manager-options.js';
import {
  checkOptionalParams,
  kvBlocks,
  resolveLimits,
  secondaryBlocks,
} from '../../../engine/options/engine-limits.js';

const ENGINE = { maxInputLen: 1000, maxSeqLen: 1024 };

describe('checkOptionalParams', () => {
  it.each([12, 4, 0, -8, 2.5])('refuses %s tokens per block', (tokensPerBlock) => {
    const sentence = `tokensPerBlock is ${tokensPerBlock}; it must be one of 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096.`;
    expect(() => checkOptionalParams({ tokensPerBlock }, 'InflightFusedBatching')).toThrow(sentence);
  });

  it('refuses a bound on inter-token latency where prompts do not run in chunks', () => {
    const bound = { maxInterTokenLatencyMs: 50 };
    const refusal = 'maxInterTokenLatencyMs is refused: only prompts that run in chunks';
    expect(() => checkOptionalParams(bound, 'InflightFusedBatching')).toThrow(refusal);
    expect(() => checkOptionalParams(bound, 'V1')).toThrow(refusal);
    const chunked = { ...bound, enableChunkedContext: true };
    expect(() => checkOptionalParams(chunked, 'InflightFusedBatching')).not.toThrow();
    expect(() => checkOptionalParams({ ...chunked, maxInterTokenLatencyMs: 0 }, 'InflightBatching')).toThrow(
      'maxInterTokenLatencyMs is 0',
    );
  });

  it('refuses an executor that there is not, and one beside an executor of the user', () => {
    const check = (params: object) => () => checkOptionalParams(params, 'InflightFusedBatching');
    expect(check({ executor: 'gpu' })).toThrow(
      'executor is gpu; it must be one of auto, native, tensorflow, wasm.',
    );
    const executorModule = 'file:///own.js';
    expect(check({ executor: 'native', executorModule })).toThrow(
      'executor is refused: executorModule brings an executor of its own; leave one of them out.',
    );
    expect(check({ executor: 'auto', executorModule })).not.toThrow();
    expect(check({ executor: 'native' })).not.toThrow();
  });

  it('refuses a draft model by name where it would not work', () => {
    const draftEnginePath = '/engines/small';
    const refused = /^draftEnginePath is refused: /;
    expect(() => checkOptionalParams({ draftEnginePath }, 'InflightFusedBatching')).not.toThrow();
    expect(() => checkOptionalParams({ draftEnginePath }, 'V1')).toThrow(refused);
    expect(() =>
      checkOptionalParams({ draftEnginePath, enableTrtOverlap: true }, 'InflightFusedBatching'),
    ).toThrow(refused);
    expect(() =>
      checkOptionalParams({ draftEnginePath, executorModule: 'file:///own.js' }, 'InflightFusedBatching'),
    ).toThrow(refused);
    expect(() => checkOptionalParams({ draftEnginePath: '' }, 'InflightFusedBatching')).toThrow(
      'draftEnginePath is empty; it must be the path of an engine directory.',
    );
  });

  it('refuses a limit of a folder for cached blocks without the folder, and one of no bytes', () => {
    const check = (kvCacheConfig: object) => () =>
      checkOptionalParams(
        { kvCacheConfig: { enableBlockReuse: true, ...kvCacheConfig } },
        'InflightFusedBatching',
      );
    expect(check({ diskCacheSize: 2 ** 30 })).toThrow(
      'kvCacheConfig.diskCacheSize is refused: without diskCachePath nothing is kept in files; give it too or leave this out.',
    );
    expect(check({ diskCachePath: '/kv', diskCacheSize: 0 })).toThrow(
      'kvCacheConfig.diskCacheSize is refused: 0 bytes have room for nothing; give more, or leave out diskCachePath.',
    );
    expect(check({ diskCachePath: '/kv', diskCacheSize: 2 ** 30 })).not.toThrow();
  });

  it('refuses overlap with V1 by name, and takes it with the in-flight schemes', () => {
    const overlap = { enableTrtOverlap: true };
    expect(() => checkOptionalParams(overlap, 'V1')).toThrow(
      'enableTrtOverlap is refused: V1 runs one batch in lockstep and has no second micro-batch',
    );
    expect(() => checkOptionalParams({ enableTrtOverlap: false }, 'V1')).not.toThrow();
    expect(() => checkOptionalParams(overlap, 'InflightBatching')).not.toThrow();
    expect(() => checkOptionalParams(overlap, 'InflightFusedBatching')).not.toThrow();
  });

  it('takes powers of two from 8 tokens per block on', () => {
    for (const tokensPerBlock of [8, 16, 128]) {
      expect(() => checkOptionalParams({ tokensPerBlock }, 'InflightFusedBatching')).not.toThrow();
    }
  });
});

describe('resolveLimits', () => {
  it('takes the engine as it is where nothing is asked for', () => {
    expect(resolveLimits({}, ENGINE)).toEqual({
      maxInputLen: 1000,
      maxDraftRows: 32,
      maxDraftLen: 16,
      maxSeqLen: 1024,
      maxNumSequences: 64,
      maxTopLogProbs: null,
      maxReturnedLogitsBytes: 512 * 2 ** 20,
      tokensPerBlock: 32,
      window: null,
      microBatch: { maxBatchSize: 64, maxNumTokens: 2048, maxSequences: 64 },
      padding: { sequences: 0, blocks: 0 },
    });
  });

  it('has shorter drafts where layers keep states, and none on an executor that does not log them', () => {
    const limits = (params: OptionalParams, states: 'logged' | 'notLogged') => {
      const { maxDraftRows, maxDraftLen } = resolveLimits(params, { ...ENGINE, states });
      return { maxDraftRows, maxDraftLen };
    };
    expect(limits({}, 'logged')).toEqual({ maxDraftRows: 32, maxDraftLen: 8 });
    expect(limits({ maxDraftLen: 12 }, 'logged')).toEqual({ maxDraftRows: 32, maxDraftLen: 12 });
    expect(limits({ maxDraftLen: 40 }, 'logged')).toEqual({ maxDraftRows: 32, maxDraftLen: 32 });
    expect(limits({}, 'notLogged')).toEqual({ maxDraftRows: 0, maxDraftLen: 0 });
    for (const [field, params] of Object.entries({
      speculate: { speculate: 'ngram' },
      draftEnginePath: { draftEnginePath: '/draft' },
    } satisfies Record<string, OptionalParams>)) {
      const message = `${field} is refused: layers of this model keep a state of each sequence, which this executor cannot take back where a draft is rejected; leave it out, or use the native executor.`;
      expect(() => limits(params, 'notLogged')).toThrow(message);
    }
  });

  it('has room for drafts of every sequence where the engine looks for them, as far as logits take no more than 64 MiB', () => {
    const rowsOf = (params: OptionalParams, vocabSize = 1000) =>
      resolveLimits(params, { ...ENGINE, config: { slidingWindow: null, vocabSize } }).maxDraftRows;
    expect(rowsOf({ speculate: 'none' })).toBe(32);
    expect(rowsOf({ speculate: 'ngram' })).toBe(256);
    expect(rowsOf({ draftEnginePath: '/draft' })).toBe(256);
    expect(rowsOf({ speculate: 'ngram', maxNumSequences: 4 })).toBe(32);
    expect(rowsOf({ speculate: 'ngram', maxNumSequences: 16 })).toBe(64);
    expect(rowsOf({ speculate: 'ngram', maxNumSequences: 500 })).toBe(256);
    expect(rowsOf({ speculate: 'ngram', maxNumTokens: 100 })).toBe(100);
    expect(rowsOf({ speculate: 'ngram' }, 151_936)).toBe(110);
    expect(rowsOf({ speculate: 'ngram' }, 10_000_000)).toBe(32);
  });

  it('lets one iteration take the longest prompt where contexts are not chunked', () => {
    const long = { maxInputLen: 8192, maxSeqLen: 8192 };
    expect(resolveLimits({}, long).microBatch.maxNumTokens).toBe(8192);
    const longest = { ...long, maxSeqLen: 2 ** 20, maxInputLen: 2 ** 20 };
    expect(resolveLimits({}, longest).microBatch.maxNumTokens).toBe(2 ** 20 - 1);
    expect(resolveLimits({ enableChunkedContext: true, tokensPerBlock: 16 }, long).microBatch).toEqual({
      maxBatchSize: 64,
      maxNumTokens: 2048,
      maxSequences: 64,
      chunking: { policy: 'FIRST_COME_FIRST_SERVED', unit: 16 },
    });
  });

  it('has room for the beams of all requests of an iteration', () => {
    const { microBatch } = resolveLimits({ maxBatchSize: 16 }, ENGINE, 'InflightFusedBatching', 4);
    expect(microBatch).toMatchObject({ maxBatchSize: 16, maxSequences: 64 });
  });

  it('gives V1 room for the padding of a whole iteration', () => {
    const { padding } = resolveLimits({ maxNumSequences: 8 }, ENGINE, 'V1');
    expect(padding).toEqual({ sequences: 8, blocks: 2048 / 32 + 2 * 8 });
  });

  it('lowers limits but never raises them', () => {
    expect(resolveLimits({ maxSeqLen: 100 }, ENGINE)).toMatchObject({ maxSeqLen: 100, maxInputLen: 100 });
    expect(() => resolveLimits({ maxSeqLen: 2000 }, ENGINE)).toThrow(/maxSeqLen is 2000; .* at most 1024/);
    expect(resolveLimits({ maxNumSequences: 4, maxBatchSize: 9 }, ENGINE).microBatch.maxBatchSize).toBe(4);
  });
});

describe('the attention window', () => {
  const mistral = { ...ENGINE, config: { slidingWindow: 256 } };
  const windowOf = (kvCacheConfig: KvCacheConfig, engine: Parameters<typeof resolveLimits>[1] = mistral) =>
    resolveLimits({ kvCacheConfig }, engine).window?.options ?? null;

  it("is the one asked for, else the model's, and none where no sequence is longer", () => {
    expect(windowOf({}, ENGINE)).toBeNull();
    expect(windowOf({ maxAttentionWindow: 100 }, ENGINE)).toEqual({
      maxAttentionWindow: 100,
      sinkTokenLength: 0,
    });
    expect(windowOf({ maxAttentionWindow: 1024 }, ENGINE)).toBeNull();
    expect(windowOf({})).toEqual({ maxAttentionWindow: 256, sinkTokenLength: 0 });
    expect(windowOf({ sinkTokenLength: 4 })).toEqual({ maxAttentionWindow: 256, sinkTokenLength: 4 });
    expect(windowOf({ maxAttentionWindow: 100, sinkTokenLength: 4 })).toEqual({
      maxAttentionWindow: 100,
      sinkTokenLength: 4,
    });
  });

  it('is refused with the numbers', () => {
    expect(() => windowOf({ maxAttentionWindow: 300 })).toThrow(
      'kvCacheConfig.maxAttentionWindow is 300; the model attends to at most 256 tokens.',
    );
    expect(() => windowOf({ sinkTokenLength: 256 })).toThrow(/kvCacheConfig.sinkTokenLength is 256/);
    expect(() => windowOf({ sinkTokenLength: 4 }, ENGINE)).toThrow(
      'kvCacheConfig.sinkTokenLength is refused: there is no attention window for sinks to be in',
    );
    const mixed = { ...ENGINE, config: { slidingWindow: null, layerWindows: [20, null] } };
    expect(() => windowOf({ maxAttentionWindow: 64, sinkTokenLength: 4 }, mixed)).toThrow(
      'kvCacheConfig.sinkTokenLength is refused: layers of this model have windows of their own, in which there are no sinks',
    );
    expect(windowOf({ maxAttentionWindow: 64 }, mixed)).toEqual({
      maxAttentionWindow: 64,
      sinkTokenLength: 0,
    });
    expect(windowOf({}, mixed)).toBeNull();
    for (const wrong of [{ maxAttentionWindow: 0 }, { maxAttentionWindow: 1.5 }, { sinkTokenLength: -1 }]) {
      expect(() => checkOptionalParams({ kvCacheConfig: wrong }, 'V1')).toThrow(/kvCacheConfig\.\w+ is/);
    }
  });

  it('lets a pool hold sequences longer than itself', () => {
    const limits = resolveLimits({ maxNumSequences: 4, kvCacheConfig: { maxAttentionWindow: 100 } }, ENGINE);
    const budget = { limits, bytesPerBlock: 3200, available: { bytes: 1e9, from: 'the test' } };
    expect(kvBlocks({}, budget)).toBe(4 * 4);
    expect(kvBlocks({ kvCacheConfig: { maxTokens: 128 } }, budget)).toBe(4);
    expect(() => kvBlocks({ kvCacheConfig: { maxTokens: 96 } }, budget)).toThrow(
      /in a window of 100 needs 4/,
    );
  });
});

describe('kvBlocks', () => {
  const limits = resolveLimits({ maxNumSequences: 4 }, ENGINE);
  const budget = (bytes: number) => ({ limits, bytesPerBlock: 3200, available: { bytes, from: 'the test' } });

  it('takes the limits and the parameters into account', () => {
    expect(kvBlocks({}, budget(1e9))).toBe(4 * 32);
    expect(kvBlocks({ kvCacheConfig: { maxTokens: 2000 } }, budget(1e9))).toBe(63);
    expect(kvBlocks({}, budget(3200 * 80))).toBe(72);
    expect(kvBlocks({ kvCacheConfig: { freeGpuMemoryFraction: 0.5 } }, budget(3200 * 80))).toBe(40);
  });

  it('takes the memory of the padding of V1 from what is there', () => {
    const v1 = resolveLimits({ maxNumSequences: 4, maxNumTokens: 320 }, ENGINE, 'V1');
    expect(v1.padding.blocks).toBe(18);
    expect(kvBlocks({}, { ...budget(3200 * 80), limits: v1 })).toBe(Math.floor(0.9 * (80 - 18)));
  });

  it('takes the memory of the secondary pool from what is there', () => {
    const params = (hostCacheSize: number) => ({ kvCacheConfig: { enableBlockReuse: true, hostCacheSize } });
    expect(secondaryBlocks(params(20 * 3200 + 3199), 3200)).toBe(20);
    expect(kvBlocks(params(20 * 3200 + 3199), budget(3200 * 80))).toBe(Math.floor(0.9 * 60));
    expect(secondaryBlocks({}, 3200)).toBe(0);
    expect(secondaryBlocks(params(0), 3200)).toBe(0);
    expect(() => secondaryBlocks(params(3199), 3200)).toThrow(
      'kvCacheConfig.hostCacheSize is 3199; one KV cache block takes 3200 bytes.',
    );
    expect(() => kvBlocks(params(70 * 3200), budget(3200 * 80))).toThrow(
      /9 fit into 0.9 of .*\(the test, less 224000 bytes of hostCacheSize\)/,
    );
  });

  it('says with the numbers that not even one sequence fits', () => {
    expect(() => kvBlocks({ kvCacheConfig: { maxTokens: 500 } }, budget(1e9))).toThrow(
      /maxSeqLen = 1024 tokens needs 32 .*maxTokens = 500 allows 16/,
    );
    expect(() => kvBlocks({}, budget(1000))).toThrow(/0 fit into 0.9 of the 0.0 MiB .*\(the test\)/);
  });
});
