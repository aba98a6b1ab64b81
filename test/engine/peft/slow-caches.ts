/** Adapters in a cache, written down as plainly as possible: a list in the order of last use. */
export interface SlowEntry {
  id: number;
  pages: number;
  uses: number;
  /** Time at which the last holder left. */
  leftAt: number;
  version: number;
}

/** An oracle of AdapterCache: everything is a search through one list. */
export class SlowCache {
  entries: SlowEntry[] = [];
  #time = 0;
  readonly #numPages: number;
  readonly #most: number;

  constructor(numPages: number, most = Number.POSITIVE_INFINITY) {
    this.#numPages = numPages;
    this.#most = most;
  }

  find(id: number): SlowEntry | undefined {
    return this.entries.find((entry) => entry.id === id);
  }

  get used(): number {
    return this.entries.reduce((sum, { pages }) => sum + pages, 0);
  }

  hold(id: number): void {
    this.find(id)!.uses += 1;
  }

  release(id: number): void {
    const entry = this.find(id)!;
    entry.uses -= 1;
    if (entry.uses === 0) entry.leftAt = ++this.#time;
  }

  remove(id: number): void {
    this.entries = this.entries.filter((entry) => entry.id !== id);
  }

  /** Ids that go, in order, so that the new one fits; null: it does not fit. */
  put(id: number, pages: number, version = 0): number[] | null {
    const unused = this.entries.filter(({ uses }) => uses === 0).sort((a, b) => a.leftAt - b.leftAt);
    const gone: SlowEntry[] = [];
    const fits = () => {
      const left = this.entries.filter((entry) => !gone.includes(entry));
      const taken = left.reduce((sum, entry) => sum + entry.pages, 0);
      return taken + pages <= this.#numPages && left.length < this.#most;
    };
    while (!fits()) {
      const next = unused.shift();
      if (next === undefined) return null;
      gone.push(next);
    }
    this.entries = this.entries.filter((entry) => !gone.includes(entry));
    this.entries.push({ id, pages, uses: 1, leftAt: 0, version });
    return gone.map((entry) => entry.id);
  }
}
