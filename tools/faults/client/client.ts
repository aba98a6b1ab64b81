import { setTimeout as sleep } from 'node:timers/promises';
import type { Fleet } from '../fleet/fleet.js';
import { type Call, call } from './call.js';
import { differenceOfBeginning } from './compare.js';
import { fold, type Json, stable } from './fold.js';

/** Something came that must not, whatever has happened: a sentence. */
export class WrongAnswer extends Error {}

/** Asks a call until it has its whole answer, with ids and times. @throws WrongAnswer */
export type Ask = (call: Call) => Promise<Json>;

/** The part of a fleet that a client needs. */
type Asked = Pick<Fleet, 'addresses' | 'excuse'>;

export interface ClientOptions {
  /** Number by which the first address is chosen. */
  turn: number;
  /** What a broken stream must be the beginning of; null: it is not known. */
  expected: Json;
  /** Called with the number of events that a stream has had in this attempt. */
  onEvents: (count: number) => void;
}

/** Most times that a call is repeated. */
const MAX_ATTEMPTS = 300;
/** Milliseconds between two attempts: a client that waits for Retry-After would make a run long. */
const RETRY_MS = 200;
/** The same for what was not found. */
const MAX_LATER_ATTEMPTS = 150;

/** A client that must have its answers: after a refusal or a loss that the fleet may have, it asks the next address the same again. */
export class Client {
  /** Why it asked again, each time. */
  readonly retries: string[] = [];
  /** Longest time between two parts of a streamed answer, or from the question to the first one, in milliseconds. */
  longestPauseMs = 0;
  readonly #fleet: Asked;
  readonly #options: ClientOptions;
  #turn: number;

  constructor(fleet: Asked, options: ClientOptions) {
    this.#fleet = fleet;
    this.#options = options;
    this.#turn = options.turn;
  }

  readonly ask: Ask = async (asked) => {
    let last = performance.now();
    const notePause = () => {
      const now = performance.now();
      this.longestPauseMs = Math.max(this.longestPauseMs, now - last);
      last = now;
    };
    let isAlone = false;
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const addresses = this.#fleet.addresses();
      const address = addresses[this.#turn++ % addresses.length];
      if (address !== undefined) {
        const answer = await this.#askOnce(address, asked, notePause);
        if (answer !== undefined) return answer;
      } else if (!isAlone) this.retries.push('no gateway to ask');
      isAlone = address === undefined;
      await sleep(RETRY_MS);
    }
    throw new WrongAnswer(`no answer in ${MAX_ATTEMPTS} attempts`);
  };

  /** @returns undefined: it has to be asked again */
  async #askOnce(address: string, asked: Call, notePause: () => void): Promise<Json | undefined> {
    let count = 0;
    const outcome = await call(address, asked, () => {
      notePause();
      this.#options.onEvents(++count);
    });
    if (outcome.kind === 'whole')
      return outcome.events === null ? (outcome.value as Json) : fold(outcome.events);
    const { expected } = this.#options;
    const begun =
      outcome.events.length === 0 || expected === null
        ? null
        : differenceOfBeginning(stable(fold(outcome.events)), expected);
    if (begun !== null) throw new WrongAnswer(begun);
    const excuse = outcome.kind === 'wrong' ? null : this.#fleet.excuse(outcome, address);
    if (excuse === null) {
      const { kind, status, text } = outcome;
      const how = status === null ? kind : `${kind} with ${status}`;
      const now = status === 404 ? await this.#later(asked) : '';
      throw new WrongAnswer(`${asked.method} ${asked.path} is ${how}: ${text.slice(0, 300)}${now}`);
    }
    this.retries.push(excuse);
    return undefined;
  }

  /** Whether what was not found is found later: a late answer and a loss have different causes. */
  async #later(asked: Call): Promise<string> {
    const startMs = performance.now();
    for (let attempt = 0; attempt < MAX_LATER_ATTEMPTS; attempt += 1) {
      await sleep(RETRY_MS);
      const [address] = this.#fleet.addresses();
      const outcome = address === undefined ? null : await call(address, asked);
      if (outcome?.kind === 'whole') return ` (found ${Math.round(performance.now() - startMs)} ms later)`;
    }
    return ' (not found later either)';
  }
}
