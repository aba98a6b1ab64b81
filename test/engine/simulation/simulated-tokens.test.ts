import { expect, it } from 'vitest';
import { SimulatedTokens } from '../../../engine/simulation/simulated-tokens.js';
import { Simulation } from '../../../engine/simulation/simulation.js';

const PROMPT = [5, 6, 7];

it('made-up tokens go behind a prompt, each unlike any other, in its array where it has room', () => {
  const tokens = new SimulatedTokens();
  const roomy = Int32Array.from([...PROMPT, 0, 0]);
  const inPlace = tokens.continued(roomy, 3, 4);
  expect(inPlace).toBe(roomy);
  expect([...inPlace.subarray(0, 3)]).toEqual(PROMPT);
  const longer = tokens.continued(Int32Array.from(PROMPT), 3, 4);
  expect([...longer.subarray(0, 3)]).toEqual(PROMPT);
  expect(longer.length).toBeGreaterThanOrEqual(4);
  const evenLonger = tokens.continued(roomy, 5, 9);
  expect([...evenLonger.subarray(0, 5)]).toEqual([...roomy]);
  const drawn = [...roomy.subarray(3), ...longer.subarray(3), ...evenLonger.subarray(5)];
  expect(new Set(drawn).size).toBe(drawn.length);
  expect(drawn.every((token) => token < 0)).toBe(true);
});

it('a simulation is the same whether prompts bring room or not', () => {
  const run = (room: number) => {
    const simulation = new Simulation({
      ...{ policy: 'MAX_UTILIZATION', numBlocks: 7, tokensPerBlock: 4, maxNumRequests: 4 },
      ...{ microBatch: { maxBatchSize: 4, maxNumTokens: 100 }, enableBlockReuse: true },
    });
    const told: unknown[] = [];
    const arrays = [0, 1, 2].map(() => Int32Array.from([...PROMPT, 8, 9, ...new Array(room).fill(0)]));
    for (const [index, tokens] of arrays.entries()) {
      simulation.arrive({ requestId: BigInt(index), promptLength: 5, maxNewTokens: 12, tokens });
    }
    while (simulation.active.length > 0) {
      const { active, steps, paused, blocks } = simulation.iterate();
      told.push({ active, steps, paused, blocks });
    }
    return { told, arrays };
  };
  const without = run(0);
  expect(run(12).told).toEqual(without.told);
  expect(run(3).told).toEqual(without.told);
  // With 7 blocks one request has to give way, and comes back with what it had.
  expect(without.told.some((one) => (one as { paused: bigint[] }).paused.length > 0)).toBe(true);
  expect(without.arrays.every((tokens) => tokens.length === 5)).toBe(true);
  for (const tokens of run(12).arrays) expect(tokens.subarray(5).every((token) => token < 0)).toBe(true);
});
