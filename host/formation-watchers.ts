import type { FormationListener } from '../callbacks/formation.js';
import { FormationWriter } from './formation-writer.js';
import type { HostEntry } from './host-entry.js';

type Written = Parameters<FormationWriter['write']>;

/** Calls into the host. */
interface FormationCalls {
  /** Has the engine send formations at most once in `intervalMs`; null: none. */
  watch(listener: ((formation: Written[0]) => void) | null, intervalMs?: number): void;
  /** The requests that wait in the host. */
  queue(): Written[2];
  /** Calls a listener, whose failure no request notices. */
  tell(call: () => unknown): void;
}

/** Listeners to the requests in flight. Costs nothing while there are none. */
export class FormationWatchers {
  readonly #engine: ConstructorParameters<typeof FormationWriter>[0];
  readonly #entries: ReadonlyMap<bigint, HostEntry>;
  readonly #calls: FormationCalls;
  readonly #watchers = new Map<FormationListener, number>();
  /** Null while there is no listener. */
  #writer: FormationWriter | null = null;

  /** @param engine sizes that may be filled in later, before the first formation */
  constructor(
    engine: ConstructorParameters<typeof FormationWriter>[0],
    entries: ReadonlyMap<bigint, HostEntry>,
    calls: FormationCalls,
  ) {
    this.#engine = engine;
    this.#entries = entries;
    this.#calls = calls;
  }

  /** Calls the listener at most once in `intervalMs`, until the returned function is called. */
  watch(listener: FormationListener, intervalMs: number): () => void {
    this.#watchers.set(listener, intervalMs);
    this.#restart();
    return () => {
      this.#watchers.delete(listener);
      this.#restart();
    };
  }

  /** Notes that a request has ended. */
  noteEnd(entry: HostEntry, reason: string): void {
    this.#writer?.noteEnd(entry, reason);
  }

  #restart(): void {
    if (this.#watchers.size === 0) {
      this.#writer = null;
      this.#calls.watch(null);
      return;
    }
    this.#writer ??= new FormationWriter(this.#engine);
    const writer = this.#writer;
    const intervalMs = Math.min(...this.#watchers.values());
    this.#calls.watch((formation) => {
      const whole = writer.write(formation, this.#entries, this.#calls.queue());
      for (const watcher of [...this.#watchers.keys()]) this.#calls.tell(() => watcher(whole));
    }, intervalMs);
  }
}
