import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Holding,
  type MemoryHold,
  MemoryLedger,
} from '../../../../../src/server/web/memory/held-memory.js';
import { draws } from '../../../../support/scale.js';

const LIMIT = 6400;

function held(
  ledger: MemoryLedger,
  bytes: number,
  { key = '', holding = 'request' as Holding } = {},
): MemoryHold {
  const hold = ledger.open(holding, key);
  expect(hold.resize(bytes)).toBe(true);
  return hold;
}

describe('the ledger of held memory', () => {
  it('lets a single request fill the limit, and no more', () => {
    const ledger = new MemoryLedger({ limit: LIMIT });
    const hold = ledger.open('request');
    expect(hold.resize(LIMIT + 1)).toBe(false);
    expect(ledger.held).toBe(0);
    expect(hold.resize(LIMIT)).toBe(true);
    expect(ledger.open('request').resize(1)).toBe(false);
    hold.release();
    expect(ledger.held).toBe(0);
  });

  it('leaves its last eighth to small requests, beside others', () => {
    const ledger = new MemoryLedger({ limit: LIMIT });
    const first = held(ledger, 5000);
    const large = ledger.open('request');
    expect(large.resize(601)).toBe(false);
    expect(large.resize(600)).toBe(true);
    held(ledger, 100);
    // A request that is known to become large counts as large from the beginning.
    const growing = ledger.open('request');
    growing.expected = 1000;
    expect(growing.resize(100)).toBe(false);
    first.release();
    expect(growing.resize(1000)).toBe(true);
  });

  it('does not let what is stored take the last eighth', () => {
    const ledger = new MemoryLedger({ limit: LIMIT });
    const stored = ledger.open('stored');
    expect(stored.resize(LIMIT)).toBe(false);
    expect(stored.resize((LIMIT * 7) / 8)).toBe(true);
    expect(ledger.heldFor('stored')).toBe(5600);
    held(ledger, 100);
  });

  it('gives one of several keys half of it, or a single request', () => {
    const ledger = new MemoryLedger({ limit: LIMIT, isShared: () => true });
    const one = held(ledger, 3000, { key: 'alice' });
    expect(ledger.open('request', 'alice').resize(201)).toBe(false);
    held(ledger, 200, { key: 'alice' });
    held(ledger, 2000, { key: 'bob' });
    one.release();
    expect(ledger.open('request', 'carol').resize(3400)).toBe(true);
  });

  it('never drifts, and never holds more than its limit, whatever comes and goes', () => {
    const step = fc.record({
      hold: fc.nat({ max: 9 }),
      bytes: fc.oneof(
        fc.nat({ max: 200 }),
        fc.nat({ max: 8000 }),
        fc.double({ min: 0, max: 900, noNaN: true }),
      ),
      key: fc.constantFrom('alice', 'bob', ''),
      holding: fc.constantFrom<Holding>('request', 'request', 'stored'),
      does: fc.constantFrom('resize', 'resize', 'resize', 'release', 'open'),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), fc.boolean(), (steps, isShared) => {
        const ledger = new MemoryLedger({ limit: LIMIT, isShared: () => isShared });
        const open = new Map<number, MemoryHold>();
        const all: MemoryHold[] = [];
        for (const { hold: place, bytes, key, holding, does } of steps) {
          const hold = open.get(place);
          if (does === 'open' || hold === undefined) {
            open.set(place, ledger.open(holding, key));
            all.push(open.get(place)!);
          } else if (does === 'release') {
            hold.release();
            hold.release();
            expect(hold.resize(1)).toBe(false);
          } else {
            const before = hold.bytes;
            const fits = hold.hasRoomFor(Math.ceil(bytes));
            expect(hold.resize(bytes)).toBe(fits);
            expect(hold.bytes).toBe(fits ? Math.ceil(bytes) : before);
          }
          const sum = all.reduce((total, one) => total + one.bytes, 0);
          expect(ledger.held).toBe(sum);
          expect(ledger.heldFor('request') + ledger.heldFor('stored')).toBe(sum);
          expect(sum).toBeLessThanOrEqual(LIMIT);
        }
        for (const hold of all) hold.release();
        expect([ledger.held, ledger.heldFor('request'), ledger.heldFor('stored'), ledger.numKeys]).toEqual([
          0, 0, 0, 0,
        ]);
      }),
      { seed: 1, numRuns: draws(80) },
    );
  });
});
