import { SkeinError } from '../../base/skein-error.js';
import type { ConfiguredEnsemble, ConfiguredStep, ConfiguredTensor } from './ensemble-graph.js';

/** A model that an ensemble has a step for, in the words of its configuration. */
export interface ConfiguredMember {
  readonly name: string;
  readonly max_batch_size: number;
  readonly input: readonly ConfiguredTensor[];
  readonly output: readonly ConfiguredTensor[];
  readonly model_transaction_policy: { readonly decoupled: boolean };
}

/** An ensemble and its members do not fit together. */
export class EnsembleError extends SkeinError {
  override name = 'EnsembleError';
  override readonly code = 'SKEIN_ENSEMBLE';
}

/** A step with its tensors by number. */
export interface PlannedStep {
  readonly model: string;
  /** '': the latest. */
  readonly version: string;
  /** Inputs of the model, each with the number of its tensor. */
  readonly inputs: readonly (readonly [name: string, tensor: number])[];
  readonly outputs: readonly (readonly [name: string, tensor: number])[];
}

/**
 * An ensemble as its requests run through it. Tensors are numbered, its inputs first:
 *
 *   tensors   0 IMAGE   1 preprocessed   2 CLASSIFICATION   3 SEGMENTATION
 *   steps     0: 0 -> 1     1: 1 -> 2     2: 1 -> 3
 */
export interface EnsemblePlan {
  readonly tensors: readonly string[];
  readonly numInputs: number;
  readonly steps: readonly PlannedStep[];
  /** Numbers of the ensemble's outputs, in the order of its configuration. */
  readonly outputs: readonly number[];
  /** Steps that take each tensor. */
  readonly takers: readonly (readonly number[])[];
  /** It may answer a request any number of times, since one of its members may. */
  readonly isDecoupled: boolean;
}

/** A tensor, and the model that says so of it. */
interface Claim {
  readonly model: string;
  readonly type: string;
  readonly dims: readonly number[];
  /** With the batch dimension, if the model has one. */
  readonly fullDims: readonly number[];
}

/**
 * Holds an ensemble against its members and makes its plan. The graph has been found to be well by itself (graphProblem).
 * @param members the model of each step @throws EnsembleError in Triton's words
 */
export function planEnsemble(
  ensemble: ConfiguredEnsemble,
  members: readonly ConfiguredMember[],
): EnsemblePlan {
  const steps = ensemble.ensemble_scheduling?.step ?? [];
  const claims = new Map<string, Claim>();
  for (const tensor of [...ensemble.input, ...ensemble.output])
    claims.set(tensor.name, claimOf(ensemble, tensor, tensor.reshape?.shape ?? tensor.dims));
  for (const [i, step] of steps.entries()) checkMember(ensemble, step, members[i]!, claims);
  const plan = numbered(ensemble, steps);
  return { ...plan, isDecoupled: checkDecoupled(ensemble.name, plan, members) };
}

function numbered(
  ensemble: ConfiguredEnsemble,
  steps: readonly ConfiguredStep[],
): Omit<EnsemblePlan, 'isDecoupled'> {
  const numbers = new Map<string, number>();
  const numberOf = (tensor: string): number => {
    const number = numbers.get(tensor) ?? numbers.size;
    numbers.set(tensor, number);
    return number;
  };
  for (const { name } of ensemble.input) numberOf(name);
  const planned = steps.map(({ model_name, model_version, input_map, output_map }) => ({
    model: model_name,
    version: model_version < 0 ? '' : String(model_version),
    inputs: Object.entries(input_map).map(([name, tensor]) => [name, numberOf(tensor)] as const),
    outputs: Object.entries(output_map).map(([name, tensor]) => [name, numberOf(tensor)] as const),
  }));
  const outputs = ensemble.output.map(({ name }) => numberOf(name));
  const takers = Array.from(numbers, (): number[] => []);
  for (const [i, { inputs }] of planned.entries())
    for (const tensor of new Set(inputs.map(([, one]) => one))) takers[tensor]!.push(i);
  return { tensors: [...numbers.keys()], numInputs: ensemble.input.length, steps: planned, outputs, takers };
}

function claimOf(
  { name, max_batch_size }: Pick<ConfiguredMember, 'name' | 'max_batch_size'>,
  { data_type: type }: ConfiguredTensor,
  dims: readonly number[],
): Claim {
  return { model: name, type, dims, fullDims: max_batch_size > 0 ? [-1, ...dims] : dims };
}

