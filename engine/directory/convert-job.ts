import type { TensorType } from '../../models/checkpoints/checkpoint.js';
import type { QuantizedSource } from '../../models/checkpoints/quantized/quantized-source.js';
import type { TensorPrecision } from './engine-directory.js';

/** One tensor (or a slice of a stacked one) from a checkpoint file into a file of the engine directory. */
export interface ConvertJob {
  source: string;
  sourceOffset: number;
  sourceByteLength: number;
  type: TensorType;
  rows: number;
  columns: number;
  /** Heads whose rows llama.cpp interleaved (see TensorLocation); 0 = none. */
  interleavedHeads: number;
  /** True if the source holds [columns, rows]. Default: false. */
  transposed?: boolean;
  /** Value added to each element. Default 0. */
  addend?: number;
  /** Value that each element is multiplied by then, rounded once. Default 1. */
  factor?: number;
  /** Other parts of a quantised matrix, whose codes the source's bytes are: it is read as blocks of `type`. */
  quantized?: QuantizedSource;
  targetOffset: number;
  targetType: TensorPrecision;
}
