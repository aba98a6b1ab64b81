import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type InstanceLimits,
  RateLimiter,
  type ResourceNeed,
} from '../../../scheduler/tensors/rate-limiter.js';
import { draws } from '../../support/scale.js';

interface Named {
  name: string;
}

const need = (name: string, count: number, isGlobal = false): ResourceNeed => ({ name, count, isGlobal });

function limiterOf(instances: Record<string, Partial<InstanceLimits>>, given: Record<string, number> = {}) {
  const limiter = new RateLimiter<Named>(new Map(Object.entries(given)));
  const named = Object.fromEntries(Object.keys(instances).map((name) => [name, { name }]));
  for (const [name, { needs = [], priority = 1 }] of Object.entries(instances))
    limiter.add(named[name]!, { needs, priority });
  const want = (...names: string[]) => {
    for (const name of names) limiter.want(named[name]!, true);
  };
  const next = () => limiter.next()?.name ?? null;
  const end = (name: string) => limiter.release(named[name]!);
  return { limiter, named, want, next, end };
}

const R = [need('R', 1)];

/** Who executes where all instances always have something to run, and one execution ends before the next begins. */
function series(instances: Record<string, Partial<InstanceLimits>>, turns: number): string {
  const { want, next, end } = limiterOf(instances);
  let text = '';
  for (let i = 0; i < turns; i++) {
    want(...Object.keys(instances));
    const name = next()!;
    text += name;
    end(name);
  }
  return text;
}

describe('copies of resources', () => {
  const A = { needs: [need('R1', 4), need('R2', 4)] };
  const B = { needs: [need('R2', 5), need('R3', 10), need('R4', 5)] };
  const C = { needs: [need('R1', 1), need('R3', 7), need('R4', 2)] };

  it('are as many as the largest need, as in the example of the document', () => {
    const { limiter, named } = limiterOf({ A, B, C });
    const limits = () => Object.fromEntries(limiter.uses.map(({ name, limit }) => [name, limit]));
    expect(limits()).toEqual({ R1: 4, R2: 5, R3: 10, R4: 5 });
    limiter.remove(named.B!);
    expect(limits()).toEqual({ R1: 4, R2: 4, R3: 7, R4: 2 });
    limiter.remove(named.A!);
    limiter.remove(named.C!);
    expect(limits()).toEqual({});
  });

  it('are as many as are given, and never too few for an instance', () => {
    const { limiter } = limiterOf({ A }, { R1: 10, R3: 9 });
    expect(limiter.uses.map(({ name, limit }) => [name, limit])).toEqual([
      ['R1', 10],
      ['R2', 4],
    ]);
    expect(limiter.problem(B.needs)).toEqual({ need: need('R3', 10), limit: 9 });
    expect(limiter.problem(C.needs)).toBeNull();
    expect(() => limiter.add({ name: 'B' }, { ...B, priority: 1 })).toThrow(TypeError);
  });

  it('are of the system or of a device, not both', () => {
    const { limiter } = limiterOf({ A });
    expect(limiter.problem([need('R1', 1, true)])).toEqual({ need: need('R1', 1, true), limit: null });
    expect(limiter.problem([need('N', 1, true), need('N', 1)])).toEqual({ need: need('N', 1), limit: null });
  });

  it('are free when an instance that has them is gone', () => {
    const { limiter, named, want, next } = limiterOf({ A: { needs: R }, B: { needs: R } });
    want('A', 'B');
    expect([next(), next()]).toEqual(['A', null]);
    limiter.remove(named.A!);
    expect(next()).toBe('B');
    limiter.remove(named.A!); // once more changes nothing
    expect(limiter.uses).toEqual([{ name: 'R', isGlobal: false, limit: 1, used: 1 }]);
  });
});

