import type { EnsemblePlan } from './ensemble-plan.js';

/** A step that may begin, and the number of the tensors that it takes: 0 where each comes once. */
export interface Start {
  readonly step: number;
  readonly iteration: number;
}

/** What of an ensemble runs for a request that wants some of its outputs. */
export interface WantedParts {
  /** By step. */
  readonly steps: readonly boolean[];
  /** Tensors that are wanted of the ensemble. */
  readonly outputs: readonly number[];
  /** How many take each tensor: wanted steps, and the client if it asked for it. 0: no use. */
  readonly uses: readonly number[];
}

/** Goes back from the outputs that are wanted: what none of them needs does not run. @param requested null: all outputs */
export function wantedParts(plan: EnsemblePlan, requested: readonly string[] | null): WantedParts {
  const outputs =
    requested === null ? plan.outputs : plan.outputs.filter((one) => requested.includes(plan.tensors[one]!));
  const makers = new Map(
    plan.steps.flatMap((step, i) => step.outputs.map(([, tensor]) => [tensor, i] as const)),
  );
  const steps = plan.steps.map(() => false);
  const uses = plan.tensors.map(() => 0);
  const visit = (tensor: number): void => {
    const maker = makers.get(tensor);
    if (maker === undefined || steps[maker]) return;
    steps[maker] = true;
    for (const [, input] of plan.steps[maker]!.inputs) visit(input);
  };
  for (const output of outputs) {
    uses[output]!++;
    visit(output);
  }
  for (const [tensor, takers] of plan.takers.entries())
    uses[tensor]! += takers.filter((step) => steps[step]).length;
  return { steps, outputs, uses };
}

/**
 * How far one request of an ensemble has come. A tensor may come several times, where a model answers several times: the step that takes
 * it then begins as often, with the first of each of its inputs, then with the second, and so on.
 *
 *   tensors come    A   B   A   A   B
 *   step A + B          0           1           ready() after each
 *   step A          0       1   2
 */
export class EnsembleState {
  readonly #plan: EnsemblePlan;
  readonly #wanted: WantedParts;
  /** Times that each tensor has come. */
  readonly #arrived: number[];
  /** Times that each step has begun. */
  readonly #begun: number[];
  /** Steps of which an input has come since they were looked at. */
  readonly #touched = new Set<number>();
  #answers = 0;

  constructor(plan: EnsemblePlan, wanted: WantedParts) {
    this.#plan = plan;
    this.#wanted = wanted;
    this.#arrived = plan.tensors.map(() => 0);
    this.#begun = plan.steps.map(() => 0);
  }

  /** A tensor has come, or it is known that this time it will not. @returns how often it had come before */
  arrive(tensor: number): number {
    for (const step of this.#plan.takers[tensor]!) if (this.#wanted.steps[step]) this.#touched.add(step);
    return this.#arrived[tensor]!++;
  }

  /** Steps that may begin now; each is returned once. They may run in parallel and in any order. */
  ready(): Start[] {
    const starts: Start[] = [];
    for (const step of this.#touched) {
      const complete = this.#least(this.#plan.steps[step]!.inputs.map(([, tensor]) => tensor));
      while (this.#begun[step]! < complete) starts.push({ step, iteration: this.#begun[step]!++ });
    }
    this.#touched.clear();
    return starts;
  }

  /** Answers of the ensemble that are complete now, by their numbers; each is returned once. */
  answers(): number[] {
    const complete = this.#least(this.#wanted.outputs);
    const numbers: number[] = [];
    while (this.#answers < complete) numbers.push(this.#answers++);
    return numbers;
  }

  /** Answers that were complete so far. */
  get numAnswers(): number {
    return this.#answers;
  }

  /**
   * With every step that has begun at its end: tensors that came without the others that they are taken with. Each is something that
   * came so often, and something that did not.
   */
  unmet(): { more: string; count: number; less: string; lessCount: number } | null {
    const groups = this.#plan.steps.flatMap(({ inputs }, step) =>
      this.#wanted.steps[step] ? [inputs.map(([, tensor]) => tensor)] : [],
    );
    for (const group of [...groups, this.#wanted.outputs]) {
      const counts = group.map((tensor) => this.#arrived[tensor]!);
      const [most, least] = [Math.max(...counts), Math.min(...counts)];
      if (most === least) continue;
      const nameOf = (count: number) => this.#plan.tensors[group[counts.indexOf(count)]!]!;
      return { more: nameOf(most), count: most, less: nameOf(least), lessCount: least };
    }
    return null;
  }

  #least(tensors: readonly number[]): number {
    return tensors.reduce(
      (least, tensor) => Math.min(least, this.#arrived[tensor]!),
      Number.MAX_SAFE_INTEGER,
    );
  }
}
