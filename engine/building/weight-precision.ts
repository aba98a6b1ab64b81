import type { Checkpoint, TensorType } from '../../models/checkpoints/checkpoint.js';
import type { NetworkPlan } from '../../network/plan.js';
import { networksOf } from '../../network/products.js';
import type { EnginePrecision, OutputPrecision } from '../directory/engine-directory.js';
import { isKept } from '../directory/stored-precision.js';

/** Precisions of an engine. */
export const PRECISIONS: readonly EnginePrecision[] = ['f32', 'bf16', 'int8', 'int4', 'stored'];
const OUTPUT_PRECISIONS: readonly OutputPrecision[] = ['f32', 'bf16', 'int8', 'stored'];

/**
 * Precision of the routers of experts, whatever the others have: they are small, and one that is rounded sends tokens to other experts.
 */
export const ROUTER_PRECISION = 'f32';

/**
 * Types whose numbers int4 can hold: stored with others of up to 8 bits they would be twice as large in int8.
 */
const HALVED: ReadonlySet<TensorType> = new Set(['Q4_0', 'Q4_1', 'TQ1_0', 'TQ2_0']);

/** Checks the value of --weights, which may be 'auto'; throws for an unknown one. */
export function checkWeightPrecision(precision: string): EnginePrecision | 'auto' {
  return precision === 'auto' ? precision : oneOf('Weight precision', precision, PRECISIONS);
}

/** Checks the value of --output-weights, which may be 'auto'; throws for an unknown one. */
export function checkOutputPrecision(precision: string): OutputPrecision | 'auto' {
  return precision === 'auto' ? precision : oneOf('Output precision', precision, OUTPUT_PRECISIONS);
}

/**
 * Precision that 'auto' means for a model. It comes from a table, never from a timing, and is written into engine.json,
 * so that a model always gets the same engine. It is the fastest format that rounds the checkpoint's weights no
 * further; for formats that no kernel computes with directly, it is the next larger one. The order of speed is the same
 * on every instruction set.
 *
 * | matrices of the layers are stored as | weights |
 * |---|---|
 * | Q4_0, Q4_1, TQ1_0 or TQ2_0, all of them | int4: the same numbers |
 * | formats of up to 8 bits, some of them with kernels of their own or in 4 bits | stored: each matrix has its own numbers (stored-precision.ts) |
 * | other formats of up to 8 bits, all of them | int8: Q8_0's numbers, a second rounding for the others |
 * | safetensors, some of them quantised | stored: the same numbers where a format of ours has them (quantized-blocks.ts) |
 * | anything else | bf16 |
 *
 * @param checkpoint whose stored types are read
 * @param plan whose embedding, output layer and routers are left out: they have precisions of their own
 */
export function automaticPrecision(
  checkpoint: Pick<Checkpoint, 'tensors'>,
  plan: NetworkPlan,
): EnginePrecision {
  if ([...checkpoint.tensors.values()].some(({ quantized }) => quantized !== undefined)) return 'stored';
  const types = layerTypes(checkpoint, plan);
  const all = (fits: (type: TensorType) => boolean) => types.every(fits);
  if (all((type) => HALVED.has(type))) return 'int4';
  if (types.some((type) => type === 'F32' || type === 'F16' || type === 'BF16')) return 'bf16';
  return types.some((type) => isKept(type) || HALVED.has(type)) ? 'stored' : 'int8';
}

/** Storage types of the matrices of the layers, by which the precision is chosen: without embedding, output layer and routers. */
export function layerTypes(checkpoint: Pick<Checkpoint, 'tensors'>, plan: NetworkPlan): TensorType[] {
  const outputs = outputWeights(plan);
  const routers = routerWeights(plan);
  return typesOf(checkpoint, plan, (name) => !outputs.has(name) && !routers.has(name));
}

/**
 * The precision of embedding and output layer: as they are stored where kernels of their own keep that, or where the other weights
 * are; else that of the other weights, but no less than 8 bits.
 */
export function automaticOutputPrecision(
  precision: EnginePrecision,
  checkpoint: Pick<Checkpoint, 'tensors'>,
  plan: NetworkPlan,
): OutputPrecision {
  if (precision === 'f32' || precision === 'bf16') return precision;
  const outputs = outputWeights(plan);
  const types = typesOf(checkpoint, plan, (name) => outputs.has(name));
  return precision === 'stored' || types.every(isKept) ? 'stored' : 'int8';
}

function typesOf(
  checkpoint: Pick<Checkpoint, 'tensors'>,
  plan: NetworkPlan,
  isMeant: (weight: string) => boolean,
): TensorType[] {
  return plan.weights
    .filter(({ name, kind }) => kind === 'matrix' && isMeant(name))
    .flatMap(({ sources }) => sources.map(({ name }) => checkpoint.tensors.get(name)!.type));
}

function oneOf<T extends string>(what: string, value: string, choices: readonly T[]): T {
  const found = choices.find((choice) => choice === value);
  if (found !== undefined) return found;
  throw new Error(`${what} "${value}" is not supported; supported: auto, ${choices.join(', ')}.`);
}

/** Names of the weights whose rows are looked up, as those that embed tokens, or that make logits. */
export function outputWeights(plan: NetworkPlan): Set<string> {
  const names = plan.ops.flatMap((op) =>
    op.op === 'embedding' ||
    op.op === 'addEmbedding' ||
    op.op === 'distanceRows' ||
    (op.op === 'linear' && op.output === plan.logits)
      ? [op.weight]
      : [],
  );
  return new Set(names);
}

/** Names of the weights that give rows their scores of the experts. */
export function routerWeights(plan: NetworkPlan): Set<string> {
  const names = networksOf(plan).flatMap(({ ops }) => {
    const scores = new Set(ops.flatMap((op) => (op.op === 'experts' ? [op.scores] : [])));
    return ops.flatMap((op) => (op.op === 'linear' && scores.has(op.output) ? [op.weight] : []));
  });
  return new Set(names);
}
