import type { ParentDecision } from './telemetry/open-telemetry.js';

/** Which requests are traced. Source: Triton's trace extension. */
export interface TraceSettings {
  isOn: boolean;
  /** Traces one request in `rate`; 0: only those whose client traces them. */
  rate: number;
  /** Traces that may still be begun; -1: any number. */
  count: number;
}

/** A change: undefined leaves a setting as it is, null gives it up for that of the level above. */
export type TraceChange = { [Name in keyof TraceSettings]?: TraceSettings[Name] | null | undefined };

/** Models with settings of their own: each name is a client's. */
const MAX_MODELS = 1000;

interface Level {
  own: Partial<TraceSettings>;
  /** Requests that were asked about since `rate` was set. */
  asked: number;
}

/**
 * Decides which requests are traced: the server's settings, and for each model that has some its own.
 *
 *   start of the server   <- what a setting of the server that is given up becomes
 *     server              <- what a setting of a model that is given up becomes
 *       model
 *
 * A request whose client traces it is traced as well, whatever rate and count say, and none whose client has decided not to.
 */
export class TraceDecisions {
  readonly #start: TraceSettings;
  readonly #server: Level = { own: {}, asked: 0 };
  readonly #models = new Map<string, Level>();

  constructor(start: TraceSettings) {
    this.#start = start;
  }

  /** @param model '': the server's */
  settings(model = ''): TraceSettings {
    return { ...this.#start, ...this.#server.own, ...this.#models.get(model)?.own };
  }

  /** @param model '': the server's @throws RangeError where too many models have settings of their own */
  change(model: string, changes: TraceChange): void {
    const level = model === '' ? this.#server : this.#levelOf(model);
    for (const [name, value] of Object.entries(changes) as [keyof TraceSettings, TraceChange['rate']][]) {
      if (value === undefined) continue;
      if (value === null) delete level.own[name];
      else Object.assign(level.own, { [name]: value });
      if (name === 'rate') level.asked = 0;
    }
    if (model !== '' && Object.keys(level.own).length === 0) this.#models.delete(model);
  }

  /** Whether a request is traced that came just now. @param model the one that it is for; '': not known */
  decide(parent: ParentDecision, model = ''): boolean {
    const { isOn, rate, count } = this.settings(model);
    if (!isOn || parent === 'dropped') return false;
    if (parent === 'recorded') return true;
    if (rate === 0 || count === 0) return false;
    const level = this.#models.get(model) ?? this.#server;
    level.asked = (level.asked + 1) % rate;
    if (level.asked !== 0) return false;
    if (count > 0) this.#spend(model, count);
    return true;
  }

  /** One trace of those that may still be begun. */
  #spend(model: string, count: number): void {
    const level = this.#models.get(model);
    const owner = level?.own.count === undefined ? this.#server : level;
    owner.own.count = count - 1;
  }

  #levelOf(model: string): Level {
    const known = this.#models.get(model);
    if (known !== undefined) return known;
    if (this.#models.size >= MAX_MODELS) {
      throw new RangeError(
        `${this.#models.size} models have trace settings of their own; at most ${MAX_MODELS} may.`,
      );
    }
    const level: Level = { own: {}, asked: 0 };
    this.#models.set(model, level);
    return level;
  }
}
