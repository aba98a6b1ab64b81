import type { CacheFollower } from '../nats/cache-follower.js';
import type { RoutingPort } from '../nats/gateway-port.js';

/** Workers that are asked at once: what comes of a whole cache is held until it is complete. */
const MAX_AT_ONCE = 8;
/** Answers in a row from one worker: a whole has fewer parts. */
const MAX_ANSWERS = 2_048;
/** Most beats that a worker is left alone after answers that were of no use. */
const MAX_BEATS = 64;

interface Asked {
  follower: CacheFollower;
  /** Answers of no use in a row, and beats until it is asked again. */
  vain: number;
  beatsLeft: number;
  isWaiting: boolean;
}

/** Asks workers for what a gateway has missed of their caches: a few at a time, and ever more rarely who does not answer as it should. */
export class CacheAsker {
  readonly #port: Pick<RoutingPort, 'askCache'>;
  readonly #asked = new Map<string, Asked>();
  readonly #waiting = new Set<string>();
  #numAsking = 0;

  constructor(port: Pick<RoutingPort, 'askCache'>) {
    this.#port = port;
  }

  /** A worker has sent a beat: it may be asked again. */
  onBeat(worker: string, follower: CacheFollower): void {
    const asked = this.#of(worker, follower);
    if (asked.beatsLeft > 0) asked.beatsLeft -= 1;
    this.look(worker, follower);
  }

  /** Asks the worker, if there is something to ask for. */
  look(worker: string, follower: CacheFollower): void {
    const asked = this.#of(worker, follower);
    if (!follower.isBehind || asked.isWaiting || asked.beatsLeft > 0) return;
    asked.isWaiting = true;
    this.#waiting.add(worker);
    this.#next();
  }

  forget(worker: string): void {
    this.#asked.delete(worker);
    // It may come again, and wait again.
    this.#waiting.delete(worker);
  }

  #of(worker: string, follower: CacheFollower): Asked {
    const known = this.#asked.get(worker);
    if (known?.follower === follower) return known;
    const asked = { follower, vain: 0, beatsLeft: 0, isWaiting: false };
    this.#asked.set(worker, asked);
    return asked;
  }

  #next(): void {
    for (const worker of this.#waiting) {
      if (this.#numAsking >= MAX_AT_ONCE) return;
      this.#waiting.delete(worker);
      const asked = this.#asked.get(worker);
      if (asked === undefined) continue;
      this.#numAsking += 1;
      void this.#ask(worker, asked).then((isUseful) => {
        this.#numAsking -= 1;
        asked.isWaiting = false;
        asked.vain = isUseful ? 0 : asked.vain + 1;
        asked.beatsLeft = isUseful ? 0 : Math.min(MAX_BEATS, 2 ** asked.vain - 1);
        this.#next();
      });
    }
  }

  /** False: its answers were of no use. */
  async #ask(worker: string, asked: Asked): Promise<boolean> {
    const { follower } = asked;
    for (let count = 0; count < MAX_ANSWERS && follower.isBehind; count++) {
      const answer = await this.#port.askCache(worker, follower.ask());
      if (this.#asked.get(worker) !== asked) return true;
      if (answer === null || ('worker' in answer && answer.worker !== worker)) {
        follower.onUnanswered();
        return false;
      }
      if (!follower.onAnswer(answer)) return false;
    }
    return !follower.isBehind;
  }
}
