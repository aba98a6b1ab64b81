import { setTimeout as sleep } from 'node:timers/promises';
import { Random } from '../support/random.js';
import type { Fleet, Member } from './fleet/fleet.js';
import { faultNamed } from './kinds/index.js';
import type { PlannedFault } from './schedule.js';

/** A fault that has been. */
export interface StruckFault extends PlannedFault {
  victims: string[];
  /** What was done, in a few words. */
  what: string;
  /** Milliseconds of `performance.now()`. */
  begin: number;
  /** Infinity: it lasts still. */
  end: number;
}

/** Of four victims, three are the busiest: a fault of a member that has nothing to do shows little. */
const BUSIEST_OF_FOUR = 3;

const roleOf = (group: readonly Member[]) => group[0]!.role;

/** Begins the faults of a plan as the answers come, several at a time, but never two of one member. */
export class Conductor {
  /** All that have begun; those that last still have no end yet. */
  readonly begun: StruckFault[] = [];
  readonly #fleet: Fleet;
  readonly #due: PlannedFault[];
  readonly #onStrike: (text: string) => void;
  readonly #running = new Set<Promise<void>>();
  #hurry = new AbortController();
  readonly #busy = new Set<Member>();
  /** Bytes that each member had sent when the last fault began. */
  readonly #sent = new Map<Member, number>();
  #failure: unknown = null;

  constructor(plan: readonly PlannedFault[], fleet: Fleet, onStrike: (text: string) => void = () => {}) {
    this.#due = [...plan];
    this.#fleet = fleet;
    this.#onStrike = onStrike;
  }

  /** Faults that found no member to strike, or whose time has not come. */
  get numDue(): number {
    return this.#due.length;
  }

  /** @param numTokens tokens that clients have seen so far */
  advance(numTokens: number): void {
    for (const fault of this.#due.filter(({ at }) => at <= numTokens)) {
      const random = new Random(fault.seed);
      const victims = this.#choose(fault.kind, random);
      // Where no member is left to strike just now, the next token is the time.
      if (victims === null) continue;
      this.#due.splice(this.#due.indexOf(fault), 1);
      const running = this.#strike(fault, victims, random).catch((error: unknown) => {
        this.#failure ??= error;
      });
      this.#running.add(running);
      void running.then(() => this.#running.delete(running));
    }
  }

  /** Ends the faults that last, and waits for all. @throws what one of them threw */
  async settle(): Promise<void> {
    this.#hurry.abort();
    while (this.#running.size > 0) await Promise.all(this.#running);
    this.#hurry = new AbortController();
    if (this.#failure !== null) throw this.#failure;
  }

  #choose(kind: string, random: Random): readonly Member[] | null {
    const groups = faultNamed(kind)
      .groups(this.#fleet)
      .filter((group) => group.every((member) => !this.#busy.has(member)));
    const [anyRole, isOfBusiest, any] = [
      random.uniform(),
      random.below(4) < BUSIEST_OF_FOUR,
      random.uniform(),
    ];
    const roles = [...new Set(groups.map(roleOf))];
    const role = roles[Math.floor(anyRole * roles.length)];
    if (role === undefined) return null;
    const equals = groups.filter((group) => roleOf(group) === role);
    const victims = isOfBusiest
      ? equals.toSorted((a, b) => this.#spoke(b) - this.#spoke(a))[0]!
      : equals[Math.floor(any * equals.length)]!;
    for (const member of this.#fleet.members) this.#sent.set(member, member.sentBytes);
    return victims;
  }

  /** Bytes that a group has sent since the last fault began. */
  #spoke(group: readonly Member[]): number {
    return group.reduce((sum, member) => sum + member.sentBytes - (this.#sent.get(member) ?? 0), 0);
  }

  async #strike(fault: PlannedFault, victims: readonly Member[], random: Random): Promise<void> {
    const names = victims.map(({ name }) => name);
    const struck: StruckFault = {
      ...fault,
      victims: names,
      what: '',
      begin: performance.now(),
      end: Number.POSITIVE_INFINITY,
    };
    this.begun.push(struck);
    for (const member of victims) this.#busy.add(member);
    this.#onStrike(`token ${fault.at}: ${fault.kind} of ${names.join(' and ')}`);
    const lasting = async (leastMs: number, mostMs: number) => {
      const ms = leastMs + Math.floor(random.uniform() * (mostMs - leastMs));
      await sleep(ms, undefined, { signal: this.#hurry.signal }).catch(() => {});
    };
    try {
      struck.what = await faultNamed(fault.kind).strike(victims, { fleet: this.#fleet, random, lasting });
    } finally {
      struck.end = performance.now();
      for (const member of victims) this.#busy.delete(member);
      const seconds = ((struck.end - struck.begin) / 1000).toFixed(1);
      this.#onStrike(`${fault.kind} of ${names.join(' and ')} is over: ${struck.what}, ${seconds} s`);
    }
  }
}
