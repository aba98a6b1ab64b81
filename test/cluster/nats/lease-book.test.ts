import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Frame, LeaseBook } from '../../../cluster/nats/lease-book.js';
import type { AttemptRules } from '../../../host/attempt-faults.js';
import { draws } from '../../support/scale.js';
import { type LeaseAnswer, type LeaseEvent, SlowLeaseBook } from './oracle.js';

const RULES: AttemptRules = { maxFruitlessAttempts: 3, maxLostAttempts: 5, maxAttempts: 8 };

function tell(book: LeaseBook, event: LeaseEvent): LeaseAnswer {
  if (event.kind === 'add') book.add(event.id, event.numSequences);
  if (event.kind === 'take') return String(book.take(event.id, event.attempt, event.worker));
  if (event.kind === 'frame') {
    const verdict = book.accept(event.worker, event.frame);
    return verdict.kind === 'take' ? `take ${verdict.skip}` : verdict.kind;
  }
  if (event.kind === 'fall') return book.fall(event.id, event.why);
  if (event.kind === 'leave') book.leave(event.id, event.sequence);
  if (event.kind === 'remove') book.remove(event.id);
  return '';
}

const small = (max: number) => fc.integer({ min: 0, max });
const id = fc.constantFrom('a', 'b');
const worker = fc.constantFrom('w1', 'w2', 'w3');
const attempt = fc.integer({ min: 1, max: 3 });
const frame: fc.Arbitrary<Frame> = fc.record({
  id,
  attempt,
  sequence: small(2),
  index: small(5),
  count: small(3),
  isEnd: fc.boolean(),
});
const anyEvent: fc.Arbitrary<LeaseEvent> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('frame' as const), worker, frame }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('take' as const), id, attempt, worker }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('fall' as const),
      id,
      why: fc.constantFrom('lost', 'failed', 'gap', 'moved'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('leave' as const), id, sequence: small(1) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('remove' as const), id }) },
);

describe('the book of leases', () => {
  it('answers as the slow one, in any history', () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 24 }), (events) => {
        const book = new LeaseBook(RULES);
        const slow = new SlowLeaseBook(RULES);
        for (const add of ['a', 'b']) {
          const event: LeaseEvent = { kind: 'add', id: add, numSequences: 2 };
          tell(book, event);
          slow.tell(event);
        }
        for (const event of events) {
          // Its owner reports nothing else to it about a request that has ended.
          if (event.kind !== 'frame' && event.kind !== 'take' && !book.has(event.id)) continue;
          expect(tell(book, event)).toBe(slow.tell(event));
          for (const one of ['a', 'b']) {
            const told = slow.told(one);
            expect(book.has(one)).toBe(told !== null);
            if (told === null) continue;
            expect(book.acceptedOf(one)).toEqual(told.accepted);
            expect(book.attemptOf(one)).toBe(told.attempt);
            expect(book.workerOf(one)).toBe(told.holder);
            expect(book.isOver(one)).toBe(told.ended.every(Boolean));
          }
          for (const name of ['w1', 'w2', 'w3']) {
            const held = ['a', 'b'].filter((one) => slow.told(one)?.holder === name);
            expect([...book.heldBy(name)].sort()).toEqual(held);
          }
        }
      }),
      { numRuns: draws(100) },
    );
  });

  it('knows what a worker had and does not name any more', () => {
    const book = new LeaseBook();
    for (const one of ['a', 'b', 'c']) book.add(one, 1);
    for (const one of ['a', 'b']) book.take(one, 1, 'w1');
    expect(book.missing('w1', new Set(['b', 'c']))).toEqual(['a']);
    expect(book.missing('w2', new Set())).toEqual([]);
    book.remove('a');
    expect(book.missing('w1', new Set())).toEqual(['b']);
    expect(book.holders()).toEqual(['w1']);
  });
});

interface Letter {
  worker: string;
  frame: Frame;
  tokens: number[];
}

/** Tokens of an undisturbed run. */
const ANSWERS = [
  [5, 3, 8, 8, 1, 9, 2],
  [4, 4, 7, 6],
];

/**
 * Workers that run requests, and a network that loses, repeats, delays and mixes what they send, driven by
 * numbers: each number is one step of a worker or of the network.
 */
class Flock {
  readonly book = new LeaseBook({ maxFruitlessAttempts: 99, maxLostAttempts: 999, maxAttempts: 999 });
  readonly got: number[][] = ANSWERS.map(() => []);
  readonly #net: Letter[] = [];
  readonly #runs: { worker: string; attempt: number; next: number[]; isDead: boolean }[] = [];
  #names = 0;

  constructor() {
    this.book.add('a', ANSWERS.length);
    this.offer();
  }

  offer(): void {
    const next = [...this.book.acceptedOf('a')];
    this.#runs.push({ worker: `w${this.#names++}`, attempt: this.book.attemptOf('a'), next, isDead: false });
  }

