import { createHash } from 'node:crypto';
import type { LoadableEngine } from '../executors/executor-kind.js';

/**
 * What names a model's weights, so that ranks that have others are refused: a hash of its plan and of its tensors, with the checksums
 * of their bytes.
 */
export function modelName({ plan, tensors }: Pick<LoadableEngine, 'plan' | 'tensors'>): string {
  return createHash('sha256')
    .update(JSON.stringify([plan, tensors]))
    .digest('hex');
}
