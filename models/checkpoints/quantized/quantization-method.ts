import type { RawTensor } from '../raw-tensor.js';
import type { ModuleTensors } from './module-tensors.js';

/** How a model's matrices are quantised, as its config.json says. */
export interface QuantizationMethod {
  /** For people: "GPTQ (4 bits, groups of 128)". */
  label: string;
  /** What follows a module's name in the names of its tensors of codes. A tensor of plain numbers with such a name stays what it is. */
  codes: readonly string[];
  /** The same of the tensors without which codes mean nothing. */
  needed: readonly string[];
  /** The same of the tensors that are left out: scales of activations, which are not rounded to these types here. */
  unread: readonly string[];
  /** What stands before these parts of a name; absent: a dot. */
  separator?: string;
  /** The module and the part that a name means, where they are not what stands around the last separator; null where they are. */
  split?(name: string): [module: string, part: string] | null;
  /** The matrix of a module that has codes. @throws CheckpointError */
  matrix(module: ModuleTensors): RawTensor;
}
