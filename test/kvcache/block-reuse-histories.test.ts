import fc from 'fast-check';
import { expect, it } from 'vitest';
import { KvCacheManager } from '../../kvcache/kv-cache-manager.js';

const SIZE = 8;
const NUM_BLOCKS = 12;
const MAX_SEQ_LEN = 64;

/** What the events say is cached: each node's tokens from the start of its sequence, as text. */
class Mirror {
  readonly #paths = new Map<number, string>();
  readonly #salts = new Map<number, bigint>();

  take(kv: KvCacheManager, salt: bigint): void {
    for (const { data } of kv.drainEvents()) {
      if (data.type === 'removed') for (const hash of data.blockHashes) this.#paths.delete(hash);
      if (data.type !== 'stored') continue;
      let path = data.parentHash === null ? '' : this.#paths.get(data.parentHash)!;
      for (const { blockHash, tokens } of data.blocks) {
        expect(this.#paths.has(blockHash)).toBe(false);
        path += String.fromCharCode(...tokens);
        this.#paths.set(blockHash, path);
        this.#salts.set(blockHash, salt);
      }
    }
  }

  get size(): number {
    return this.#paths.size;
  }

  /** The longest beginning of the prompt without its last token, full blocks first, then a part of one. */
  find(prompt: Int32Array, salt: bigint): number {
    const text = String.fromCharCode(...prompt.subarray(0, prompt.length - 1));
    const paths = [...this.#paths].filter(([hash]) => this.#salts.get(hash) === salt).map(([, path]) => path);
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
  length: number;
  salt: bigint;
}

/** The manager with a memory behind it that holds token ids, as an executor's holds keys and values. */
class Machine {
  readonly kv = new KvCacheManager({
    numBlocks: NUM_BLOCKS,
    tokensPerBlock: SIZE,
    maxSeqLen: MAX_SEQ_LEN,
    enableBlockReuse: true,
    maxEvents: 10_000,
  });
  readonly running = new Map<bigint, Running>();
  readonly mirror = new Mirror();
  reusedTokens = 0;
  readonly #memory = new Int32Array(NUM_BLOCKS * SIZE).fill(-1);

  add(requestId: bigint, tokens: Int32Array, promptLength: number, salt: bigint): void {
    const expected = this.mirror.find(tokens.subarray(0, promptLength), salt);
    const free = this.kv.freeBlocks;
    const fits = this.kv.addSequence(requestId, promptLength, { tokens, salt });
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
    this.running.set(requestId, { tokens, length: promptLength, salt });
    this.#write(requestId, reusedTokens, promptLength);
    this.kv.store(requestId, tokens, promptLength);
    this.mirror.take(this.kv, salt);
  }

  grow(requestId: bigint, by: number): void {
    const sequence = this.running.get(requestId)!;
    const length = Math.min(sequence.tokens.length, sequence.length + by);
    if (length === sequence.length || !this.kv.growSequence(requestId, length)) return;
    this.#write(requestId, sequence.length, length);
    sequence.length = length;
    this.mirror.take(this.kv, sequence.salt);
  }

  end(requestId: bigint, stores: boolean): void {
    const { tokens, length, salt } = this.running.get(requestId)!;
    if (stores) this.kv.store(requestId, tokens, length);
    this.kv.freeSequence(requestId);
    this.running.delete(requestId);
    this.mirror.take(this.kv, salt);
  }

  /** Every token of every sequence is where its table says; the manager's own books are in order. */
  check(): void {
    this.kv.checkIntegrity();
    for (const [requestId, { tokens, length }] of this.running) {
      const slots = new Int32Array(length);
      this.kv.writeSlots(requestId, 0, length, slots, 0);
      expect(Array.from(slots, (slot) => this.#memory[slot])).toEqual(Array.from(tokens.subarray(0, length)));
    }
    const held = new Set([...this.running.keys()].flatMap((requestId) => this.#blocksOf(requestId)));
    expect(this.kv.freeBlocks).toBe(NUM_BLOCKS - held.size);
  }

  #blocksOf(requestId: bigint): number[] {
    const table = new Int32Array(8);
    return Array.from(table.subarray(0, this.kv.writeBlockTable(requestId, table, 0, 8)));
  }

  /** What a step does: copies, zeroing, writes. */
  #write(requestId: bigint, start: number, end: number): void {
    const copies = this.kv.drainCopies();
    for (const [index, source] of (copies?.source ?? []).entries()) {
      this.#memory.copyWithin(copies!.target[index]! * SIZE, source * SIZE, (source + 1) * SIZE);
    }
    const fresh = new Int32Array(NUM_BLOCKS);
    const numFresh = this.kv.drainNewBlocks(fresh);
    for (const block of fresh.subarray(0, numFresh)) this.#memory.fill(0, block * SIZE, (block + 1) * SIZE);
    const { tokens } = this.running.get(requestId)!;
    const slots = new Int32Array(end - start);
    this.kv.writeSlots(requestId, start, end, slots, 0);
    for (let position = start; position < end; position++)
      this.#memory[slots[position - start]!] = tokens[position]!;
  }
}

const STEMS = ['a', 'aaaaaaaab', 'aaaaaaaabcccccccd', 'aaaacaaab', 'bbbbbbbbbbbbbbbbbbbbbbbbb'];

/** Sequences that begin alike for a while and then go their own way. */
const tokens = fc
  .tuple(
    fc.constantFrom(...STEMS),
    fc.constantFrom(...STEMS),
    fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 30 }),
  )
  .map((parts) => Int32Array.from(parts.join('').slice(0, MAX_SEQ_LEN), (letter) => letter.charCodeAt(0)));

const operation = fc.record({
  kind: fc.constantFrom('add', 'add', 'grow', 'end', 'abort'),
  requestId: fc.bigInt({ min: 0n, max: 4n }),
  tokens,
  cut: fc.integer({ min: 0, max: 9 }),
  salt: fc.constantFrom(0n, 0n, 0n, 1n),
});

it('random histories share exactly what the events say is there, and never a wrong token', () => {
  let reused = 0;
  fc.assert(
    fc.property(fc.array(operation, { minLength: 30, maxLength: 80 }), (operations) => {
      const machine = new Machine();
      for (const { kind, requestId, tokens: all, cut, salt } of operations) {
        const isRunning = machine.running.has(requestId);
        if (kind === 'add' && !isRunning) machine.add(requestId, all, Math.max(1, all.length - cut), salt);
        else if (kind === 'grow' && isRunning) machine.grow(requestId, 1 + cut);
        else if (kind === 'end' && isRunning) machine.end(requestId, true);
        else if (kind === 'abort' && isRunning) machine.end(requestId, false);
        machine.check();
      }
      for (const requestId of [...machine.running.keys()]) machine.end(requestId, true);
      machine.check();
      expect(machine.kv.freeBlocks).toBe(NUM_BLOCKS);
      expect(machine.mirror.size).toBeLessThanOrEqual(NUM_BLOCKS);
      reused += machine.reusedTokens;
    }),
    { numRuns: 300 },
  );
  expect(reused).toBeGreaterThan(10_000);
});
