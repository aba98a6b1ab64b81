import type { Frame } from '../../../cluster/nats/lease-book.js';
import type { AttemptRules, Fall } from '../../../host/attempt-faults.js';

/** Everything that has happened, in order. */
export type LeaseEvent =
  | { kind: 'add'; id: string; numSequences: number }
  | { kind: 'take'; id: string; attempt: number; worker: string }
  | { kind: 'frame'; worker: string; frame: Frame }
  | { kind: 'fall'; id: string; why: Fall }
  | { kind: 'leave'; id: string; sequence: number }
  | { kind: 'remove'; id: string };

/** What an event had to be answered. */
export type LeaseAnswer = string;

/** The state of one request, worked out from all that has happened to it. */
interface Told {
  attempt: number;
  holder: string | null;
  accepted: number[];
  ended: boolean[];
  /** For each attempt that is over: why, and whether it brought a token. */
  over: { why: Fall; gained: boolean }[];
  gained: boolean;
}

/**
 * The slow book of leases: it keeps nothing but the list of events, and works out the answer to each from the whole
 * list, by the rules as the pages state them.
 */
export class SlowLeaseBook {
  readonly #events: LeaseEvent[] = [];
  readonly #rules: AttemptRules;

  constructor(rules: AttemptRules) {
    this.#rules = rules;
  }

  tell(event: LeaseEvent): LeaseAnswer {
    const answer = this.#answer(event);
    this.#events.push(event);
    return answer;
  }

  #answer(event: LeaseEvent): LeaseAnswer {
    if (event.kind === 'take') {
      const told = this.told(event.id);
      return String(told !== null && isTheirs(told, event.attempt, event.worker));
    }
    if (event.kind === 'frame') return this.#verdict(event.worker, event.frame);
    if (event.kind !== 'fall') return '';
    const told = this.told(event.id)!;
    return this.#isPoisoned([...told.over, { why: event.why, gained: told.gained }]) ? 'poisoned' : 'again';
  }

  #isPoisoned(over: Told['over']): boolean {
    const counted = over.filter(({ why }) => why === 'lost' || why === 'failed');
    // Attempts at the end that have brought nothing, however they ended; those that count.
    const sinceGain = over.slice(over.findLastIndex(({ gained }) => gained) + 1);
    const fruitless = sinceGain.filter(({ why }) => why === 'lost' || why === 'failed').length;
    const { maxFruitlessAttempts, maxLostAttempts, maxAttempts } = this.#rules;
    return (
      fruitless >= maxFruitlessAttempts || counted.length >= maxLostAttempts || over.length >= maxAttempts
    );
  }

  #verdict(worker: string, { id, attempt, sequence, index, count, isEnd }: Frame): string {
    const told = this.told(id);
    if (told === null || !isTheirs(told, attempt, worker)) return 'stale';
    if (sequence >= told.accepted.length) return 'stale';
    if (told.ended[sequence]) return 'repeat';
    const next = told.accepted[sequence]!;
    const places = Array.from({ length: count }, (_, i) => index + i);
    const fresh = places.filter((place) => place >= next);
    if (index > next) return 'gap';
    if (isEnd) return index + count < next ? 'diverged' : `take ${count - fresh.length}`;
    return fresh.length > 0 || (count === 0 && index === next) ? `take ${count - fresh.length}` : 'repeat';
  }

  /** null: it was never added, or removed. */
  told(id: string): Told | null {
    let told: Told | null = null;
    for (const [place, event] of this.#events.entries()) {
      if (event.kind === 'frame' ? event.frame.id !== id : event.id !== id) continue;
      if (event.kind === 'add') told = fresh(event.numSequences);
      else if (event.kind === 'remove') told = null;
      else if (told !== null) this.#apply(told, event, place);
    }
    return told;
  }

  #apply(told: Told, event: LeaseEvent, place: number): void {
    if (event.kind === 'leave') told.ended[event.sequence] = true;
    if (event.kind === 'take' && event.attempt === told.attempt) told.holder ??= event.worker;
    if (event.kind === 'fall') {
      told.over.push({ why: event.why, gained: told.gained });
      told.attempt++;
      told.holder = null;
      told.gained = false;
    }
    if (event.kind !== 'frame') return;
    const before = new SlowLeaseBook(this.#rules);
    before.#events.push(...this.#events.slice(0, place));
    const { frame, worker } = event;
    const verdict = before.#verdict(worker, frame);
    if (frame.attempt === told.attempt) told.holder ??= worker;
    if (!verdict.startsWith('take')) return;
    const end = frame.index + frame.count;
    if (end > told.accepted[frame.sequence]!) told.gained = true;
    told.accepted[frame.sequence] = end;
    if (frame.isEnd) told.ended[frame.sequence] = true;
  }
}

function isTheirs(told: Told, attempt: number, worker: string): boolean {
  return told.attempt === attempt && (told.holder === null || told.holder === worker);
}

function fresh(numSequences: number): Told {
  return {
    attempt: 1,
    holder: null,
    accepted: Array.from({ length: numSequences }, () => 0),
    ended: Array.from({ length: numSequences }, () => false),
    over: [],
    gained: false,
  };
}
