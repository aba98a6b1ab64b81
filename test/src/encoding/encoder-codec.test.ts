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

it('puts an instruction in the place that the template has for it', async () => {
  const given = async (instruction?: string) => {
    const [sequence] = await codec.pairs(pairs(1), { maxSeqLen: 500, instruction }, 'documents', String);
    return [...sequence!.tokenIds].join();
  };
  const lists = await Promise.all([given(), given('cat'), given('cat'), given('dog')]);
  expect(lists[1]).toBe(lists[2]);
  expect(new Set(lists).size).toBe(3);
});

it('cuts documents, and refuses a query that leaves no room for one', async () => {
  const [, document] = pairs(1, 200)[0]!;
  const [cut] = await codec.pairs([['who?', document]], { maxSeqLen: 500, truncateTo: 400 }, 'x', String);
  expect(cut!.tokenIds.length).toBe(400);
  const long = [['who? '.repeat(250), 'a cat']] as const;
  const refused = codec.pairs(long, { maxSeqLen: 500, truncateTo: 400 }, 'query', () => 'document 0');
  await expect(refused).rejects.toThrow(
    /^Document 0 takes \d+ tokens even without the document, which alone is cut, of 400 at most\.$/,
  );
});
