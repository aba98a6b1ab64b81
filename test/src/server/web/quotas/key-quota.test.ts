import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Amounts,
  amountOf,
  DAY_MS,
  type KeyLimits,
  LIMIT_NAMES,
  type LimitName,
} from '../../../../../src/server/web/quotas/key-limits.js';
import { type Draw, KeyQuota, type Taken } from '../../../../../src/server/web/quotas/key-quota.js';
import { NO_USAGE } from '../../../../../src/server/web/quotas/key-usage.js';
import {
  nothingShared,
  readShared,
  type SharedQuota,
  sharedText,
} from '../../../../../src/server/web/quotas/shared-quota.js';
import { draws } from '../../../../support/scale.js';

const MINUTE_MS = 60_000;

/**
 * Amounts that were let in within each window of each limit, by any server: what is compared with the limits.
 */
class Ledger {
  readonly #sums = new Map<string, number>();

  add({ windows }: Taken, amounts: Amounts, sign: 1 | -1): void {
    for (const [name, window] of windows) {
      const key = `${name} ${window}`;
      this.#sums.set(key, (this.#sums.get(key) ?? 0) + sign * amountOf(name, amounts));
    }
  }

  check(limits: KeyLimits): void {
    for (const [key, sum] of this.#sums) {
      const limit = limits[key.split(' ')[0] as LimitName]!;
      if (sum > limit) throw new Error(`${sum} of ${limit} were let in: ${key}`);
    }
  }
}

/** What becomes of a write: it counts, it counts and its answer is lost, or it does not come. */
type Fate = 'written' | 'unheard' | 'lost';

/** A write of a server that was begun: it was made for the record as it was then. */
interface Writing {
  server: Server;
  draw: Draw;
  revision: number;
  isSpare: boolean;
  amounts: Amounts | null;
}

interface Server {
  quota: KeyQuota;
  skewMs: number;
  running: { taken: Taken; amounts: Amounts }[];
  /** It changes one record at a time. */
  isWriting: boolean;
}

const FATE = fc.constantFrom<Fate>('written', 'written', 'written', 'unheard', 'lost');
const EVENT = fc.oneof(
  fc.record({
    kind: fc.constant('ask' as const),
    server: fc.nat(3),
    tokens: fc.integer({ min: 1, max: 30 }),
  }),
  fc.record({ kind: fc.constant('write' as const), index: fc.nat(9), fate: FATE }),
  fc.record({
    kind: fc.constant('settle' as const),
    server: fc.nat(3),
    share: fc.double({ min: 0, max: 1, noNaN: true }),
  }),
  fc.record({ kind: fc.constant('flush' as const), server: fc.nat(3) }),
  fc.record({ kind: fc.constant('die' as const), server: fc.nat(3) }),
  fc.record({ kind: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 40_000 }) }),
);
const LIMIT = fc.integer({ min: 1, max: 100 });
const CASE = fc.record({
  limits: fc.record(
    Object.fromEntries(LIMIT_NAMES.map((name) => [name, LIMIT])) as Record<LimitName, typeof LIMIT>,
    { requiredKeys: [] },
  ),
  slice: fc.constantFrom(0.05, 0.3, 1),
  skewsMs: fc.array(fc.integer({ min: -200_000, max: 200_000 }), { minLength: 4, maxLength: 4 }),
  events: fc.array(EVENT, { minLength: 20, maxLength: 120 }),
});

/** Servers that share a key's record, over a store that may lose what is said to it. */
class Fleet {
  readonly ledger = new Ledger();
  readonly writings: Writing[] = [];
  readonly #limits: KeyLimits;
  readonly #slice: number;
  readonly servers: Server[];
  #record: { text: string; revision: number } = { text: '', revision: 0 };
  #nowMs = 10 * DAY_MS - 90_000;

  constructor(limits: KeyLimits, slice: number, skewsMs: readonly number[]) {
    this.#limits = limits;
    this.#slice = slice;
    this.servers = skewsMs.map((skewMs) => ({
      quota: new KeyQuota(),
      skewMs,
      running: [],
      isWriting: false,
    }));
  }

