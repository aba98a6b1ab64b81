import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { BlockFolder, type FolderOptions } from '../../../engine/disk-cache/block-folder.js';
import { DiskDesk } from '../../../engine/disk-cache/disk-desk.js';
import type { DiskAsk, DiskReply, DiskStore } from '../../../engine/disk-cache/disk-messages.js';
import { LoopHarness, makeRequest, runAlone, u64 } from '../../../tools/support/loop-harness.js';
import { freshFolders } from '../../support/fresh-folders.js';

/** A store whose folder is read and written in this thread: what is asked is done when the loop looks for replies. */
class InlineDisk implements DiskStore {
  readonly format: DiskStore['format'];
  readonly maxBytes: number;
  readonly folder: BlockFolder;
  readonly asks: DiskAsk[] = [];
  /** While true, nothing that is asked is done. */
  isStuck = false;
  readonly #desk: DiskDesk;
  readonly #replies: DiskReply[] = [];
  #numDone = 0;

  constructor(options: Omit<FolderOptions, 'onProblem'>) {
    const { identity, bytesPerBlock, bytesPerState, maxBytes } = options;
    this.format = { identity, bytesPerBlock, bytesPerState };
    this.maxBytes = maxBytes;
    const reply = (message: DiskReply) => this.#replies.push(message);
    this.folder = new BlockFolder({
      ...options,
      onProblem: (message) => reply({ type: 'problem', message }),
    });
    this.#desk = new DiskDesk({ folder: this.folder, format: this.format, reply });
    this.#desk.open();
  }

  post(ask: DiskAsk): void {
    this.asks.push(structuredClone(ask));
  }

