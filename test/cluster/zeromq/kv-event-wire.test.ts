import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { batchOf, KvEventWire, saltText, type WireEvent } from '../../../cluster/zeromq/kv-event-wire.js';
import type { KvCacheEvent, KvCacheEventData } from '../../../kvcache/cache-events.js';
import { cache, count, run } from '../../support/reusing-cache.js';

const adapterName = (taskId: bigint) => (taskId === 7n ? 'poet' : null);
const wire = () => new KvEventWire({ adapterName });
const numbered = (events: KvCacheEventData[], first = 0): KvCacheEvent[] =>
  events.map((data, index) => ({ eventId: first + index, data }));

/**
 * What a reader believes that is there. It refuses blocks after one that it does not have, as Dynamo's does.
 */
class Reader {
  readonly blocks = new Set<number>();

  read(events: readonly WireEvent[]): void {
    for (const { type, block_hashes = [], parent_block_hash: parent = null } of events) {
      const hashes = block_hashes as number[];
      if (parent !== null && !this.blocks.has(parent as number)) throw new Error('ParentBlockNotFound');
      if (type === 'BlockRemoved' && !hashes.every((hash) => this.blocks.has(hash)))
        throw new Error('BlockNotFound');
      if (type === 'AllBlocksCleared') this.blocks.clear();
      if (type === 'BlockStored') for (const hash of hashes) this.blocks.add(hash);
      if (type === 'BlockRemoved') for (const hash of hashes) this.blocks.delete(hash);
    }
  }
}

describe('events for routers', () => {
  it('have the fields of vLLM, and as arrays their order', () => {
    const kv = cache({ numBlocks: 8 });
    run(kv, 1n, count(20));
    const events = wire().translate(kv.drainEvents());
    const { block_hashes: hashes } = events[1]!;
    expect(events).toEqual([
      { type: 'AllBlocksCleared' },
      {
        type: 'BlockStored',
        block_hashes: [expect.any(Number), expect.any(Number)],
        parent_block_hash: null,
        token_ids: Array.from(count(16)),
        block_size: 8,
        lora_id: null,
        medium: 'GPU',
        lora_name: null,
      },
    ]);
    expect(batchOf(events, 'map', 1500)).toEqual([1.5, events, 0]);
    expect(batchOf(events, 'array', 1500)).toEqual([
      1.5,
      [['AllBlocksCleared'], ['BlockStored', hashes, null, Array.from(count(16)), 8, null, 'GPU', null]],
      0,
    ]);
  });

  it('name adapters, and salts with the first block alone', () => {
    const kv = cache({ numBlocks: 8 });
    const translator = wire();
    translator.translate(kv.drainEvents());
    run(kv, 1n, count(20), { loraId: 7n, salt: 0xabcn });
    run(kv, 2n, count(28), { loraId: 7n, salt: 0xabcn });
    run(kv, 3n, count(12), { loraId: 8n });
    const events = translator.translate(kv.drainEvents());
    expect(events.filter(({ type }) => type === 'BlockStored')).toMatchObject([
      { lora_id: 7, lora_name: 'poet', extra_keys: [['poet', 'skein-0000000000000abc'], ['poet']] },
      { parent_block_hash: expect.any(Number), extra_keys: [['poet']] },
      { lora_id: 8, lora_name: null },
    ]);
    expect(events.at(-1)).not.toHaveProperty('extra_keys');
    expect(saltText(2n ** 64n - 1n)).toBe('skein-ffffffffffffffff');
  });

  it('clear everything for a new engine, behind lost events, and once when the engine dies', () => {
    const translator = wire();
    const stored: KvCacheEventData = {
      type: 'stored',
      parentHash: null,
      blocks: [{ blockHash: 5, tokens: [1], loraId: null, cacheSalt: 0n, cacheLevel: 0, priority: 35 }],
    };
    const types = (events: WireEvent[]) => events.map(({ type }) => type);
    const created: KvCacheEventData = { type: 'created', numBlocksPerCacheLevel: [4] };
    expect(translator.lose()).toEqual([]);
    expect(types(translator.translate(numbered([created, stored])))).toEqual([
      'AllBlocksCleared',
      'BlockStored',
    ]);
    expect(types(translator.translate(numbered([stored], 2)))).toEqual(['BlockStored']);
    expect(types(translator.translate(numbered([stored], 4)))).toEqual(['AllBlocksCleared', 'BlockStored']);
    expect(types(translator.lose())).toEqual(['AllBlocksCleared']);
    expect(translator.lose()).toEqual([]);
    expect(types(translator.translate(numbered([created, stored])))).toEqual([
      'AllBlocksCleared',
      'BlockStored',
    ]);
    const moved: KvCacheEventData = {
      type: 'updated',
      blockHash: 5,
      cacheLevel: { oldValue: 0, newValue: 1 },
    };
    expect(translator.translate(numbered([moved], 2))).toEqual([]);
  });

  it('let a reader believe what is there, and never more, whatever is lost', () => {
    const step = fc.record({
      from: fc.integer({ min: 0, max: 3 }),
      length: fc.integer({ min: 1, max: 40 }),
      salt: fc.constantFrom(0n, 1n),
      isLost: fc.boolean(),
    });
    const history = fc.tuple(fc.boolean(), fc.array(step, { minLength: 1, maxLength: 30 }));
    let cleared = 0;
    fc.assert(
      fc.property(history, ([maysLose, steps]) => {
        const kv = cache({ numBlocks: 9, maxEvents: 1000 });
        const translator = wire();
        const truth = new Set<number>();
        const reader = new Reader();
        for (const [index, { from, length, salt, isLost }] of steps.entries()) {
          run(kv, BigInt(index), count(length, from * 100), { salt });
          const events = kv.drainEvents();
          for (const { data } of events) {
            if (data.type === 'stored') for (const { blockHash } of data.blocks) truth.add(blockHash);
            if (data.type === 'removed') for (const hash of data.blockHashes) truth.delete(hash);
          }
          // Too many events of one iteration push out the oldest, never all.
          const isShort = maysLose && isLost && events.length > 1;
          const seen = translator.translate(isShort ? events.slice(1) : events);
          cleared += seen.filter(({ type }) => type === 'AllBlocksCleared').length;
          reader.read(seen);
          for (const block of reader.blocks) expect(truth).toContain(block);
          if (!maysLose) expect(reader.blocks).toEqual(truth);
        }
      }),
      { seed: 26, numRuns: 150 },
    );
    expect(cleared).toBeGreaterThan(150);
  });
});
