import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ReplayBuffer } from '../../../cluster/zeromq/replay-buffer.js';

it('keeps the newest batches within both bounds', () => {
  const sizes = fc.array(fc.integer({ min: 0, max: 12 }), { maxLength: 60 });
  const bounds = fc.record({
    batches: fc.integer({ min: 1, max: 9 }),
    bytes: fc.integer({ min: 1, max: 30 }),
  });
  fc.assert(
    fc.property(sizes, bounds, (lengths, { batches, bytes }) => {
      const buffer = new ReplayBuffer(batches, bytes);
      const all = lengths.map((length, sequence) => ({ sequence, payload: new Uint8Array(length) }));
      for (const [index, batch] of all.entries()) {
        buffer.add(batch);
        let kept = all.slice(0, index + 1);
        const sum = () => kept.reduce((total, { payload }) => total + payload.length, 0);
        while (kept.length > batches || (kept.length > 0 && sum() > bytes)) kept = kept.slice(1);
        expect(buffer.from(0)).toEqual(kept);
        expect(buffer.size).toBe(kept.length);
        expect(buffer.from(index)).toEqual(kept.filter(({ sequence }) => sequence >= index));
      }
    }),
    { seed: 26 },
  );
});