describe('turns', () => {
  it('of priority 2 are half as many as of priority 1', () => {
    expect(series({ a: { needs: R }, b: { needs: R, priority: 2 } }, 12)).toBe('ababaabaabaa');
    const text = series({ a: { needs: R }, b: { needs: R, priority: 2 }, c: { needs: R, priority: 4 } }, 700);
    const count = (name: string) => text.split(name).length - 1;
    expect([count('a'), count('b'), count('c')]).toEqual([400, 200, 100]);
  });

  it('are of the one that waits longest where the counts are equal', () => {
    expect(series({ a: { needs: R }, b: { needs: R }, c: { needs: R } }, 7)).toBe('abcabca');
  });

  it('come as soon as the resources are free, of which one with the first turn keeps its own', () => {
    const { want, next, end } = limiterOf(
      {
        small: { needs: [need('R', 1)] },
        large: { needs: [need('R', 2)], priority: 1 },
        third: { needs: [need('R', 1)], priority: 3 },
        other: { needs: [need('Q', 1)], priority: 9 },
        free: { needs: [], priority: 9 },
      },
      { R: 2 },
    );
    want('small');
    expect(next()).toBe('small');
    want('large', 'third', 'other', 'free');
    // large has the first turn and waits for R: third, which needs R, does not pass; those without R do.
    expect([next(), next(), next()]).toEqual(['other', 'free', null]);
    end('small');
    expect([next(), next()]).toEqual(['large', null]);
    end('large');
    expect(next()).toBe('third');
  });

  it('that bring nothing do not count, nor those that go on', () => {
    const { limiter, named, want, next, end } = limiterOf({ a: { needs: R }, b: { needs: R } });
    want('a');
    expect(next()).toBe('a');
    limiter.giveUp(named.a!);
    expect(next()).toBeNull();
    want('a', 'b');
    expect(next()).toBe('a');
    end('a');
    limiter.want(named.a!, true, { goesOn: true });
    expect(next()).toBe('b');
    end('b');
    expect(next()).toBe('a');
    end('a');
    want('a', 'b');
    expect(next()).toBe('a'); // both have 1, and a waited first
  });

  it('of one that came later begin with those of the others', () => {
    const { limiter, named, want, next, end } = limiterOf({ a: { needs: R } });
    for (let i = 0; i < 100; i++) {
      want('a');
      end(next()!);
    }
    named.b = { name: 'b' };
    limiter.add(named.b, { needs: R, priority: 1 });
    let text = '';
    for (let i = 0; i < 6; i++) {
      want('a', 'b');
      const name = next()!;
      text += name;
      end(name);
    }
    expect(text).toBe('ababab');
  });

  it('are not of those that want none any more', () => {
    const { limiter, named, want, next } = limiterOf({ a: { needs: R }, b: { needs: R } });
    want('a', 'b');
    limiter.want(named.a!, false);
    expect([limiter.waiting, next(), limiter.waiting]).toEqual([1, 'b', 0]);
  });
});

describe('any history', () => {
  const needs = fc.uniqueArray(
    fc.record({ name: fc.constantFrom('P', 'Q', 'R'), count: fc.integer({ min: 1, max: 4 }) }),
    { selector: ({ name }) => name, maxLength: 3 },
  );
  const step = fc.record({
    what: fc.constantFrom('want', 'want', 'unwant', 'end', 'add', 'remove'),
    who: fc.nat({ max: 7 }),
    limits: fc.record({ needs, priority: fc.integer({ min: 1, max: 3 }) }),
  });

  it('keeps within the copies, leaves nobody idle who could run, and starves nobody', () => {
    const history = fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const limiter = new RateLimiter<Named>(new Map([['P', 5]]));
      const here: (Named & { needs: ResourceNeed[] })[] = [];
      const running = new Set<Named>();
      const run = () => {
        for (let one = limiter.next(); one !== null; one = limiter.next()) {
          expect(running.has(one)).toBe(false);
          running.add(one);
        }
        for (const { name, limit, used } of limiter.uses) {
          const held = here
            .filter((one) => running.has(one))
            .flatMap((one) => one.needs.filter((own) => own.name === name))
            .reduce((sum, { count }) => sum + count, 0);
          expect(used).toBe(held);
          // A limit that has become smaller takes nothing away.
          if (name === 'P') expect(used).toBeLessThanOrEqual(limit);
        }
        // Where nothing runs, nothing waits: the first that waits can always have what it needs.
        if (running.size === 0) expect(limiter.waiting).toBe(0);
      };
      for (const { what, who, limits } of steps) {
        const one = here[who % Math.max(1, here.length)];
        if (what === 'add' && here.length < 8) {
          const own = { ...limits, needs: limits.needs.map((given) => ({ ...given, isGlobal: false })) };
          const added = { name: `${here.length}`, needs: own.needs };
          here.push(added);
          limiter.add(added, own);
        } else if (one === undefined) continue;
        else if (what === 'want') limiter.want(one, true);
        else if (what === 'unwant') limiter.want(one, false);
        else if (what === 'end' && running.delete(one)) limiter.release(one);
        else if (what === 'remove') {
          here.splice(here.indexOf(one), 1);
          running.delete(one);
          limiter.remove(one);
        }
        run();
      }
      // All that run end in turn: every request that waits has its turn.
      for (let i = 0; i < 100 && running.size > 0; i++) {
        for (const one of [...running]) {
          running.delete(one);
          limiter.release(one);
        }
        run();
      }
      expect([running.size, limiter.waiting]).toEqual([0, 0]);
    });
    fc.assert(history, { numRuns: draws(100) });
  });
});
