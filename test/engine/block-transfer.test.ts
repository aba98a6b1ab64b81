import { InProcessHost } from 'skein';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { TestEngines } from '../../tools/support/test-engine.js';
import { fakeEngine } from '../support/fake-engine.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { madeModelPath } from '../support/made-models.js';

const temporary = temporaryFolder('skein-block-transfer');
const engines = new TestEngines();
afterAll(() => engines.remove());
const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function open(
  options: Parameters<typeof fakeEngine>[1] = {},
  engineOptions = '',
): Promise<InProcessHost> {
  const kvCacheConfig = { enableBlockReuse: true, ...options?.kvCacheConfig };
  const host = new InProcessHost(
    fakeEngine(engineOptions, { ...options, kvCacheConfig, checkIntegrity: true }),
  );
  closing.push(() => host.close());
  await host.ready;
  return host;
}

const PROMPT = Int32Array.from({ length: 30 }, (_, index) => (index * 7) % 50);
/** The fake executor's blocks have 8 tokens, each with 8 bytes. */
const BLOCK = 64;

async function answer(host: InProcessHost, tokens = PROMPT, cacheSalt?: bigint) {
  const found: number[] = [];
  let cached = -1;
  const salt = cacheSalt === undefined ? {} : { cacheSalt };
  for await (const piece of host.submit({ promptTokens: tokens, maxNewTokens: 9, temperature: 0, ...salt })) {
    found.push(...piece.tokens);
    cached = piece.cachedTokens ?? cached;
  }
  return { tokens: found, cached };
}

const prompt = (tokens = PROMPT, salt = 0n) => ({ salt, loraId: null, tokens });

const read = async (host: InProcessHost, of = prompt(), maxBytes = 1e6) =>
  (await host.readBlocks(of, maxBytes)).bytes;

/** Offers blocks of the fake executor. */
const write = (host: InProcessHost, first: number, bytes: Uint8Array, of = prompt()) =>
  host.writeBlocks(of, { first, numBlocks: Math.ceil(bytes.length / BLOCK), bytes, state: null });

