import { createHash } from 'node:crypto';
import type { EngineTensor } from '../directory/engine-directory.js';
import type { LoadableEngine } from '../executors/executor-kind.js';

/**
 * What names a model's weights, so that ranks that have others are refused: a hash of its plan and of its tensors, with the checksums
 * of their bytes. It is the same wherever the tensors lie: one rank may read them from a GGUF, another one from its weights.bin.
 */
export function modelName({ plan, tensors }: Pick<LoadableEngine, 'plan' | 'tensors'>): string {
  return createHash('sha256')
    .update(JSON.stringify([plan, tensors.map(contentOf)]))
    .digest('hex');
}

const contentOf = ({ name, dtype, firstRow = 0, rows, columns, checksum }: EngineTensor) => [
  name,
  dtype,
  firstRow,
  rows,
  columns,
  checksum,
];