  get isOver(): boolean {
    return !this.book.has('a');
  }

  step(number: number): void {
    const run = this.#runs[number % this.#runs.length]!;
    const what = Math.floor(number / 7) % 10;
    if (what < 5) this.#generate(run, number);
    else if (what < 8) this.#deliver(number, what === 7);
    else if (what === 8) this.#net.splice(number % (this.#net.length + 1), 1);
    else this.#fall(number % 3 === 0 ? 'lost' : 'moved');
  }

  #generate(run: (typeof this.run)[number], number: number): void {
    const sequence = number % ANSWERS.length;
    const answer = ANSWERS[sequence]!;
    const index = run.next[sequence]!;
    if (run.isDead || index > answer.length) return;
    const tokens = answer.slice(index, index + 1 + (number % 2));
    const end = index + tokens.length;
    const isEnd = end === answer.length;
    run.next[sequence] = isEnd ? answer.length + 1 : end;
    const { worker: name, attempt: own } = run;
    const one: Frame = { id: 'a', attempt: own, sequence, index, count: tokens.length, isEnd };
    this.#net.push({ worker: name, frame: one, tokens });
  }

  readonly run = this.#runs;

  #deliver(number: number, again: boolean): void {
    const place = number % (this.#net.length || 1);
    const letter = this.#net[place];
    if (letter === undefined) return;
    if (!again) this.#net.splice(place, 1);
    this.take(letter);
  }

  take({ worker: from, frame: one, tokens }: Letter): void {
    const verdict = this.book.accept(from, one);
    if (verdict.kind === 'gap') this.#fall('gap');
    expect(verdict.kind).not.toBe('diverged');
    if (verdict.kind !== 'take') return;
    this.got[one.sequence]!.push(...tokens.slice(verdict.skip));
    if (this.book.isOver('a')) this.book.remove('a');
  }

  #fall(why: 'lost' | 'moved' | 'gap'): void {
    if (this.isOver) return;
    // A worker that is believed lost continues all the same.
    this.book.fall('a', why);
    this.offer();
  }

  /** Lets the newest worker send the rest, without loss. */
  finish(): void {
    for (let round = 0; !this.isOver && round < 200; round++) {
      if (this.#net.length === 0) this.#fall('moved');
      const run = this.#runs.at(-1)!;
      for (const sequence of ANSWERS.keys()) this.#generate(run, 2 * round + sequence);
      while (this.#net.length > 0 && !this.isOver) this.take(this.#net.shift()!);
    }
  }
}

describe('a request whose workers are lost at any time, over a network that loses, repeats and mixes', () => {
  it('gets each of its tokens once, in order, and is over once', () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 100_000 }), { maxLength: 120 }), (numbers) => {
        const flock = new Flock();
        for (const number of numbers) {
          flock.step(number);
          for (const [i, answer] of ANSWERS.entries()) {
            expect(flock.got[i]).toEqual(answer.slice(0, flock.got[i]!.length));
          }
        }
        flock.finish();
        expect(flock.got).toEqual(ANSWERS);
        expect(flock.isOver).toBe(true);
        expect(flock.book.size).toBe(0);
      }),
      { numRuns: draws(100) },
    );
  });
});

describe('a request that kills its workers', () => {
  const once = (book: LeaseBook, name: string, tokens: number): string => {
    const own = book.attemptOf('a');
    book.take('a', own, name);
    const [index] = book.acceptedOf('a');
    book.accept(name, { id: 'a', attempt: own, sequence: 0, index: index!, count: tokens, isEnd: false });
    return book.fall('a', 'lost');
  };

  it('is given up after three attempts without a token', () => {
    const book = new LeaseBook();
    book.add('a', 1);
    expect([0, 0, 0].map((tokens, i) => once(book, `w${i}`, tokens))).toEqual(['again', 'again', 'poisoned']);
  });

  it('is given up after three such attempts behind its last token', () => {
    const book = new LeaseBook();
    book.add('a', 1);
    const told = [0, 0, 4, 0, 0, 0].map((tokens, i) => once(book, `w${i}`, tokens));
    expect(told).toEqual(['again', 'again', 'again', 'again', 'again', 'poisoned']);
  });

  it('is given up after ten attempts, though each brings a token', () => {
    const book = new LeaseBook();
    book.add('a', 1);
    const told = Array.from({ length: 10 }, (_, i) => once(book, `w${i}`, 1));
    expect(told.indexOf('poisoned')).toBe(9);
  });

  it('is not blamed for workers that were told to end, or for a network that loses', () => {
    const book = new LeaseBook();
    book.add('a', 1);
    for (let i = 0; i < 20; i++) expect(book.fall('a', i % 2 === 0 ? 'moved' : 'gap')).toBe('again');
  });
});
