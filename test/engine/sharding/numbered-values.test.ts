import { expect, it } from 'vitest';
import type { EngineTensor } from '../../../engine/directory/engine-directory.js';
import { splitPlan } from '../../../engine/sharding/split-plan.js';
import { planNetwork } from '../../../models/architectures/index.js';
import { openCheckpoint } from '../../../models/checkpoints/open-checkpoint.js';
import type { PlanOp, PlanValue } from '../../../network/plan.js';
import { valuesOf } from '../../../network/slot-assignment.js';
import { freshFolders } from '../../support/fresh-folders.js';
import { MADE_EMBEDDERS, writeMadeEmbedder } from '../../support/made-embedders.js';

const fresh = freshFolders('skein-numbered-values');

/** Shapes of the values that an op names. */
function shapesOf(op: PlanOp, values: readonly PlanValue[]): string[] {
  const { reads, writes } = valuesOf(op);
  return [...reads, ...writes].map((value) => `${values[value]?.rows} x ${values[value]?.width}`);
}

it("values have the numbers of a rank's own plan in every op of every model that embeds or scores", () => {
  const kinds = new Set<string>();
  for (const made of MADE_EMBEDDERS) {
    const plan = planNetwork(openCheckpoint(writeMadeEmbedder(fresh(), made)).config);
    const layers = plan.ops.filter(({ op }) => op === 'ropeAndCache').length;
    if (plan.attention.distances !== undefined || layers < 2) continue;
    const tensors = plan.weights.map(
      ({ name, rows, columns }) => ({ name, rows, columns, byteLength: 4 * rows * columns }) as EngineTensor,
    );
    for (const rank of [0, 1]) {
      const shape = { tensorParallelSize: 1, pipelineParallelSize: 2 };
      const { ops, values, origins } = splitPlan({ plan, tensors }, shape, rank);
      for (const [i, op] of ops.entries()) {
        if (op.op === 'exchange') continue;
        kinds.add(op.op);
        const whole = shapesOf(plan.ops[origins[i]!]!, plan.values);
        expect(shapesOf(op, values), `${made.name}, rank ${rank}, ${op.op}`).toEqual(whole);
      }
    }
  }
  expect([...kinds]).toEqual(
    expect.arrayContaining(['join', 'normalize', 'experts', 'meanPool', 'addEmbedding']),
  );
});
