import type { ModelConfig } from '../model-config.js';
import { biasSlices, expertTensorName } from './expert-tensors.js';
import { type RawTensor, refuseShape, refuseUnsupportedType } from './raw-tensor.js';
import { rowSlices } from './row-slices.js';
import type { NamedTensor } from './tensor-layout.js';

const STACKED = /^model\.layers\.(0|[1-9]\d*)\.mlp\.experts\.(gate_up|down)_proj(_bias)?$/;

/**
 * Tensors of gpt-oss, which has those of all experts of a layer in one. The rows of gate and up take turns; the conversion takes them
 * apart. Plain matrices stand as [in, out] in the file, quantised ones as [out, in]:
 *
 *   gate_up_proj   [experts, hidden, 2 x width], or [experts, 2 x width, hidden]      outputs   gate 0, up 0, gate 1, up 1 ...
 *   down_proj      [experts, width, hidden], or [experts, hidden, width]
 *
 * @throws CheckpointError for another shape, or a type of which no slice can be read
 */
export function gptOssTensors(name: string, tensor: RawTensor, config: ModelConfig): [string, NamedTensor][] {
  const { hiddenSize, numLayers, architecture } = config;
  const { count, width } = config.experts!;
  const [, layer, kind, bias] = STACKED.exec(name) ?? [];
  if (layer === undefined || Number(layer) >= numLayers) return [[name, tensor]];
  const matrix = kind === 'down' ? 'down' : 'stacked';
  const turns = kind === 'down' ? {} : { interleavedHeads: 1 };
  const [rows, columns] = kind === 'down' ? [hiddenSize, width] : [2 * width, hiddenSize];
  if (bias !== undefined)
    return biasSlices(tensor, config, layer, matrix, rows).map(([own, slice]) => [
      own,
      { ...slice, ...turns },
    ]);
  refuseUnsupportedType(tensor);
  const transposed = tensor.quantized === undefined;
  const stored = transposed ? [columns, rows] : [rows, columns];
  refuseShape(tensor, [count, ...stored]);
  const parts = Array.from(
    { length: count },
    (_, expert) => [expertTensorName(architecture, layer, expert, matrix)!, stored[0]!] as const,
  );
  return rowSlices(tensor, parts, stored[1]!).map(([own, slice]) => [
    own,
    { ...slice, ...turns, ...(transposed && { transposed }) },
  ]);
}
