import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { EncoderCodec } from '../../../src/encoding/encoder-codec.js';
import { TestEngines } from '../../../tools/support/test-engine.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { madeEmbedder, writeMadeEmbedder } from '../../support/made-embedders.js';

/** Its pairs go through a chat template. */
const made = madeEmbedder('qwen3-reranker');
const engines = new TestEngines();
let codec: EncoderCodec;
beforeAll(async () => {
  const path = writeMadeEmbedder(join(temporaryFolder('skein-encoder-codec'), made.name), made);
  const { directory, manifest } = await engines.get(path, 'f32');
  codec = await EncoderCodec.open(directory, manifest.config.encoder!);
});
afterAll(async () => {
  await codec.close();
  engines.remove();
});

const LIMIT = { maxSeqLen: 100, truncateTo: 100 };
const pairs = (count: number, length = 1) =>
  Array.from({ length: count }, (_, i) => ['who?', `cat ${i} `.repeat(length)] as const);
const encoded = (given: ReturnType<typeof pairs>, signal?: AbortSignal) =>
  codec.pairs(given, { ...LIMIT, signal }, 'documents', String);

it('leaves other work its turns while it renders many pairs', async () => {
  let turns = 0;
  let isDone = false;
  const count = () => {
    turns++;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  expect((await encoded(pairs(64))).length).toBe(64);
  isDone = true;
  expect(turns).toBeGreaterThan(5);
});

it('drops what is left of a call that is aborted, short texts and long ones', async () => {
  const reason = new Error('left');
  for (const given of [pairs(64), pairs(3, 1000)]) {
    const leaving = new AbortController();
    const rejected = expect(encoded(given, leaving.signal)).rejects.toBe(reason);
    setImmediate(() => leaving.abort(reason));
    await rejected;
  }
});
