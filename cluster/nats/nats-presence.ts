import type { NatsRecords } from './nats-records.js';

/** Milliseconds between two signs of life. */
const SIGN_MS = 1_000;
/** Milliseconds after which the NATS server, by its own clock, drops a sign that was not given again. */
export const SIGN_LIFE_MS = 6_000;
/** Looks in a row in which a process has to be missing, since all signs are gone for a moment where the NATS server was. */
const MISSING_LOOKS = 3;

/**
 * Which processes are there. Each one writes a record again and again, and the NATS server drops it where it is not: so no process
 * reads the clock of another one.
 */
export class NatsPresence {
  readonly id: string;
  readonly #records: NatsRecords;
  readonly #missing = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;
  #signing: Promise<void> | null = null;

  /** @param records a bucket whose records have an age of SIGN_LIFE_MS at most @param id of this process, different at each start */
  constructor(records: NatsRecords, id: string) {
    this.#records = records;
    this.id = id;
  }

  /** Gives signs of life from now on. @throws StoreError */
  async start(): Promise<void> {
    await this.#records.open();
    await this.#records.sign(this.id);
    this.#timer = setInterval(() => {
      this.#signing ??= this.#records
        .sign(this.id)
        .catch(() => {})
        .finally(() => {
          this.#signing = null;
        });
    }, SIGN_MS).unref();
  }

  /** Looks who is there. @returns those of the ids that have been gone for several looks @throws StoreError */
  async look(ids: Iterable<string>): Promise<Set<string>> {
    const there = new Set((await this.#records.list()).map(({ key }) => key));
    const asked = new Set(ids);
    for (const id of this.#missing.keys()) if (there.has(id) || !asked.has(id)) this.#missing.delete(id);
    const gone = new Set<string>();
    for (const id of asked) {
      if (id === this.id || there.has(id)) continue;
      const looks = (this.#missing.get(id) ?? 0) + 1;
      this.#missing.set(id, looks);
      if (looks >= MISSING_LOOKS) gone.add(id);
    }
    return gone;
  }

  /** This process ends. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#signing;
    await this.#records.remove(this.id).catch(() => {});
  }
}
