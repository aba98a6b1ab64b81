import { crc32 } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { TokenRequest } from '../../../callbacks/token-request.js';
import { type HandOverOptions, HandOvers } from '../../../cluster/nats/hand-overs.js';
import type { BlocksAnswer, BlocksMessage, WorkItem } from '../../../cluster/nats/messages.js';

const BLOCK = 5;
/** CRC-32 of `length` zeros. */
const SUMS = (length: number) => crc32(new Uint8Array(length));
const REQUEST: TokenRequest = { promptTokens: Int32Array.from({ length: 41 }), maxNewTokens: 4 };

/**
 * A worker whose engine has the blocks 0, 1, 2 ... of every prompt, each with bytes of its number.
 * @param cached number of blocks that it counts
 */
function worker({ bytesPerState = 0, ...more }: Partial<HandOverOptions> = {}, cached = 0) {
  const written: [number, number[]][] = [];
  const states: number[][] = [];
  const warnings: string[] = [];
  const handOvers = new HandOvers({
    port: { maxBytes: 7, fetchBlocks: async () => null },
    engine: {
      readBlocks: async (_, maxBytes) => {
        const numBlocks = Math.min(10, Math.floor((maxBytes - bytesPerState) / BLOCK));
        const length = numBlocks * BLOCK + bytesPerState;
        return { numBlocks, bytes: Uint8Array.from({ length }, (_, i) => Math.floor(i / BLOCK)) };
      },
      countBlocks: async () => cached,
      writeBlocks: async (_, { first, numBlocks, bytes, state }) => {
        written.push([first, [...bytes]]);
        if (state !== null) states.push([...state]);
        return numBlocks;
      },
    },
    layout: 'same',
    tokensPerBlock: 4,
    bytesPerBlock: BLOCK,
    bytesPerState,
    maxBytes: 1000,
    onWarning: (message) => warnings.push(message),
    ...more,
  });
  return { handOvers, written, states, warnings };
}

const item = (more: Partial<WorkItem> = {}): WorkItem => ({
  ...{ kind: 'work', gateway: 'g', id: 'a', attempt: 1, known: [], ended: [], request: {} },
  ...more,
});

/** Lets one worker fetch what another one has kept, with answers as `change` makes them. */
async function handOver(
  change: (answer: BlocksAnswer, count: number) => BlocksAnswer | null = (answer) => answer,
  wanted = () => true,
  offered: Partial<WorkItem['handOver']> = {},
  cached = 0,
  bytesPerState = 0,
) {
  const from = worker({ bytesPerState });
  const has = await from.handOvers.keep(item(), REQUEST);
  let count = 0;
  const asked: BlocksMessage[] = [];
  const fetchBlocks = async (_: string, message: BlocksMessage) => {
    asked.push(message);
    return change(from.handOvers.answer(message), count++);
  };
  const to = worker({ bytesPerState, port: { maxBytes: 7, fetchBlocks } }, cached);
  const offer = { worker: 'w', attempt: 1, layout: 'same', ...has, ...offered };
  await to.handOvers.bring(item({ attempt: 2, handOver: offer }), REQUEST, wanted);
  return { from, to, has, asked, bytes: to.written.flatMap(([, bytes]) => bytes) };
}

