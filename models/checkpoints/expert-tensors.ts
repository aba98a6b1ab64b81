import { expertNames } from '../architectures/expert-names.js';
import type { ModelConfig } from '../model-config.js';
import { type RawTensor, refuseShape, refuseUnsupportedType } from './raw-tensor.js';
import { rowSlices } from './row-slices.js';
import type { NamedTensor } from './tensor-layout.js';

/** A matrix that each expert has; stacked: gate and up in one, in families whose files have that. */
export type ExpertMatrix = 'gate' | 'up' | 'down' | 'stacked';

/** Name that the network has for a matrix of an expert; undefined where the architecture has no experts. */
export function expertTensorName(
  architecture: string,
  layer: string,
  expert: number | string,
  matrix: ExpertMatrix,
  end: 'weight' | 'bias' = 'weight',
): string | undefined {
  if (architecture === 'ropebert') return `layers.${layer}.mlp.experts.${expert}.${matrix}_proj.weight`;
  const names = expertNames(architecture);
  return names && `model.layers.${layer}.${names.block}.experts.${expert}.${names[matrix]}.${end}`;
}

/** Name that the network has for the matrix that gives tokens their scores of the experts. */
export function routerName(architecture: string, layer: string): string {
  const { block, router = 'gate' } = expertNames(architecture)!;
  return `model.layers.${layer}.${block}.${router}.weight`;
}

/** Names of the matrices that one tensor of a layer has for all experts, `stacked` in each: those of the first expert first. */
export function stackedNames(
  { architecture, experts }: ModelConfig,
  layer: string,
  stacked: readonly ExpertMatrix[],
  end?: 'weight' | 'bias',
): string[] {
  return Array.from({ length: experts?.count ?? 0 }).flatMap((_, expert) =>
    stacked.map((matrix) => expertTensorName(architecture, layer, expert, matrix, end)!),
  );
}

/**
 * The matrices of experts that one tensor has, of shape [experts, rows, columns] where `stacked` is one matrix, and each expert has the
 * rows of several one after another where there are more:
 *
 *   | expert 0: gate, up | expert 1: gate, up | ...      each a slice of the tensor's bytes
 *
 * @throws CheckpointError for another shape, or a type of which no slice can be read
 */
export function expertSlices(
  tensor: RawTensor,
  config: ModelConfig,
  layer: string,
  stacked: readonly ExpertMatrix[],
): [name: string, slice: NamedTensor][] {
  const { hiddenSize } = config;
  const { count, width } = config.experts!;
  refuseUnsupportedType(tensor);
  if (config.experts!.stacked) return wholeSlices(tensor, config, layer, stacked);
  const [rows, columns] = stacked.includes('down') ? [hiddenSize, width] : [width, hiddenSize];
  refuseShape(tensor, [count, stacked.length * rows, columns]);
  const names = stackedNames(config, layer, stacked);
  const parts = names.map((name) => [name, rows] as const);
  return rowSlices(tensor, parts, columns);
}

/** Those of Qwen3-VL's files, which have gate and up of an expert in one matrix: [out, in], or as its makers wrote them [in, out]. */
function wholeSlices(
  tensor: RawTensor,
  config: ModelConfig,
  layer: string,
  matrices: readonly ExpertMatrix[],
): [name: string, slice: NamedTensor][] {
  const { hiddenSize } = config;
  const { count, width } = config.experts!;
  const isDown = matrices.includes('down');
  const shape = isDown ? [hiddenSize, width] : [2 * width, hiddenSize];
  const transposed = tensor.shape[1] !== shape[0];
  const [rows = 0, columns = 0] = transposed ? shape.reverse() : shape;
  refuseShape(tensor, [count, rows, columns]);
  const names = stackedNames(config, layer, [isDown ? 'down' : 'stacked']);
  const parts = names.map((name) => [name, rows] as const);
  return rowSlices(tensor, parts, columns).map(([name, slice]) => [
    name,
    { ...slice, ...(transposed && { transposed }) },
  ]);
}

/**
 * The biases of a matrix of all experts, of shape [experts, rows], each as a vector of its own.
 * @throws CheckpointError for another shape, or a type of which no slice can be read
 */
export function biasSlices(
  tensor: RawTensor,
  config: ModelConfig,
  layer: string,
  matrix: ExpertMatrix,
  rows: number,
): [name: string, slice: NamedTensor][] {
  refuseUnsupportedType(tensor);
  refuseShape(tensor, [config.experts!.count, rows]);
  const parts = stackedNames(config, layer, [matrix], 'bias').map((name) => [name, 1] as const);
  return rowSlices(tensor, parts, rows).map(([name, slice]) => [name, { ...slice, shape: [rows] }]);
}
