import fc from 'fast-check';
import { expect, it } from 'vitest';
import { KvCacheManager } from '../../kvcache/kv-cache-manager.js';
import type { ReuseKey } from '../../kvcache/prefix-tree.js';
import type { Retention } from '../../kvcache/retention.js';
import { draws } from '../support/scale.js';

const SIZE = 8;
const NUM_BLOCKS = 9;
const MAX_SEQ_LEN = 64;
const PLAIN: ReuseKey = { salt: 0n };
const OTHERS: ReuseKey[] = [{ salt: 1n }, { salt: 0n, loraId: 1n }, { salt: 1n, loraId: 0n }];

/** The cache as its events describe it: each node's tokens from the start of its sequence, as text, and its pool. */
class Mirror {
  readonly #paths = new Map<number, string>();
  readonly #keys = new Map<number, ReuseKey>();
  readonly #levels = new Map<number, number>();

  take(kv: KvCacheManager, key: ReuseKey): void {
    for (const { data } of kv.drainEvents()) {
      if (data.type === 'removed') for (const hash of data.blockHashes) this.#forget(hash);
      if (data.type === 'updated' && 'cacheLevel' in data) {
        expect(this.#levels.get(data.blockHash)).toBe(data.cacheLevel.oldValue);
        this.#levels.set(data.blockHash, data.cacheLevel.newValue);
      }
      if (data.type !== 'stored') continue;
      let path = data.parentHash === null ? '' : this.#paths.get(data.parentHash)!;
      for (const { blockHash, tokens, cacheLevel, loraId } of data.blocks) {
        expect(loraId).toBe(key.loraId ?? null);
        expect(this.#paths.has(blockHash)).toBe(false);
        path += String.fromCharCode(...tokens);
        this.#paths.set(blockHash, path);
        this.#keys.set(blockHash, key);
        this.#levels.set(blockHash, cacheLevel);
      }
    }
  }

  #forget(hash: number): void {
    expect(this.#paths.delete(hash)).toBe(true);
    this.#levels.delete(hash);
  }

  sizeOf(level: number): number {
    return [...this.#levels.values()].filter((where) => where === level).length;
  }

  /** The longest beginning of the prompt without its last token, full blocks first, then a part of one. */
  find(prompt: Int32Array, key: ReuseKey): number {
    const text = String.fromCharCode(...prompt.subarray(0, prompt.length - 1));
    const paths = [...this.#paths].filter(([hash]) => this.#keys.get(hash) === key).map(([, path]) => path);
    let full = 0;
    while (paths.includes(text.slice(0, full + SIZE)) && full + SIZE <= text.length) full += SIZE;
    const behind = paths.filter(
      (path) => path.length === full + SIZE && path.startsWith(text.slice(0, full)),
    );
    return Math.max(full, ...behind.map((path) => commonLength(path, text)));
  }
}

function commonLength(a: string, b: string): number {
  let length = 0;
  while (length < Math.min(a.length, b.length) && a[length] === b[length]) length++;
  return length;
}

interface Running {
  tokens: Int32Array;
  /** First place that the next step writes; equal to `length` if it writes nothing. */
  written: number;
  length: number;
  key: ReuseKey;
  /** false: a reset has come since it was added. */
  isShared: boolean;
}

/** The manager with a memory that holds token ids, as an executor's holds keys and values. */
class Machine {
  readonly kv: KvCacheManager;
  readonly running = new Map<bigint, Running>();
  readonly mirror = new Mirror();
  reusedTokens = 0;
  resets = 0;
  readonly #memory: Int32Array;

  constructor(numSecondaryBlocks: number) {
    this.kv = new KvCacheManager({
      numBlocks: NUM_BLOCKS,
      numSecondaryBlocks,
      tokensPerBlock: SIZE,
      maxSeqLen: MAX_SEQ_LEN,
      enableBlockReuse: true,
      maxEvents: 10_000,
    });
    this.#memory = new Int32Array((NUM_BLOCKS + numSecondaryBlocks) * SIZE).fill(-1);
  }

  add(
    requestId: bigint,
    tokens: Int32Array,
    promptLength: number,
    { key, retention }: { key: ReuseKey; retention?: Retention },
  ): void {
    const expected = this.mirror.find(tokens.subarray(0, promptLength), key);
    const free = this.kv.freeBlocks;
    const shared = { tokens, ...key, ...(retention ? { retention } : {}) };
    const fits = this.kv.addSequence(requestId, promptLength, shared);
    if (Math.ceil(promptLength / SIZE) <= free) expect(fits).toBe(true);
    if (!fits) {
      expect(this.kv.freeBlocks).toBe(free);
      return;
    }
    const { reusedTokens, reusedBlocks, missedBlocks } = this.kv.reuseOf(requestId);
    expect(reusedTokens).toBe(expected);
    expect(reusedBlocks).toBe(Math.floor(reusedTokens / SIZE));
    expect(reusedBlocks + missedBlocks).toBe(Math.floor((promptLength - 1) / SIZE));
    this.reusedTokens += reusedTokens;
    this.running.set(requestId, {
      tokens,
      written: reusedTokens,
      length: promptLength,
      key,
      isShared: true,
    });
    this.mirror.take(this.kv, key);
  }

  grow(requestId: bigint, by: number): void {
    const sequence = this.running.get(requestId)!;
    const length = Math.min(sequence.tokens.length, sequence.length + by);
    if (length > sequence.length && this.kv.growSequence(requestId, length)) sequence.length = length;
    this.mirror.take(this.kv, sequence.key);
  }

  /** Ends a sequence. Tokens that have not been written by then are not kept. */
  end(requestId: bigint, stores: boolean): void {
    const { tokens, written, key } = this.running.get(requestId)!;
    if (stores) this.kv.store(requestId, tokens, written);
    this.kv.freeSequence(requestId);
    this.running.delete(requestId);
    this.mirror.take(this.kv, key);
  }

  /** Nothing is found any more; what runs continues and leaves nothing. */
  reset(): void {
    const numCached = this.mirror.sizeOf(0) + this.mirror.sizeOf(1);
    expect(this.kv.dropReusable()).toBe(numCached);
    this.mirror.take(this.kv, PLAIN);
    expect(this.mirror.sizeOf(0) + this.mirror.sizeOf(1)).toBe(0);
    for (const sequence of this.running.values()) sequence.isShared = false;
    this.resets++;
  }

  /** Copies, zeroing, writes of all that was allocated since the last step; then contexts are kept. */
  step(): void {
    const copies = this.kv.drainCopies();
    for (const [index, source] of (copies?.source ?? []).entries()) {
      this.#memory.copyWithin(copies!.target[index]! * SIZE, source * SIZE, (source + 1) * SIZE);
    }
    const fresh = new Int32Array(NUM_BLOCKS);
    const numFresh = this.kv.drainNewBlocks(fresh);
    for (const block of fresh.subarray(0, numFresh)) this.#memory.fill(0, block * SIZE, (block + 1) * SIZE);
    for (const [requestId, sequence] of this.running) this.#write(requestId, sequence);
    for (const [requestId, { tokens, length, key, isShared }] of this.running) {
      const before = this.mirror.sizeOf(0);
      this.kv.store(requestId, tokens, length);
      this.mirror.take(this.kv, key);
      if (!isShared) expect(this.mirror.sizeOf(0)).toBe(before);
    }
  }

  /** Every written token of every sequence is where its table says; the manager's own books are in order. */
  check(): void {
    this.kv.checkIntegrity();
    const hasCopies = [...this.running.values()].some(({ written, length }) => written < length);
    for (const [requestId, { tokens, length }] of hasCopies ? [] : this.running) {
      const slots = new Int32Array(length);
      this.kv.writeSlots(requestId, 0, length, slots, 0);
      expect(Array.from(slots, (slot) => this.#memory[slot])).toEqual(Array.from(tokens.subarray(0, length)));
    }
    const held = new Set([...this.running.keys()].flatMap((requestId) => this.#blocksOf(requestId)));
    const { freeBlocks, secondaryUsedBlocks } = this.kv.stats();
    expect(freeBlocks).toBe(NUM_BLOCKS - held.size);
    expect(this.mirror.sizeOf(0)).toBeLessThanOrEqual(NUM_BLOCKS);
    expect(this.mirror.sizeOf(1)).toBe(secondaryUsedBlocks);
  }

  #blocksOf(requestId: bigint): number[] {
    const table = new Int32Array(8);
    return Array.from(table.subarray(0, this.kv.writeBlockTable(requestId, table, 0, 8)));
  }

  #write(requestId: bigint, sequence: Running): void {
    const { tokens, written, length } = sequence;
    const slots = new Int32Array(length - written);
    this.kv.writeSlots(requestId, written, length, slots, 0);
    for (const [index, slot] of slots.entries()) this.#memory[slot] = tokens[written + index]!;
    sequence.written = length;
  }
}

const STEMS = ['a', 'aaaaaaaab', 'aaaaaaaabcccccccd', 'aaaacaaab', 'bbbbbbbbbbbbbbbbbbbbbbbbb'];

/** Sequences that begin alike for a while and then go their own way. */
const tokens = fc
  .tuple(
    fc.constantFrom(...STEMS),
    fc.constantFrom(...STEMS),
    fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 40, size: 'max' }),
  )
  .map((parts) => Int32Array.from(parts.join('').slice(0, MAX_SEQ_LEN), (letter) => letter.charCodeAt(0)));

const KINDS = ['add', 'add', 'grow', 'step', 'step', 'end', 'end', 'abort'];

const fields = {
  requestId: fc.bigInt({ min: 0n, max: 2n }),
  prompt: fc.nat(9),
  cut: fc.integer({ min: 0, max: 9 }),
  key: fc.constantFrom(...new Array<ReuseKey>(9).fill(PLAIN), ...OTHERS),
  priority: fc.constantFrom(null, null, null, 10, 60),
};

/** Ten prompts that are asked for again and again. */
function historyOf(kinds: readonly string[]) {
  const operation = fc.record({ kind: fc.constantFrom(...kinds), ...fields });
  return fc.record({
    prompts: fc.array(tokens, { minLength: 10, maxLength: 10 }),
    operations: fc.array(operation, { minLength: 50, maxLength: 150, size: 'max' }),
  });
}

function play(
  machine: Machine,
  { prompts, operations }: ReturnType<typeof historyOf> extends fc.Arbitrary<infer H> ? H : never,
) {
  for (const { kind, requestId, prompt, cut, key, priority } of operations) {
    const all = prompts[prompt]!;
    const isRunning = machine.running.has(requestId);
    const retention = priority === null ? {} : { retention: { ranges: [{ start: 5, priority }] } };
    if (kind === 'add' && !isRunning)
      machine.add(requestId, all, Math.max(1, all.length - cut), { key, ...retention });
    else if (kind === 'grow' && isRunning) machine.grow(requestId, 1 + cut);
    else if (kind === 'step') machine.step();
    else if (kind === 'end' && isRunning) machine.end(requestId, true);
    else if (kind === 'reset') machine.reset();
    else if (kind === 'abort' && isRunning) machine.end(requestId, false);
    machine.check();
  }
  for (const requestId of [...machine.running.keys()]) machine.end(requestId, true);
  machine.check();
  expect(machine.kv.freeBlocks).toBe(NUM_BLOCKS);
}

// Blocks of the secondary pool, and how many swaps back from it there must be for the histories to say something.
it.each([
  [0, 0],
  [1, 5],
  [5, 40],
  [40, 60],
])(
  'random histories share what the events say is there, with %i secondary blocks',
  (numSecondaryBlocks, least) => {
    let reused = 0;
    let swaps = 0;
    fc.assert(
      fc.property(historyOf(KINDS), (asked) => {
        const machine = new Machine(numSecondaryBlocks);
        play(machine, asked);
        reused += machine.reusedTokens;
        swaps += machine.kv.stats().swappedInBlocks;
      }),
      { numRuns: draws(30) },
    );
    expect(reused).toBeGreaterThan(900);
    expect(swaps).toBeGreaterThanOrEqual(least / 2);
  },
);

it.each([0, 5])(
  'resets at random moments leave nothing to be found, with %i secondary blocks',
  (numSecondaryBlocks) => {
    let resets = 0;
    let reused = 0;
    fc.assert(
      fc.property(historyOf([...KINDS, ...KINDS, 'reset']), (asked) => {
        const machine = new Machine(numSecondaryBlocks);
        play(machine, asked);
        resets += machine.resets;
        reused += machine.reusedTokens;
      }),
      { numRuns: draws(30) },
    );
    expect(resets).toBeGreaterThan(45);
    expect(reused).toBeGreaterThan(450);
  },
);