describe('blocks that are handed over', () => {
  it('arrive whole and in order, in slices no longer than a message, and are kept no longer', async () => {
    const { has, bytes, asked, from } = await handOver();
    expect(has).toEqual({ bytes: 50, numBlocks: 10 });
    expect(bytes).toEqual(Array.from({ length: 50 }, (_, i) => Math.floor(i / BLOCK)));
    expect(Math.max(...asked.map(({ length }) => length))).toBe(7);
    await from.handOvers.whenEmpty();
  });

  it('are only those that the cache does not have, byte for byte', async () => {
    for (let cached = 0; cached <= 12; cached++) {
      const { asked, to, bytes, from } = await handOver(undefined, undefined, {}, cached);
      const missing = Math.max(0, 10 - cached);
      expect(asked.reduce((sum, { length }) => sum + length, 0)).toBe(missing * BLOCK);
      expect(bytes).toEqual(
        Array.from({ length: missing * BLOCK }, (_, i) => cached + Math.floor(i / BLOCK)),
      );
      expect(to.written[0]?.[0]).toBe(missing === 0 ? undefined : cached);
      // What is not fetched is kept until the gateway says that it is not wanted.
      from.handOvers.release('a');
      await from.handOvers.whenEmpty();
    }
  });

  it.each<[string, (answer: BlocksAnswer, count: number) => BlocksAnswer | null]>([
    ['damaged', (answer, n) => (n === 3 ? { ...answer, bytes: answer.bytes.map((one) => one ^ 1) } : answer)],
    ['cut', (answer, n) => (n === 3 ? { ...answer, bytes: answer.bytes.subarray(1) } : answer)],
    ['lost', (answer, n) => (n === 3 ? null : answer)],
  ])('are not written if a slice is %s', async (_, change) => {
    expect((await handOver(change)).bytes).toEqual([]);
  });

  it('bring the states behind the last of them, which come with it', async () => {
    for (const cached of [0, 4, 9]) {
      const { has, to, asked } = await handOver(undefined, undefined, {}, cached, 13);
      expect(has).toEqual({ bytes: 63, numBlocks: 10 });
      expect(to.states).toEqual([Array.from({ length: 13 }, (_, i) => 10 + Math.floor(i / BLOCK))]);
      expect(asked.reduce((sum, { length }) => sum + length, 0)).toBe((10 - cached) * BLOCK + 13);
    }
    // Who has the last block, and so its states, needs nothing.
    expect((await handOver(undefined, undefined, {}, 10, 13)).asked).toEqual([]);
    // A length that is that of blocks alone, as a worker that knows of no states would give it.
    expect((await handOver(undefined, undefined, { bytes: 50 }, 0, 13)).asked).toEqual([]);
    const damaged = await handOver(
      (answer, n) => (n === 7 ? { ...answer, bytes: answer.bytes.map((one) => one ^ 1) } : answer),
      undefined,
      {},
      0,
      13,
    );
    expect(damaged.to.states).toEqual([]);
  });

  it('are not fetched for another layout, with numbers that cannot be right, or for nobody', async () => {
    for (const offered of [
      { layout: 'other' },
      { bytes: 49 },
      { numBlocks: 11, bytes: 55 },
      { bytes: 0, numBlocks: 0 },
    ])
      expect((await handOver(undefined, undefined, offered)).asked).toEqual([]);
    expect((await handOver(undefined, () => false)).asked).toEqual([]);
    expect((await handOver(undefined, undefined, { attempt: 3 })).bytes).toEqual([]);
  });

  it('are as many as there is memory for', async () => {
    const { handOvers } = worker({ maxBytes: 37 });
    expect(await handOvers.keep(item(), REQUEST)).toEqual({ bytes: 35, numBlocks: 7 });
    expect(await handOvers.keep(item({ id: 'b' }), REQUEST)).toEqual({ bytes: 0, numBlocks: 0 });
    handOvers.release('a');
    expect(await handOvers.keep(item({ id: 'b' }), REQUEST)).toMatchObject({ numBlocks: 7 });
  });

  it('stop where the cache has no room for more', async () => {
    const big = 3 * 1024 * 1024;
    const offers: number[] = [];
    const { handOvers } = worker({
      bytesPerBlock: big,
      port: {
        maxBytes: 1e9,
        fetchBlocks: async (_, { length }) => ({
          kind: 'blocksPart',
          bytes: new Uint8Array(length),
          sum: SUMS(length),
        }),
      },
      engine: {
        readBlocks: async () => ({ numBlocks: 0, bytes: new Uint8Array(0) }),
        countBlocks: async () => 0,
        writeBlocks: async (_, { first }) => {
          offers.push(first);
          return first === 0 ? 2 : 1;
        },
      },
    });
    const offer = { worker: 'w', attempt: 1, layout: 'same', bytes: 9 * big, numBlocks: 9 };
    await handOvers.bring(item({ handOver: offer }), REQUEST, () => true);
    expect(offers).toEqual([0, 2]);
  });

  it('are given up with an engine that fails', async () => {
    const failing = {
      readBlocks: () => Promise.reject(new Error('gone')),
      countBlocks: () => Promise.reject(new Error('gone')),
      writeBlocks: () => Promise.reject(new Error('gone')),
    };
    expect(await worker({ engine: failing }).handOvers.keep(item(), REQUEST)).toEqual({
      bytes: 0,
      numBlocks: 0,
    });
    const from = worker();
    const has = await from.handOvers.keep(item(), REQUEST);
    const port = {
      maxBytes: 7,
      fetchBlocks: async (_: string, message: BlocksMessage) => from.handOvers.answer(message),
    };
    const to = worker({ engine: failing, port });
    const offer = { worker: 'w', attempt: 1, layout: 'same', ...has };
    await to.handOvers.bring(item({ handOver: offer }), REQUEST, () => true);
    expect(to.warnings).toEqual(['The blocks of a prompt could not be taken over: gone']);
  });

  it('are fetched for a few requests at once, and for the others in turn', async () => {
    const asking: (() => void)[] = [];
    const port = {
      maxBytes: 7,
      fetchBlocks: () => new Promise<null>((resolve) => asking.push(() => resolve(null))),
    };
    const { handOvers } = worker({ port });
    const offer = { worker: 'w', attempt: 1, layout: 'same', bytes: BLOCK, numBlocks: 1 };
    const brought = Array.from({ length: 7 }, (_, i) =>
      handOvers.bring(item({ id: String(i), handOver: offer }), REQUEST, () => true),
    );
    await new Promise((resolve) => setImmediate(resolve));
    expect(asking).toHaveLength(4);
    for (let i = 0; i < 7; i++) {
      await new Promise((resolve) => setImmediate(resolve));
      asking[i]!();
    }
    await Promise.all(brought);
  });
});
