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

  /**
   * Makes a function that checks who is there: it returns which of the ids have been gone for several checks
   * in a row. It may throw a StoreError.
   */
  looker(): (ids: Iterable<string>) => Promise<Set<string>> {
    const missing = new Map<string, number>();
    return (ids) => this.#look(new Set(ids), missing);
  }

  /** @param missing in how many looks those that are not there have been missed */
  async #look(asked: ReadonlySet<string>, missing: Map<string, number>): Promise<Set<string>> {
    const there = new Set((await this.#records.list()).map(({ key }) => key));
    for (const id of missing.keys()) if (there.has(id) || !asked.has(id)) missing.delete(id);
    const gone = new Set<string>();
    for (const id of asked) {
      if (id === this.id || there.has(id)) continue;
      const looks = (missing.get(id) ?? 0) + 1;
      missing.set(id, looks);
      if (looks >= MISSING_LOOKS) gone.add(id);
    }
    return gone;
  }

  /** True where a process gives signs of life now. @throws StoreError */
  async isThere(id: string): Promise<boolean> {
    return id === this.id || (await this.#records.get(id)) !== null;
  }

  /** This process ends. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#signing;
    await this.#records.remove(this.id).catch(() => {});
  }
}
