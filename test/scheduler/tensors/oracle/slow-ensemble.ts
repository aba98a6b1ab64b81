/** A graph in the plainest form: names of tensors that each step takes and makes. */
export interface PlainGraph {
  inputs: readonly string[];
  outputs: readonly string[];
  steps: readonly { takes: readonly string[]; makes: readonly string[] }[];
}

/** A tensor that has come once more: its name, and how often it had come before. */
type Arrival = readonly [tensor: string, number: number];

/**
 * The rules of an ensemble once more, without a thought for cost: everything that has ever come is kept in one list, and every question
 * looks at all of it.
 */
export class SlowEnsemble {
  readonly #graph: PlainGraph;
  readonly #requested: readonly string[];
  readonly #arrivals: Arrival[] = [];
  readonly #begun = new Set<string>();
  readonly #answered = new Set<number>();

  constructor(graph: PlainGraph, requested: readonly string[]) {
    this.#graph = graph;
    this.#requested = requested;
  }

  /** Steps that some requested output needs: tried one by one, by leaving each out. */
  get wanted(): number[] {
    return this.#graph.steps.flatMap((_, left) => (this.#reaches(left) ? [] : [left]));
  }

  /** With a step left out, and every step after it, all requested outputs are still made. */
  #reaches(left: number): boolean {
    const made = new Set(this.#graph.inputs);
    for (const _ of this.#graph.steps) {
      for (const [i, { takes, makes }] of this.#graph.steps.entries()) {
        if (i !== left && takes.every((tensor) => made.has(tensor)))
          for (const tensor of makes) made.add(tensor);
      }
    }
    return this.#requested.every((output) => made.has(output));
  }

  arrive(tensor: string): void {
    this.#arrivals.push([tensor, this.#arrivals.filter(([name]) => name === tensor).length]);
  }

  #has(tensor: string, number: number): boolean {
    return this.#arrivals.some(([name, one]) => name === tensor && one === number);
  }

  /** What may begin and was not reported yet, as STEP:NUMBER, sorted. */
  ready(): string[] {
    const found: string[] = [];
    for (const step of this.wanted) {
      for (let number = 0; number < this.#arrivals.length; number++) {
        const key = `${step}:${number}`;
        if (this.#begun.has(key)) continue;
        if (this.#graph.steps[step]!.takes.every((tensor) => this.#has(tensor, number))) found.push(key);
      }
    }
    for (const key of found) this.#begun.add(key);
    return found.sort();
  }

  answers(): number[] {
    const found: number[] = [];
    for (let number = 0; number < this.#arrivals.length; number++) {
      const isComplete = this.#requested.every((output) => this.#has(output, number));
      if (isComplete && !this.#answered.has(number)) found.push(number);
    }
    for (const number of found) this.#answered.add(number);
    return found;
  }

  /** Some tensors came more often than others that they are taken with. */
  get isUnmet(): boolean {
    const groups = [this.#requested, ...this.wanted.map((step) => this.#graph.steps[step]!.takes)];
    const count = (tensor: string) => this.#arrivals.filter(([name]) => name === tensor).length;
    return groups.some((group) => group.some((tensor) => count(tensor) !== count(group[0]!)));
  }
}

/** A graph is well: found by trying out what can be made, and who uses it. */
export function isWell({ inputs, outputs, steps }: PlainGraph): boolean {
  if (steps.length === 0 || steps.some(({ takes, makes }) => takes.length === 0 || makes.length === 0))
    return false;
  const all = steps.flatMap(({ makes }) => makes);
  if (all.some((tensor, i) => all.indexOf(tensor) !== i || inputs.includes(tensor))) return false;
  const made = new Set(inputs);
  const ran = new Set<number>();
  for (const _ of steps) {
    for (const [i, { takes, makes }] of steps.entries()) {
      if (!takes.every((tensor) => made.has(tensor))) continue;
      ran.add(i);
      for (const tensor of makes) made.add(tensor);
    }
  }
  const taken = new Set(steps.flatMap(({ takes }) => takes));
  const known = new Set([...taken, ...all]);
  return (
    inputs.every((tensor) => known.has(tensor)) &&
    outputs.every((tensor) => known.has(tensor) && made.has(tensor)) &&
    [...known].every((tensor) => outputs.includes(tensor) || (taken.has(tensor) && made.has(tensor)))
  );
}
