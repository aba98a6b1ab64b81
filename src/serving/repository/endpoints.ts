type Values = Readonly<Record<string, string | number | boolean>>;

interface Endpoint {
  model: string;
  values: Values;
  identity: string;
  /** Instances beyond the configuration's: loads that wanted one of their own. */
  added: number;
}

/** Endpoints of one model with values of their own: each is an engine or more of its own. */
const MAX_ENDPOINTS = 64;

/**
 * Names of models that are loaded with values of their own. Source: the AMD Inference Server's modelLoad:
 *
 *   load M            -> M           the first load of M is always M
 *   load M {a: 1}     -> M-0         other values: the next free name
 *   load M {a: 1}     -> M-0         the same values: the same name
 *   load M {a: 1} with share: false  -> M-0, with one more instance than it has
 */
export class Endpoints {
  readonly #byName = new Map<string, Endpoint>();

  /** A load of a model, or of an endpoint, that says nothing of values: they stay what they are. */
  keep(name: string): void {
    if (!this.#byName.has(name)) this.#add(name, name, {});
  }

  /**
   * The name for a model with these values. @param isTaken says whether another model has a name.
   * @throws an Error where the model has too many already
   */
  nameFor(model: string, values: Values, isTaken: (name: string) => boolean): string {
    const identity = identityOf(values);
    let count = 0;
    for (const [name, endpoint] of this.#byName) {
      if (endpoint.model !== model) continue;
      if (endpoint.identity === identity) return name;
      count++;
    }
    if (count >= MAX_ENDPOINTS) {
      throw new Error(
        `it is loaded with ${count} sets of parameters already; at most ${MAX_ENDPOINTS} are taken`,
      );
    }
    let name = model;
    for (let number = 0; this.#byName.has(name) || (name !== model && isTaken(name)); number++) {
      name = `${model}-${number}`;
    }
    this.#add(name, model, values);
    return name;
  }

  /** The values that the endpoint was loaded with. */
  values(name: string): Values {
    return this.#byName.get(name)?.values ?? {};
  }

  /** The endpoint is loaded so, whatever came between the command and its turn. */
  note(name: string, model: string, values: Values, added: number): void {
    const known = this.#byName.get(name)?.model ?? model;
    this.#byName.set(name, { model: known, values, identity: identityOf(values), added });
  }

  /** Instances that loads have added to the endpoint. */
  added(name: string): number {
    return this.#byName.get(name)?.added ?? 0;
  }

  /** Endpoints of the model, itself among them where it is loaded. */
  of(model: string): readonly string[] {
    return [...this.#byName].flatMap(([name, endpoint]) => (endpoint.model === model ? [name] : []));
  }

  /** The model that the endpoint serves; itself where it is no endpoint with values. */
  modelOf(name: string): string {
    return this.#byName.get(name)?.model ?? name;
  }

  forget(name: string): void {
    this.#byName.delete(name);
  }

  #add(name: string, model: string, values: Values): void {
    this.#byName.set(name, { model, values, identity: identityOf(values), added: 0 });
  }
}

function identityOf(values: Values): string {
  return JSON.stringify(Object.entries(values).sort(([a], [b]) => (a < b ? -1 : 1)));
}