function checkMember(
  ensemble: ConfiguredEnsemble,
  step: ConfiguredStep,
  member: ConfiguredMember,
  claims: Map<string, Claim>,
): void {
  const { name, max_batch_size: most } = ensemble;
  if (member.max_batch_size !== 0 && member.max_batch_size < most) {
    throw new EnsembleError(
      `ensemble ${name} allows maximum batch size ${most}, but it contains model ${step.model_name} which only allows maximum batch size to be ${member.max_batch_size}`,
    );
  }
  const claim = (tensor: string, configured: ConfiguredTensor) => {
    const found = claimOf(member, configured, configured.dims);
    const known = claims.get(tensor);
    if (known === undefined) claims.set(tensor, found);
    else checkClaims(name, tensor, known, found);
  };
  const inputMap = new Map(Object.entries(step.input_map));
  for (const [input, tensor] of inputMap) {
    if (member.input.some((one) => one.name === input)) continue;
    throw new EnsembleError(
      `in ensemble ${name}, ensemble tensor ${tensor} is mapping to non-existing input ${input} in model ${step.model_name}`,
    );
  }
  for (const input of member.input) {
    const tensor = inputMap.get(input.name);
    if (tensor !== undefined) claim(tensor, input);
    else if (!input.optional) {
      throw new EnsembleError(
        `in ensemble ${name}, input ${input.name} in model ${step.model_name} is not mapped to any ensemble tensors`,
      );
    }
  }
  for (const [output, tensor] of Object.entries(step.output_map)) {
    const found = member.output.find((one) => one.name === output);
    if (found !== undefined) claim(tensor, found);
    else {
      throw new EnsembleError(
        `in ensemble ${name}, ensemble tensor ${tensor} is mapped from non-existing output ${output} in model ${step.model_name}`,
      );
    }
  }
}

/**
 * Two models may know a tensor with and without the batch dimension: [-1, 4] of one that takes no batches is [4] of one that does.
 * Where a size is free, requests show whether it fits.
 */
function checkClaims(ensemble: string, tensor: string, known: Claim, found: Claim): void {
  const where = `in ensemble ${ensemble}, ensemble tensor ${tensor}: `;
  if (known.type !== found.type) {
    throw new EnsembleError(
      `${where}inconsistent data type: ${known.type} is inferred from model ${known.model} while ${found.type} is inferred from model ${found.model}`,
    );
  }
  if (fits(known.dims, found.dims) || fits(known.fullDims, found.fullDims)) return;
  throw new EnsembleError(
    `${where}inconsistent shape: [${known.fullDims}] is inferred from model ${known.model} while [${found.fullDims}] is inferred from model ${found.model}`,
  );
}

function fits(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((size, i) => size === -1 || b[i] === -1 || size === b[i]);
}

/**
 * What a decoupled model gives comes any number of times: it cannot meet at a step what comes another number of times. The numbers of
 * one origin go together: each decoupled step begins a new one.
 * @returns true where some step is decoupled
 */
function checkDecoupled(
  ensemble: string,
  { tensors, numInputs, steps, outputs: answered }: Omit<EnsemblePlan, 'isDecoupled'>,
  members: readonly ConfiguredMember[],
): boolean {
  const checkSame = (found: readonly number[], model: string) => {
    if (found.every((one) => one === found[0])) return;
    throw new EnsembleError(
      `in ensemble ${ensemble}, step of model '${model}' receives inputs originated from different decoupled models`,
    );
  };
  const origins = tensors.map((_, tensor): number => (tensor < numInputs ? 0 : -1));
  const waiting = new Set(steps.keys());
  let numOrigins = 0;
  for (let isChanged = true; isChanged; ) {
    isChanged = false;
    for (const i of waiting) {
      const { model, inputs, outputs } = steps[i]!;
      const found = inputs.map(([, tensor]) => origins[tensor]!);
      if (found.includes(-1)) continue;
      checkSame(found, model);
      const origin = members[i]!.model_transaction_policy.decoupled ? ++numOrigins : found[0]!;
      for (const [, tensor] of outputs) origins[tensor] = origin;
      waiting.delete(i);
      isChanged = true;
    }
  }
  const told = answered.map((tensor) => origins[tensor]!);
  checkSame(told, ensemble);
  return numOrigins > 0;
}
