import type { NetworkPlan } from './plan.js';

/**
 * Width of the rows that a prompt may bring for its tokens: an embedding, and what later ops add of it.
 *
 *   row   | embedding | for one addPromptRows | for another |
 */
export function promptRowWidth({ ops, values }: Pick<NetworkPlan, 'ops' | 'values'>): number {
  return ops.reduce((most, op) => {
    if (op.op === 'embedding') return Math.max(most, values[op.output]!.width);
    if (op.op === 'addPromptRows') return Math.max(most, op.first + values[op.value]!.width);
    return most;
  }, 0);
}
