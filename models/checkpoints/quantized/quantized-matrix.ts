import type { RawTensor } from '../raw-tensor.js';
import type { ModuleTensors } from './module-tensors.js';
import { blockType } from './quantized-blocks.js';
import type { QuantizedSource } from './quantized-source.js';

/** The matrix of a module under the name of a plain one. @param codes the tensor that its codes lie in */
export function quantizedMatrix(
  codes: RawTensor,
  { name: module }: Pick<ModuleTensors, 'name'>,
  shape: [rows: number, columns: number],
  source: Omit<QuantizedSource, 'name'>,
): RawTensor {
  const quantized: QuantizedSource = { name: codes.name, ...source };
  return { ...codes, name: `${module}.weight`, shape, type: blockType(quantized, shape[1]), quantized };
}
