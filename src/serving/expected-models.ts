/** Models that are known by their names alone: nobody has had an engine of them, and requests for them tell that one is wanted. */
export class ExpectedModels {
  /** When they were named, in Unix seconds. */
  readonly since = Math.floor(Date.now() / 1000);
  /** Requests that were refused, by name. */
  readonly #refused: Map<string, number>;

  constructor(names: readonly string[] = []) {
    this.#refused = new Map(names.map((name) => [name, 0]));
  }

  get names(): string[] {
    return [...this.#refused.keys()];
  }

  /** Counts a request that is refused for want of an engine. @returns false where no model of this name is expected */
  refuse(name: string): boolean {
    const count = this.#refused.get(name);
    if (count === undefined) return false;
    this.#refused.set(name, count + 1);
    return true;
  }

  /** Numbers of the requests that were refused, also 0, by name. */
  get refused(): ReadonlyMap<string, number> {
    return this.#refused;
  }
}
