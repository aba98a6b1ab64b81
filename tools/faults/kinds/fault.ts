import type { Random } from '../../support/random.js';
import type { Fleet, Member } from '../fleet/fleet.js';

/** What a fault may use while it strikes. */
export interface Blow {
  fleet: Fleet;
  /** Of this fault alone, so that its choices do not depend on the others. */
  random: Random;
  /** Waits a time that is drawn between the two, in milliseconds, or until the run has all its answers. */
  lasting: (leastMs: number, mostMs: number) => Promise<void>;
}

/** A kind of fault. */
export interface Fault {
  /** As it stands in a plan: `kill@120/7`. */
  name: string;
  /** Its flag: how many of it there are. */
  flag: string;
  help: string;
  /** Groups of which one is struck; none: this fleet has no member for it. */
  groups: (fleet: Fleet) => readonly (readonly Member[])[];
  /**
   * Strikes, and resolves when everything is as before.
   * @returns what was done, in a few words
   */
  strike: (victims: readonly Member[], blow: Blow) => Promise<string>;
}

/** Each member with one of these roles alone. */
export const anyOf =
  (...roles: readonly Member['role'][]) =>
  ({ members }: Fleet): Member[][] =>
    members.filter(({ role }) => roles.includes(role)).map((member) => [member]);
