/** A tensor of a model, in the words of its configuration. */
export interface ConfiguredTensor {
  readonly name: string;
  readonly data_type: string;
  /** Without the batch dimension; -1: any size. */
  readonly dims: readonly number[];
  readonly reshape?: { readonly shape: readonly number[] } | undefined;
  readonly optional?: boolean;
}

/** A step of an ensemble: a model, with the ensemble's tensor of each of its inputs and outputs. */
export interface ConfiguredStep {
  readonly model_name: string;
  /** -1: the latest. */
  readonly model_version: number;
  readonly input_map: Readonly<Record<string, string>>;
  readonly output_map: Readonly<Record<string, string>>;
}

/** What is read of an ensemble's configuration. */
export interface ConfiguredEnsemble {
  readonly name: string;
  /** 0: it takes no batches. */
  readonly max_batch_size: number;
  readonly input: readonly ConfiguredTensor[];
  readonly output: readonly ConfiguredTensor[];
  readonly ensemble_scheduling?:
    | { readonly step: readonly ConfiguredStep[]; readonly max_inflight_requests?: number }
    | undefined;
}

/** What is wrong with a graph: a sentence, and the step that it is about; null: none in particular. */
export interface GraphProblem {
  readonly sentence: string;
  readonly step: number | null;
}

/** A tensor of the graph. */
interface Node {
  /** The step that makes it; null: the ensemble's client, or no step. */
  maker: number | null;
  /** A step takes it. */
  isTaken: boolean;
  /** It comes, if every model answers. */
  isMade: boolean;
}

/**
 * Holds the graph of an ensemble against the rules that need no look at its members: each step is whole, no tensor is made twice, every
 * output and every input of a step is made, and nothing is made in vain. Messages are Triton's, which reports
 * the first problem that it finds.
 * @returns null where all is well
 */
export function graphProblem(ensemble: ConfiguredEnsemble): GraphProblem | null {
  const steps = ensemble.ensemble_scheduling?.step ?? [];
  const whole = stepProblem(ensemble.name, steps);
  if (whole !== null) return whole;
  const nodes = new Map<string, Node>();
  const twice = connect(ensemble, steps, nodes);
  if (twice !== null) return twice;
  const { name } = ensemble;
  for (const { name: input } of ensemble.input) {
    const node = nodes.get(input);
    if (node === undefined) return said(`ensemble input '${input}' for ensemble ${name}' is not used`);
    node.isMade = true;
  }
  follow(steps, nodes);
  for (const { name: output } of ensemble.output) {
    const node = nodes.get(output);
    if (node === undefined) return said(`ensemble output '${output}' for ensemble ${name}' is not used`);
    if (!node.isMade) return said(whyNotMade(name, output, steps, nodes));
  }
  const outputs = new Set(ensemble.output.map((output) => output.name));
  for (const [tensor, { isTaken, isMade }] of nodes) {
    if (!outputs.has(tensor) && !(isTaken && isMade))
      return said(`ensemble tensor '${tensor}' is unused in ensemble '${name}'`);
  }
  return null;
}

const said = (sentence: string, step: number | null = null): GraphProblem => ({ sentence, step });

function stepProblem(ensemble: string, steps: readonly ConfiguredStep[]): GraphProblem | null {
  if (steps.length === 0) return said(`must specify 'step' for ensemble '${ensemble}'`);
  for (const [i, step] of steps.entries()) {
    const isMissing = {
      model_name: step.model_name === '',
      input_map: Object.keys(step.input_map).length === 0,
      output_map: Object.keys(step.output_map).length === 0,
    };
    for (const [field, is] of Object.entries(isMissing))
      if (is) return said(`must specify '${field}' in step ${i} of ensemble '${ensemble}'`, i);
  }
  return null;
}

/** Puts every tensor of the steps into `nodes`. @returns what is wrong where one has two makers */
function connect(
  { name, input }: ConfiguredEnsemble,
  steps: readonly ConfiguredStep[],
  nodes: Map<string, Node>,
): GraphProblem | null {
  const inputs = new Set(input.map((one) => one.name));
  const nodeOf = (tensor: string): Node => {
    const node = nodes.get(tensor) ?? { maker: null, isTaken: false, isMade: false };
    nodes.set(tensor, node);
    return node;
  };
  for (const [i, { input_map, output_map }] of steps.entries()) {
    for (const tensor of Object.values(output_map)) {
      const node = nodeOf(tensor);
      if (node.maker !== null) {
        return said(
          `ensemble tensor '${tensor}' can appear in an output map only once for ensemble '${name}' step ${i}`,
          i,
        );
      }
      if (inputs.has(tensor)) {
        return said(
          `ensemble input '${tensor}' can appear in no output map, but does for ensemble '${name}' step ${i}`,
          i,
        );
      }
      node.maker = i;
    }
    for (const tensor of Object.values(input_map)) nodeOf(tensor).isTaken = true;
  }
  return null;
}

/** Marks what is made of what is made already, until nothing new is. */
function follow(steps: readonly ConfiguredStep[], nodes: ReadonlyMap<string, Node>): void {
  const waiting = new Set(steps);
  for (let isChanged = true; isChanged; ) {
    isChanged = false;
    for (const step of waiting) {
      if (!Object.values(step.input_map).every((tensor) => nodes.get(tensor)!.isMade)) continue;
      for (const tensor of Object.values(step.output_map)) nodes.get(tensor)!.isMade = true;
      waiting.delete(step);
      isChanged = true;
    }
  }
}

/** Goes back from an output that is not made to a tensor that no step makes, or once around a circle. */
function whyNotMade(
  ensemble: string,
  output: string,
  steps: readonly ConfiguredStep[],
  nodes: ReadonlyMap<string, Node>,
): string {
  const seen = new Set([output]);
  let last = output;
  for (;;) {
    const { maker } = nodes.get(last)!;
    const before = maker === null ? [] : Object.values(steps[maker]!.input_map);
    const next = before.find((tensor) => !nodes.get(tensor)!.isMade && !seen.has(tensor));
    if (next === undefined) break;
    seen.add(next);
    last = next;
  }
  const cause = last === output ? '' : `: at least one of its depending tensors, '${last}', is not connected`;
  return `output '${output}' for ensemble '${ensemble}' is not written${cause}`;
}
