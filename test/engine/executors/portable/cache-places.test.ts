import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { slotOf, staysInCache } from '../../../../engine/executors/portable/cache-places.js';
import { resolveWindow } from '../../../../kvcache/kv-cache-options.js';
import { makeStepBatch } from '../../../../tools/support/step-batch.js';
import { isAttendedTo, placesBefore } from '../../../support/attended-places.js';
import { draws } from '../../../support/scale.js';

const TOKENS_PER_BLOCK = 8;

const sequences = fc
  .record({
    chunks: fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 6 }),
    window: fc.option(fc.tuple(fc.integer({ min: 1, max: 50 }), fc.nat(20)), { nil: null }),
    layerWindow: fc.option(fc.integer({ min: 1, max: 30 }), { nil: undefined }),
  })
  // With sinks all layers are alike.
  .filter(
    ({ window, layerWindow }) =>
      window === null || (window[1] < window[0] && (layerWindow === undefined || window[1] === 0)),
  );

describe('places of the cache', () => {
  it('hold, before every chunk, the places that its rows attend to and no others are named', () => {
    fc.assert(
      fc.property(sequences, ({ chunks, window: given, layerWindow }) => {
        const maxSeqLen = 240;
        const window = resolveWindow({
          maxSeqLen,
          tokensPerBlock: TOKENS_PER_BLOCK,
          ...(given === null ? {} : { maxAttentionWindow: given[0], sinkTokenLength: given[1] }),
        });
        const shape = { tokensPerBlock: TOKENS_PER_BLOCK, window };
        const numBlocks = window?.maxBlocks ?? maxSeqLen / TOKENS_PER_BLOCK;
        const blocks = Array.from({ length: numBlocks }, (_, i) => numBlocks - 1 - i);
        const heldPlaces = new Int32Array(numBlocks * TOKENS_PER_BLOCK).fill(-1);
        let cached = 0;
        for (const chunk of chunks) {
          const length = cached + chunk;
          const batch = makeStepBatch([{ tokens: new Array(length).fill(1), cached, blocks }], {
            tokensPerBlock: TOKENS_PER_BLOCK,
            inverseFrequencies: new Float32Array(1),
            window,
          });
          const { sinks, recent, end } = placesBefore(batch, 0, window, layerWindow);
          expect(end).toBe(cached);
          for (let place = 0; place < cached; place++) {
            const isNamed = place < sinks || place >= recent;
            // The first row of the chunk sees all that any of them sees.
            expect(isNamed).toBe(isAttendedTo(place, cached, window, layerWindow));
            if (isNamed) expect(heldPlaces[slotOf(batch, 0, place, shape)]).toBe(place);
          }
          const written = new Map<number, number>();
          for (let place = cached; place < length; place++) {
            expect(slotOf(batch, 0, place, shape)).toBe(batch.slots[place - cached]);
            const slot = batch.slots[place - cached]!;
            heldPlaces[slot] = place;
            if (!staysInCache(place, length, shape)) continue;
            expect(written.has(slot)).toBe(false);
            written.set(slot, place);
          }
          for (const slot of batch.slots) expect(written.get(slot)).toBe(heldPlaces[slot]);
          cached = length;
        }
      }),
      { numRuns: draws(80) },
    );
  });
});