  receive(): DiskReply | null {
    while (!this.isStuck && this.#numDone < this.asks.length) this.#desk.ask(this.asks[this.#numDone++]!);
    if (!this.isStuck) while (this.#desk.writeNext());
    return this.#replies.shift() ?? null;
  }

  wait(): void {}
}

const folder = freshFolders('skein-disk-cache');
const PROMPT = Array.from({ length: 30 }, (_, i) => (i * 7) % 50);
/** The fake executor's blocks have 8 tokens, each with 8 bytes. */
const FORMAT = { identity: 'a1'.repeat(32), bytesPerBlock: 64, bytesPerState: 0 };

type Disk = Partial<Omit<FolderOptions, 'onProblem' | 'bytesPerState'>> & Pick<FolderOptions, 'path'>;

/** A loop over a folder, as after a restart. */
function open(disk: Disk, options: ConstructorParameters<typeof LoopHarness>[0] = {}) {
  const store = new InlineDisk({ ...FORMAT, maxBytes: 1e6, ...disk });
  const harness = new LoopHarness({ enableBlockReuse: true, disk: store, ...options });
  return { store, harness, stats: () => harness.stats.at(-1)!.disk! };
}

function answer(
  { harness }: Pick<ReturnType<typeof open>, 'harness'>,
  id: bigint,
  prompt = PROMPT,
  salt = 0n,
) {
  harness.run(makeRequest(id, prompt, 9, salt === 0n ? {} : { cache_salt: u64(salt) }));
  const { reusedBlocks } = harness.kvCache.stats();
  return { tokens: harness.resultOf(id).tokens, reusedBlocks };
}

const filesOf = (path: string) => fs.readdirSync(path).sort();

describe('blocks on a disk', () => {
  it('serve the loop that comes after, whose answer is the same', () => {
    const path = folder();
    const first = open({ path });
    const alone = answer(first, 1n);
    expect(alone.reusedBlocks).toBe(0);
    // 30 tokens of the prompt and 8 of the answer are written: four blocks.
    expect(filesOf(path)).toHaveLength(4);
    const second = open({ path });
    expect(answer(second, 1n)).toEqual({ tokens: alone.tokens, reusedBlocks: 3 });
    expect(second.stats()).toMatchObject({
      files: 4,
      hits: 3,
      misses: 0,
      readBytes: 3 * 64,
      writtenBlocks: 0,
    });
    expect(second.harness.executor.numSteps).toBeLessThan(first.harness.executor.numSteps + 1);
    expect(second.harness.errors).toEqual([]);
  });

  it('are found up to where a prompt parts from them', () => {
    const path = folder();
    const first = open({ path });
    answer(first, 1n);
    const other = [...PROMPT.slice(0, 18), ...PROMPT.slice(0, 12)];
    const alone = answer(first, 2n, other).tokens;
    const second = open({ path });
    expect(answer(second, 2n, other)).toEqual({ tokens: alone, reusedBlocks: 3 });
    const third = open({ path });
    const another = [...PROMPT.slice(0, 20), 99, 98, 97, 96, 95, 94];
    const computed = answer(open({ path: folder() }), 1n, another).tokens;
    expect(answer(third, 1n, another)).toEqual({ tokens: computed, reusedBlocks: 2 });
    expect(third.stats()).toMatchObject({ hits: 2, misses: 1 });
  });

  it('are of one salt', () => {
    const path = folder();
    const a = answer(open({ path }), 1n, PROMPT, 5n);
    const second = open({ path });
    expect(answer(second, 1n, PROMPT, 6n).reusedBlocks).toBe(0);
    expect(answer(second, 2n).reusedBlocks).toBe(0);
    expect(second.stats()).toMatchObject({ hits: 0, misses: 6 });
    expect(answer(second, 3n, PROMPT, 5n)).toEqual({ tokens: a.tokens, reusedBlocks: 3 });
  });

  it('of another engine are not read', () => {
    const path = folder();
    answer(open({ path }), 1n);
    const other = open({ path, identity: 'b2'.repeat(32) });
    expect(answer(other, 1n).reusedBlocks).toBe(0);
    expect(filesOf(path)).toHaveLength(8);
    expect(other.stats()).toMatchObject({ hits: 0, damaged: 0 });
  });

  it('whose hash is equal and whose tokens are others are not taken, and stay', () => {
    const path = folder();
    const first = open({ path });
    answer(first, 1n);
    const files = filesOf(path);
    const other = PROMPT.map((token) => token + 1);
    const second = open({ path: folder() });
    const alone = answer(second, 1n, other).tokens;
    // The first block of the other prompt gets the name of this one's.
    const { asks } = second.store;
    const write = asks.find(({ type }) => type === 'write') as Extract<
      (typeof asks)[number],
      { type: 'write' }
    >;
    const named = (hash: number) => `${'a1'.repeat(8)}-${hash.toString(16).padStart(14, '0')}.skein-kv`;
    const firstWrite = first.store.asks.find(({ type }) => type === 'write') as typeof write;
    fs.renameSync(join(path, named(firstWrite.blocks[0]!.key)), join(path, named(write.blocks[0]!.key)));
    const third = open({ path });
    expect(answer(third, 1n, other)).toEqual({ tokens: alone, reusedBlocks: 0 });
    expect(third.stats()).toMatchObject({ damaged: 0, hits: 0 });
    expect(filesOf(path)).toEqual(
      expect.arrayContaining(files.filter((name) => name !== named(firstWrite.blocks[0]!.key))),
    );
  });

  it('are not written for blocks of low priority, nor for those behind them', () => {
    const path = folder();
    const { harness } = open({ path });
    const retention_ranges = { shape: [1, 1, 4], data: Int32Array.of(8, 16, 29, 0) };
    harness.run(makeRequest(1n, PROMPT, 9, { retention_ranges }));
    expect(filesOf(path)).toHaveLength(1);
  });

  it('are erased by a reset, and what is computed later is kept again', () => {
    const path = folder();
    const first = open({ path });
    const alone = answer(first, 1n).tokens;
    expect(first.harness.loop.resetCache()).toBe(4);
    expect(first.harness.loop.isErasing).toBe(true);
    first.harness.runToEnd();
    expect(first.harness.loop.isErasing).toBe(false);
    expect(filesOf(path)).toEqual([]);
    expect(answer(first, 2n)).toEqual({ tokens: alone, reusedBlocks: 0 });
    expect(filesOf(path)).toHaveLength(4);
  });

  it('that are on their way when the cache is reset are of no use', () => {
    const path = folder();
    answer(open({ path }), 1n);
    const { store, harness } = open({ path });
    harness.loop.iterate();
    store.isStuck = true;
    harness.waiting.push(makeRequest(1n, PROMPT, 9));
    harness.loop.iterate();
    expect(store.asks.map(({ type }) => type)).toEqual(['used', 'read']);
    harness.loop.resetCache();
    store.isStuck = false;
    harness.runToEnd();
    expect(harness.kvCache.stats().reusedBlocks).toBe(0);
    expect(harness.stats.at(-1)!.disk).toMatchObject({ hits: 0 });
    expect(harness.errors).toEqual([]);
  });
});

describe('a request whose blocks are on a disk', () => {
  it('waits for them, and others go on', () => {
    const path = folder();
    const alone = answer(open({ path }), 1n).tokens;
    const { store, harness } = open({ path });
    harness.loop.iterate();
    store.isStuck = true;
    const other = PROMPT.map((token) => token + 1);
    harness.waiting.push(makeRequest(1n, PROMPT, 9), makeRequest(2n, other, 9));
    for (let i = 0; i < 20; i++) harness.loop.iterate();
    expect(harness.responses.filter(({ final }) => final).map(({ requestId }) => requestId)).toEqual([2n]);
    expect(harness.responses.some(({ requestId }) => requestId === 1n)).toBe(false);
    store.isStuck = false;
    harness.runToEnd();
    expect(harness.resultOf(1n).tokens).toEqual(alone);
    expect(harness.kvCache.stats().reusedBlocks).toBe(3);
  });

  it('waits no longer when the disk has been silent for long', () => {
    const path = folder();
    const alone = answer(open({ path }), 1n).tokens;
    const { store, harness } = open({ path });
    harness.loop.iterate();
    store.isStuck = true;
    harness.waiting.push(makeRequest(1n, PROMPT, 9));
    harness.loop.iterate();
    harness.nowMs += 60_000;
    harness.runToEnd();
    expect(harness.resultOf(1n).tokens).toEqual(alone);
    expect(harness.errors.map(({ message }) => message)).toEqual([
      "The KV cache's folder has not answered for 20 seconds; the engine goes on without it.",
    ]);
    harness.run(makeRequest(2n, PROMPT, 9));
    expect(harness.resultOf(2n).tokens).toEqual(alone);
    expect(harness.loop.isWriting).toBe(false);
  });

  it('can be stopped while it waits, and the next one gets its blocks', () => {
    const path = folder();
    const alone = answer(open({ path }), 1n).tokens;
    const { store, harness } = open({ path });
    harness.loop.iterate();
    store.isStuck = true;
    harness.waiting.push(makeRequest(1n, PROMPT, 9), makeRequest(2n, PROMPT, 9));
    harness.loop.iterate();
    harness.stops.add(1n);
    harness.loop.iterate();
    store.isStuck = false;
    harness.runToEnd();
    expect(harness.resultOf(2n).tokens).toEqual(alone);
    expect(harness.stats.at(-1)!.disk).toMatchObject({ hits: 3 });
  });

  it('computes what the pool has no room for', () => {
    const path = folder();
    const first = open({ path }, { maxSeqLen: 64 });
    const alone = answer(first, 1n).tokens;
    const { harness } = open({ path }, { numBlocks: 8, maxSeqLen: 64, maxNumSequences: 4 });
    const others = [1, 2, 3].map((by) => PROMPT.map((token) => token + by));
    harness.run(
      ...others.map((prompt, i) => makeRequest(BigInt(i + 2), prompt, 9)),
      makeRequest(1n, PROMPT, 9),
    );
    expect(harness.resultOf(1n).tokens).toEqual(alone);
    for (const [i, prompt] of others.entries()) {
      expect(harness.resultOf(BigInt(i + 2)).tokens).toEqual(answer(first, BigInt(i + 2), prompt).tokens);
    }
  });
});

describe('a crowd over a folder', () => {
  it('answers as alone, with a pool that is too small, a second one, pauses, resets and restarts', () => {
    const path = folder();
    const requests = crowd(60);
    const expected = new Map(requests.map((one) => [one.requestId, runAlone(one).tokens]));
    let [hits, resets] = [0, 0];
    for (let start = 0; start < requests.length; start += 20) {
      const { store, harness } = open(
        { path, maxBytes: 12_000 },
        {
          ...{ numBlocks: 14, numSecondaryBlocks: 6, maxNumSequences: 6, maxNumTokens: 40 },
          ...{ schedulerPolicy: 'MAX_UTILIZATION', chunkingPolicy: 'FIRST_COME_FIRST_SERVED' },
        },
      );
      const waiting = requests.slice(start, start + 20);
      for (let i = 0; waiting.length > 0; i++) {
        if (i % 3 === 0) harness.waiting.push(waiting.shift()!);
        store.isStuck = i % 5 > 2;
        harness.loop.iterate();
        if (i % 29 === 28) {
          harness.loop.resetCache();
          resets++;
        }
      }
      store.isStuck = false;
      harness.runToEnd();
      for (const { requestId } of requests.slice(start, start + 20)) {
        expect([requestId, harness.resultOf(requestId).tokens]).toEqual([requestId, expected.get(requestId)]);
      }
      expect(harness.errors).toEqual([]);
      hits += harness.stats.at(-1)!.disk!.hits;
    }
    expect(hits).toBeGreaterThan(10);
    expect(resets).toBeGreaterThan(3);
  });

  /** Requests whose prompts begin with one of four stems, or a part of it. */
  function crowd(count: number) {
    let seed = 5;
    const draw = (below: number) => {
      seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
      return (seed >>> 8) % below;
    };
    const stems = Array.from({ length: 4 }, () => Array.from({ length: 40 }, () => draw(100)));
    return Array.from({ length: count }, (_, i) => {
      const stem = stems[draw(4)]!.slice(0, 8 + draw(33));
      const own = Array.from({ length: draw(8) }, () => draw(100));
      return makeRequest(BigInt(i + 1), [...stem, ...own], 1 + draw(14));
    });
  }
});

describe('a folder that is damaged', () => {
  const damage = (path: string, change: (name: string) => void) => {
    answer(open({ path }), 1n);
    for (const name of filesOf(path)) change(join(path, name));
    const { harness, stats } = open({ path });
    return { ...answer({ harness }, 1n), errors: harness.errors, stats: stats() };
  };
  const expected = answer(open({ path: folder() }), 1n).tokens;

  it('leads to the same answer and one report, whichever byte is wrong', () => {
    const size = fs.statSync(filesIn(sample())[0]!).size;
    for (let at = 0; at < size; at += 7) {
      const { tokens, reusedBlocks, errors, stats } = damage(folder(), (file) => {
        const bytes = fs.readFileSync(file);
        bytes[at % bytes.length]! ^= 0x10;
        fs.writeFileSync(file, bytes);
      });
      expect([at, tokens, reusedBlocks]).toEqual([at, expected, 0]);
      expect(errors).toHaveLength(1);
      expect(errors[0]!.message).toMatch(/holds damaged files, such as a1a1.*; they are removed/);
      expect(stats).toMatchObject({ damaged: 1, hits: 0 });
    }
  });

  it('is whole again for the next process, however much of a prompt is damaged', () => {
    const path = folder();
    answer(open({ path }), 1n);
    for (const file of filesIn(path)) fs.truncateSync(file, 0);
    const second = open({ path });
    expect(answer(second, 1n)).toEqual({ tokens: expected, reusedBlocks: 0 });
    // Nothing is looked for twice, and all is written once.
    expect(second.store.asks.filter(({ type }) => type === 'read')).toHaveLength(1);
    expect(second.stats()).toMatchObject({ damaged: 1, writtenBlocks: 3 });
    const third = open({ path });
    expect(answer(third, 1n)).toEqual({ tokens: expected, reusedBlocks: 3 });
    expect(third.stats()).toMatchObject({ damaged: 0, writtenBlocks: 0 });
  });

  it('and then removed is filled again', () => {
    const path = folder();
    const first = open({ path });
    answer(first, 1n);
    fs.rmSync(path, { recursive: true });
    const second = PROMPT.map((token) => token + 1);
    answer(first, 2n, second);
    expect(first.harness.errors.map(({ message }) => message)).toEqual([
      `The KV cache's folder ${path} was removed, and is made once more.`,
    ]);
    expect(answer(open({ path }), 2n, second).reusedBlocks).toBe(3);
  });

  it('may hold files that are too short or too long', () => {
    for (const change of [0, 1, 79, 150]) {
      const { tokens, reusedBlocks } = damage(folder(), (file) => fs.truncateSync(file, change));
      expect([change, tokens, reusedBlocks]).toEqual([change, expected, 0]);
    }
    const longer = damage(folder(), (file) => fs.appendFileSync(file, 'x'));
    expect([longer.tokens, longer.stats.damaged]).toEqual([expected, 1]);
  });

  it('may hold folders, links and strange files under their names', () => {
    const path = folder();
    answer(open({ path }), 1n);
    const [first, second] = filesOf(path) as [string, string];
    const elsewhere = join(folder(), 'secret');
    fs.renameSync(join(path, first), elsewhere);
    fs.symlinkSync(elsewhere, join(path, first));
    fs.rmSync(join(path, second));
    fs.mkdirSync(join(path, second));
    fs.writeFileSync(join(path, 'notes.txt'), 'mine');
    const { harness } = open({ path });
    expect(answer({ harness }, 1n).tokens).toEqual(expected);
    expect(fs.readFileSync(join(path, 'notes.txt'), 'utf8')).toBe('mine');
    expect(fs.existsSync(elsewhere)).toBe(true);
  });

  const sample = () => {
    const path = folder();
    answer(open({ path }), 1n);
    return path;
  };
  const filesIn = (path: string) => filesOf(path).map((name) => join(path, name));
});

describe('a disk that is full', () => {
  it('is told of once, and the engine goes on', () => {
    const path = folder();
    let nowMs = 1e12;
    const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
    let isFull = true;
    const files: FolderOptions['files'] = {
      ...fs,
      writevSync: (...args: Parameters<typeof fs.writevSync>) => {
        if (isFull) throw full;
        return fs.writevSync(...args);
      },
    };
    const opened = open({ path, files, clock: () => nowMs });
    answer(opened, 1n);
    answer(
      opened,
      2n,
      PROMPT.map((token) => token + 1),
    );
    expect(opened.harness.errors.map(({ message }) => message)).toEqual([
      `The KV cache's folder ${path} cannot be written to: ENOSPC: no space left on device, write. The engine goes on without.`,
    ]);
    expect(opened.stats()).toMatchObject({ errors: 1, files: 0, writtenBlocks: 0 });
    expect(filesOf(path)).toEqual([]);
    isFull = false;
    nowMs += 61_000;
    answer(
      opened,
      3n,
      PROMPT.map((token) => token + 2),
    );
    expect(filesOf(path)).toHaveLength(4);
  });
});
