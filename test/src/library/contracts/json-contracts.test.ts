import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import {
  InProcessHost,
  type IterationStats,
  jsonFormOf,
  type KvCacheEvent,
  type TokenPiece,
  tokenRequestOf,
} from 'skein';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CONTRACTS, schemaText } from '../../../../tools/json-schemas.js';
import { fakeEngine } from '../../../support/fake-engine.js';

const ajv = new Ajv2020({ strict: true, allowUnionTypes: true });

/** Why a value is no instance of a contract's published schema; empty: it is one. */
const validators = new Map<string, ReturnType<typeof ajv.compile>>();
function faults(file: string, value: unknown): unknown[] {
  let validate = validators.get(file);
  if (validate === undefined) {
    const path = new URL(`../../../../docs/schemas/${file}`, import.meta.url);
    validate = ajv.compile(JSON.parse(readFileSync(path, 'utf8')));
    validators.set(file, validate);
  }
  // As it goes to another process.
  return validate(JSON.parse(JSON.stringify(value))) ? [] : (validate.errors ?? []);
}

const stats: IterationStats[] = [];
const events: KvCacheEvent[] = [];
let host: InProcessHost;
beforeAll(async () => {
  host = new InProcessHost({
    ...fakeEngine('', { maxSeqLen: 64, kvCacheConfig: { enableBlockReuse: true, maxTokens: 96 } }),
    onIterationStats: (one) => stats.push(one),
    onKvCacheEvents: (some) => events.push(...some),
  });
  await host.ready;
});
afterAll(() => host.close());

const range = (length: number, first: number) => Array.from({ length }, (_, i) => (first + i) % 90);

/** Fields of a request that one can have together; some are texts in JSON. */
const FULL = {
  promptTokens: range(20, 1),
  maxNewTokens: 12,
  temperature: 0.7,
  topK: 40,
  seed: '18446744073709551615',
  cacheSalt: '7',
  clientId: '9',
  logitBias: { '5': -2, '6': '-Infinity' },
  returnLogProbs: true,
  topLogProbs: 2,
  returnContextLogProbs: true,
  topContextLogProbs: 1,
  returnContextProgress: true,
  stopWords: [[98, 99]],
  badWords: [[97]],
  numSequences: 2,
  retention: { ranges: [{ start: 0, end: 8, priority: 80, durationMs: 5 }], generated: { priority: 10 } },
  queueKey: 'me',
  label: 'test',
};

async function ask(json: object): Promise<TokenPiece[]> {
  const pieces: TokenPiece[] = [];
  const streams = host.submitSeveral(tokenRequestOf(JSON.parse(JSON.stringify(json))));
  await Promise.all(
    streams.map(async (stream) => {
      for await (const piece of stream) pieces.push(piece);
    }),
  );
  return pieces;
}

describe('the schemas in docs/schemas', () => {
  it.each(CONTRACTS)(
    '$file is as `npx tsx tools/write-json-schemas.ts` writes it, each field with its words',
    (contract) => {
      const text = readFileSync(
        new URL(`../../../../docs/schemas/${contract.file}`, import.meta.url),
        'utf8',
      );
      expect(text).toBe(schemaText(contract));
    },
  );

  it('hold for what a host is given and gives', async () => {
    expect(faults('token-request.json', FULL)).toEqual([]);
    const pieces = await ask(FULL);
    const { numSequences: _, ...one } = FULL;
    pieces.push(...(await ask({ ...one, returnGenerationLogits: true, returnContextLogits: true })));
    // Prompts beyond the cache's room make it remove blocks.
    for (let first = 1; first < 4; first++)
      await ask({ promptTokens: range(40, 7 * first), maxNewTokens: 4 });
    expect(pieces.some((piece) => piece.generationLogits !== undefined)).toBe(true);
    expect(pieces.filter(({ finishReason }) => finishReason === 'length')).toHaveLength(3);
    for (const piece of pieces) expect(faults('token-piece.json', jsonFormOf(piece))).toEqual([]);
    expect(pieces.at(-1)!.seed).toBe(2n ** 64n - 1n);
    await expect
      .poll(() => events.map(({ data }) => data.type))
      .toEqual(expect.arrayContaining(['created', 'stored', 'removed']));
    for (const event of events) expect(faults('kv-cache-event.json', jsonFormOf(event))).toEqual([]);
    expect(stats.length).toBeGreaterThan(10);
    for (const one of stats) expect(faults('iteration-stats.json', jsonFormOf(one))).toEqual([]);
  });

  it('refuse what is no instance', () => {
    expect(faults('token-request.json', { ...FULL, seed: 5 })).not.toEqual([]);
    expect(faults('token-request.json', { ...FULL, maxTokens: 5 })).not.toEqual([]);
    expect(faults('token-piece.json', { tokens: [1] })).not.toEqual([]);
    expect(faults('iteration-stats.json', { ...stats[0], iteration: -1 })).not.toEqual([]);
    expect(faults('kv-cache-event.json', { eventId: 0, data: { type: 'stored' } })).not.toEqual([]);
  });
});

describe('a request from JSON', () => {
  it('has bigints, maps and typed arrays in their places', () => {
    const request = tokenRequestOf({ ...FULL, embeddingBias: [1, 'NaN'], promptEmbeddings: [[0.5]] });
    expect(request).toMatchObject({ seed: 2n ** 64n - 1n, cacheSalt: 7n, clientId: 9n, topK: 40 });
    expect(request.logitBias).toEqual(
      new Map([
        [5, -2],
        [6, Number.NEGATIVE_INFINITY],
      ]),
    );
    expect(request.embeddingBias).toEqual(Float32Array.of(1, Number.NaN));
    expect(request.promptEmbeddings).toEqual([Float32Array.of(0.5)]);
    expect(tokenRequestOf({ promptTokens: [1], maxNewTokens: 1, seed: null })).toEqual({
      promptTokens: [1],
      maxNewTokens: 1,
      seed: null,
    });
  });

  it('comes back from its own JSON form', () => {
    const { numSequences, ...request } = tokenRequestOf(FULL);
    expect(tokenRequestOf(JSON.parse(JSON.stringify(jsonFormOf(request))))).toEqual(request);
    expect(numSequences).toBe(2);
  });

  it.each<[object | null, string]>([
    [null, 'request: '],
    [{ promptTokens: [1] }, 'maxNewTokens: '],
    [{ promptTokens: [1.5], maxNewTokens: 1 }, 'promptTokens.0: '],
    [{ promptTokens: [1], maxNewTokens: 1, seed: '18446744073709551616' }, 'seed: must be below 2^64.'],
    [{ promptTokens: [1], maxNewTokens: 1, seed: 'zz' }, 'seed: '],
    [{ promptTokens: [1], maxNewTokens: 1, signal: {} }, 'signal is not a field of a request.'],
    [{ promptTokens: [1], maxNewTokens: 1, temperature: -1 }, 'temperature: '],
  ])('%o is refused by its field', (json, words) => {
    expect(() => tokenRequestOf(json)).toThrow(words);
  });
});
