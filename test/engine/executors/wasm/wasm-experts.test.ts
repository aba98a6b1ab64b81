import { describe, expect, it, vi } from 'vitest';
import { WasmHeap } from '../../../../engine/executors/wasm/heap.js';
import {
  memoryLayout,
  ROWS_AT_ONCE,
  workspaceParts,
} from '../../../../engine/executors/wasm/memory-layout.js';
import { makeTinyNetwork } from '../../../../tools/support/tiny-network.js';
import {
  EXPERT_INNER,
  EXPERT_WIDTH,
  type ExpertNetwork,
  expertBatch,
  expertOptions,
  makeExpertNetwork,
} from '../../../support/expert-networks.js';
import { freshFolders } from '../../../support/fresh-folders.js';
import { naiveShares } from '../../../support/naive-experts.js';
import { executorOptions } from '../../../support/native-options.js';
import { SteppedRunner } from '../../../support/wasm-runner.js';

const freshFolder = freshFolders('skein-wasm-experts');
const SETTINGS = { count: 7, used: 3, normalize: true, activation: 'relu' as const };
const f32 = Math.fround;

/** The row of a token by the op's order of operations, each rounded to float32. */
function rowOf({ weights }: ExpertNetwork, token: number): Float32Array {
  const x = weights.get('embedding')!.subarray(token * EXPERT_WIDTH, (token + 1) * EXPERT_WIDTH);
  const product = (input: Float32Array, name: string) => {
    const matrix = weights.get(name)!;
    return Float32Array.from({ length: matrix.length / input.length }, (_, n) =>
      input.reduce((sum, value, k) => f32(sum + f32(value * matrix[n * input.length + k]!)), 0),
    );
  };
  const sum = new Float32Array(EXPERT_WIDTH);
  for (const { expert, share } of naiveShares(x.subarray(0, SETTINGS.count), SETTINGS)) {
    const gateUp = product(x, `gateUp.${expert}`);
    const gated = gateUp
      .slice(0, EXPERT_INNER)
      .map((gate, i) => Math.max(gate, 0) * gateUp[EXPERT_INNER + i]!);
    const down = product(gated, `down.${expert}`);
    for (const [i, y] of down.entries()) sum[i] = f32(sum[i]! + f32(f32(share) * y));
  }
  return sum.map((y, i) => y + x[i]!);
}

describe('mixtures of experts', () => {
  it('add up a row’s experts in ascending order, then the residual', async () => {
    const network = makeExpertNetwork(freshFolder(), SETTINGS);
    const executor = await SteppedRunner.open(network, expertOptions(2 * ROWS_AT_ONCE));
    const tokens = Array.from({ length: 2 * ROWS_AT_ONCE }, (_, i) => (i * 5) % EXPERT_WIDTH);
    const rows = executor.forward(expertBatch(network, tokens)).slice();
    for (const [i, token] of tokens.entries()) {
      const row = rows.slice(i * EXPERT_WIDTH, (i + 1) * EXPERT_WIDTH);
      // -0 and 0 are the same here: what goes through the output layer is added to zeros.
      expect(
        [...row].map((y) => y + 0),
        `row ${i}`,
      ).toEqual([...rowOf(network, token)].map((y) => y + 0));
    }
  });

  it('make no more tensors and take no more memory, whoever goes to which expert', async () => {
    const opening = vi.spyOn(WasmHeap, 'open');
    const network = makeExpertNetwork(freshFolder(), SETTINGS);
    const executor = await SteppedRunner.open(network, expertOptions(2 * ROWS_AT_ONCE));
    const heap = await opening.mock.results[0]!.value;
    opening.mockRestore();
    const step = (i: number) => {
      const tokens = Array.from({ length: 1 + ((i * 37) % 200) }, (_, row) => (row * (i + 1)) % EXPERT_WIDTH);
      executor.forward(expertBatch(network, tokens));
    };
    // 199 rows are two passes, and have the places of all passes.
    for (let i = 0; i < 200; i++) step(i);
    const before = { bytes: heap.bytes, tensorsMade: heap.tensorsMade };
    for (let i = 0; i < 500; i++) step(i);
    expect({ bytes: heap.bytes, tensorsMade: heap.tensorsMade }).toEqual(before);
  });

  it('are counted: their matrices as weights, and a pass of rows as workspace', () => {
    const { plan } = makeExpertNetwork(freshFolder(), SETTINGS);
    const options = executorOptions();
    const { experts } = workspaceParts(plan, options);
    const roundedUp = (bytes: number) => 64 * Math.ceil(bytes / 64);
    expect(experts).toEqual({
      inputs: roundedUp(4 * ROWS_AT_ONCE * EXPERT_WIDTH),
      gated: roundedUp(4 * ROWS_AT_ONCE * EXPERT_INNER),
      sums: roundedUp(4 * ROWS_AT_ONCE * EXPERT_WIDTH),
    });
    const numbers = plan.weights.reduce((sum, { rows, columns }) => sum + rows * columns, 0);
    expect(memoryLayout(plan, options).packedWeights).toBeGreaterThan(4 * (numbers - EXPERT_WIDTH ** 2));
    const tiny = makeTinyNetwork();
    expect(workspaceParts(tiny.plan, options).experts).toEqual({ inputs: 0, gated: 0, sums: 0 });
    tiny.remove();
  });
});