describe('blocks that one engine has computed', () => {
  it('serve another one, whose answer is the same', async () => {
    const [from, to] = await Promise.all([open(), open()]);
    const alone = await answer(from);
    expect(alone.cached).toBe(0);
    const bytes = await read(from);
    expect(bytes).toHaveLength(3 * BLOCK);
    expect(await write(to, 0, bytes)).toBe(3);
    expect(await answer(to)).toEqual({ tokens: alone.tokens, cached: 24 });
  });

  it('come in parts, each behind those that are there', async () => {
    const [from, to] = await Promise.all([open(), open()]);
    const alone = await answer(from);
    const bytes = await read(from, prompt(), 2 * BLOCK + 7);
    expect(bytes).toHaveLength(2 * BLOCK);
    expect(await write(to, 1, bytes.slice(BLOCK))).toBe(0);
    expect(await write(to, 0, bytes.slice(0, BLOCK))).toBe(1);
    expect(await write(to, 1, bytes.slice(BLOCK))).toBe(1);
    expect(await write(to, 0, bytes)).toBe(2);
    expect(await answer(to)).toEqual({ tokens: alone.tokens, cached: 16 });
  });

  it('are counted, so that those which are there need not be brought', async () => {
    const [from, to] = await Promise.all([open(), open()]);
    const alone = await answer(from);
    expect([await from.countBlocks(prompt()), await to.countBlocks(prompt())]).toEqual([3, 0]);
    const bytes = await read(from);
    await write(to, 0, bytes.slice(0, BLOCK));
    expect(await to.countBlocks(prompt())).toBe(1);
    expect(await to.countBlocks(prompt(PROMPT, 5n))).toBe(0);
    // Another end after the same beginning; and the last token is computed, so that the block with it is of
    // no use.
    const other = PROMPT.map((token, i) => (i < 20 ? token : 49 - token));
    expect(await from.countBlocks(prompt(other))).toBe(2);
    expect(await from.countBlocks(prompt(PROMPT.slice(0, 24)))).toBe(2);
    expect(await write(to, 1, bytes.slice(BLOCK))).toBe(2);
    expect(await answer(to)).toEqual({ tokens: alone.tokens, cached: 24 });
  });

  it('are of one salt', async () => {
    const [from, to] = await Promise.all([open(), open()]);
    await answer(from, PROMPT, 5n);
    expect(await read(from)).toHaveLength(0);
    const bytes = await read(from, prompt(PROMPT, 5n));
    expect(await write(to, 0, bytes, prompt(PROMPT, 5n))).toBe(3);
    expect((await answer(to)).cached).toBe(0);
    expect((await answer(to, PROMPT, 5n)).cached).toBe(24);
  });

  it('are refused if they are not whole, and where nothing is reused', async () => {
    const [from, to] = await Promise.all([open(), open({ kvCacheConfig: { enableBlockReuse: false } })]);
    await answer(from);
    const bytes = await read(from);
    expect(await write(from, 0, bytes.slice(1))).toBe(0);
    expect(await write(to, 0, bytes)).toBe(0);
    expect(await read(to)).toHaveLength(0);
    expect((await answer(to)).cached).toBe(0);
  });

  it('are not kept where they are not finite: the prompt is computed', async () => {
    const poisonToken = 1000;
    const [from, to] = await Promise.all([open(), open({}, `poisonToken=${poisonToken}`)]);
    const alone = await answer(from);
    const bytes = await read(from);
    const bad = bytes.slice();
    // The pool keeps a token plus 1: see FakeExecutor.areFinite.
    new Int32Array(bad.buffer)[(2 * BLOCK) / 4] = poisonToken + 1;
    expect(await write(to, 0, bad.slice(0, 2 * BLOCK))).toBe(2);
    expect(await write(to, 2, bad.slice(2 * BLOCK))).toBe(0);
    expect(await answer(to)).toEqual({ tokens: alone.tokens, cached: 16 });
    expect(await write(to, 2, bytes.slice(2 * BLOCK))).toBe(1);
  });

  it.each([
    ['some', 'qwen3.5'],
    ['all', 'mamba2'],
  ])(
    'of a model of which %s layers keep states come with these, and are of no use without',
    async (_, name) => {
      const folder = madeModelPath(temporary, name);
      const { directory: enginePath } = await engines.get(folder, 'f32');
      const openEngine = async () => {
        const host = new InProcessHost({
          ...{ enginePath, modelType: 'InflightFusedBatching', maxBeamWidth: 1 },
          schedulerPolicy: 'GUARANTEED_NO_EVICT',
          optionalParams: {
            ...{ threads: 1, maxSeqLen: 64, tokensPerBlock: 8, checkIntegrity: true },
            kvCacheConfig: { enableBlockReuse: true },
          },
        });
        closing.push(() => host.close());
        await host.ready;
        return host;
      };
      const [from, to, without] = await Promise.all([openEngine(), openEngine(), openEngine()]);
      const { bytesPerBlock, bytesPerState } = from.info!;
      const alone = await answer(from);
      const { numBlocks, bytes } = await from.readBlocks(prompt(), 1e6);
      const end = 3 * bytesPerBlock!;
      expect([numBlocks, bytes.length]).toEqual([3, end + bytesPerState]);
      expect((await from.readBlocks(prompt(), bytesPerState - 1)).numBlocks).toBe(0);
      const blocks = { first: 0, numBlocks, bytes: bytes.slice(0, end) };
      expect(await to.writeBlocks(prompt(), { ...blocks, state: bytes.slice(end) })).toBe(3);
      expect([await to.countBlocks(prompt()), await answer(to)]).toEqual([3, { ...alone, cached: 24 }]);
      expect(await without.writeBlocks(prompt(), { ...blocks, state: null })).toBe(3);
      expect([await without.countBlocks(prompt()), await answer(without)]).toEqual([0, alone]);
    },
  );

  it('can be more than the cache has room for, and come while requests run', async () => {
    const [from, to] = await Promise.all([open(), open()]);
    const alone = await answer(from);
    const bytes = await read(from);
    const others = Array.from({ length: 6 }, (_, i) =>
      Int32Array.from(PROMPT, (token) => (token + i + 1) % 50),
    );
    const running = others.map((tokens) => answer(to, tokens));
    for (let i = 0; i < 20; i++) {
      const has = await write(to, 0, bytes);
      expect(has).toBeGreaterThanOrEqual(0);
      expect((await answer(to)).tokens).toEqual(alone.tokens);
    }
    const answers = await Promise.all(running);
    expect(answers.map(({ tokens }) => tokens)).toEqual(
      (await Promise.all(others.map((tokens) => answer(from, tokens)))).map(({ tokens }) => tokens),
    );
  });
});