  pass(ms: number): void {
    this.#nowMs += ms;
  }

  #timeOf({ skewMs }: Server): number {
    return this.#nowMs + skewMs;
  }

  ask(server: Server, amounts: Amounts): void {
    const nowMs = this.#timeOf(server);
    if (server.quota.tooLarge(amounts, this.#limits) !== null) return;
    if (!server.quota.lacks(amounts, this.#limits, nowMs)) {
      const taken = server.quota.take(amounts, this.#limits, nowMs);
      server.running.push({ taken, amounts });
      this.ledger.add(taken, amounts, 1);
    } else if (!server.isWriting) {
      const before = readShared(this.#record.text);
      server.quota.look(before);
      const draw = server.quota.draw(before, amounts, this.#limits, this.#slice, nowMs);
      if ('after' in draw) this.#begin(server, draw, false, amounts);
    }
  }

  flush(server: Server): void {
    if (server.isWriting) return;
    const before = readShared(this.#record.text);
    const draw = server.quota.spare(before, this.#limits, true, this.#timeOf(server));
    this.#begin(server, draw, true, null);
  }

  #begin(server: Server, draw: Draw, isSpare: boolean, amounts: Amounts | null): void {
    server.isWriting = true;
    this.writings.push({ server, draw, revision: this.#record.revision, isSpare, amounts });
  }

  /** The end of a write, which the record may have got ahead of. */
  write(index: number, fate: Fate): void {
    const [writing] = this.writings.splice(index, 1);
    if (writing === undefined) return;
    const { server, draw, revision, isSpare, amounts } = writing;
    server.isWriting = false;
    if (fate === 'lost') return;
    const isFirst = this.#record.revision === revision;
    if (isFirst) this.#record = { text: sharedText(draw.after), revision: revision + 1 };
    // Where no answer comes it is unknown which of both it was.
    if (fate === 'unheard') return;
    if (!isFirst && isSpare) server.quota.keep(draw);
    if (!isFirst) return;
    if (isSpare) server.quota.gaveBack(draw);
    else server.quota.accept(draw);
    if (amounts !== null) this.ask(server, amounts);
  }

  settle(server: Server, share: number): void {
    const [first] = server.running.splice(0, 1);
    if (first === undefined) return;
    const used = { requests: first.amounts.requests, tokens: Math.floor(share * first.amounts.tokens) };
    server.quota.settle(first.taken, used);
    this.ledger.add(first.taken, first.amounts, -1);
    this.ledger.add(first.taken, used, 1);
  }

  /** It ends without a word: another one takes its place, and what it has begun may still be written. */
  die(index: number): void {
    const { skewMs } = this.servers[index]!;
    this.servers[index] = { quota: new KeyQuota(), skewMs, running: [], isWriting: false };
  }
}

describe('the limits of a key', () => {
  it('are never exceeded, whoever dies, whatever is lost, and whatever clocks show', () => {
    fc.assert(
      fc.property(CASE, ({ limits, slice, skewsMs, events }) => {
        const given = limits as KeyLimits;
        const fleet = new Fleet(given, slice, skewsMs);
        for (const event of events) {
          if (event.kind === 'ask')
            fleet.ask(fleet.servers[event.server]!, { requests: 1, tokens: event.tokens });
          else if (event.kind === 'write')
            fleet.write(event.index % Math.max(1, fleet.writings.length), event.fate);
          else if (event.kind === 'settle') fleet.settle(fleet.servers[event.server]!, event.share);
          else if (event.kind === 'flush') fleet.flush(fleet.servers[event.server]!);
          else if (event.kind === 'die') fleet.die(event.server);
          else fleet.pass(event.ms);
          fleet.ledger.check(given);
        }
      }),
      { numRuns: draws(300) },
    );
  });

  const LIMITS: KeyLimits = { tokens_per_minute: 100 };
  const need = (tokens: number): Amounts => ({ requests: 1, tokens });
  /** Draws for a server, and says what is written. */
  const drawn = (quota: KeyQuota, shared: SharedQuota, tokens: number, slice: number, nowMs = 0) => {
    const draw = quota.draw(shared, need(tokens), LIMITS, slice, nowMs);
    if (!('after' in draw)) return draw;
    quota.accept(draw);
    return draw.after;
  };

  it('are dealt by slices, of which the rest is found by others once it is given back', () => {
    const [a, b] = [new KeyQuota(), new KeyQuota()];
    const first = drawn(a, nothingShared(), 10, 0.6) as SharedQuota;
    expect(first.windows).toEqual({ tokens_per_minute: { window: 0, granted: 60 } });
    a.take(need(10), LIMITS, 0);
    expect(a.stateOf('tokens', LIMITS, 15_000)).toEqual({
      ...{ name: 'tokens_per_minute', limit: 100, remaining: 90, resetMs: 45_000 },
    });
    expect(drawn(b, first, 50, 0.6)).toEqual({
      ...{ name: 'tokens_per_minute', limit: 100, window: 0, wanted: 50, remaining: 40, resetMs: MINUTE_MS },
    });
    // It was busy a moment ago.
    expect([a.hasNews(LIMITS, 0), a.hasNews(LIMITS, 0)]).toEqual([false, true]);
    const back = a.spare(first, LIMITS, true, 0);
    expect(a.lacks(need(1), LIMITS, 0)).toBe(true);
    a.gaveBack(back);
    expect(back.after.windows).toEqual({ tokens_per_minute: { window: 0, granted: 10 } });
    expect(drawn(b, back.after, 90, 0.6)).toMatchObject({ windows: { tokens_per_minute: { granted: 100 } } });
  });

  it('begin anew with the next window, into which nothing of the one before comes back', () => {
    const quota = new KeyQuota();
    drawn(quota, nothingShared(), 100, 1);
    const taken = quota.take(need(100), LIMITS, MINUTE_MS - 1);
    const next = drawn(quota, nothingShared(), 60, 1, MINUTE_MS) as SharedQuota;
    expect(next.windows).toEqual({ tokens_per_minute: { window: 1, granted: 100 } });
    quota.take(need(60), LIMITS, MINUTE_MS);
    quota.settle(taken, need(0));
    expect(quota.lacks(need(41), LIMITS, MINUTE_MS)).toBe(true);
    expect(quota.lacks(need(40), LIMITS, MINUTE_MS)).toBe(false);
  });

  it('follow others into a window that the own clock has not come to', () => {
    const quota = new KeyQuota();
    const shared: SharedQuota = {
      ...nothingShared(),
      windows: { tokens_per_minute: { window: 5, granted: 70 } },
    };
    expect(drawn(quota, shared, 31, 1)).toMatchObject({ window: 5, remaining: 30 });
    expect(drawn(quota, shared, 30, 1)).toMatchObject({
      windows: { tokens_per_minute: { window: 5, granted: 100 } },
    });
    const taken = quota.take(need(30), LIMITS, 0);
    expect(taken.windows.get('tokens_per_minute')).toBe(5);
  });

  it('count what a day has taken, once, and a new day from nothing', () => {
    const quota = new KeyQuota();
    const usage = { requests: 1, promptTokens: 5, cachedTokens: 2, completionTokens: 7 };
    quota.count(usage);
    const told = quota.spare(nothingShared(), {}, false, DAY_MS);
    quota.count(usage);
    quota.gaveBack(told);
    expect(told.after).toMatchObject({ day: 1, usage });
    expect(quota.untold).toEqual(usage);
    const second = quota.spare(told.after, {}, false, DAY_MS);
    quota.gaveBack(second);
    expect(second.after.usage).toMatchObject({ requests: 2, promptTokens: 10, completionTokens: 14 });
    expect(quota.untold).toEqual(NO_USAGE);
    quota.count(usage);
    expect(quota.spare(second.after, {}, false, 2 * DAY_MS).after).toMatchObject({ day: 2, usage });
  });

  it.each([
    '',
    'x',
    '7',
    'null',
    '{"windows":{"tokens_per_minute":{"window":-1,"granted":"9"}},"day":1.5,"usage":{}}',
  ])('take a record that is none as nothing: %s', (text) =>
    expect(readShared(text)).toEqual(nothingShared()),
  );
});
