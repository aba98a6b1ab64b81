import { afterAll, describe, expect, it } from 'vitest';
import { NativeExecutor } from '../../../../engine/executors/native/native-executor.js';
import type { KvDtype } from '../../../../kvcache/cache-shape.js';
import { Random } from '../../../../tools/support/random.js';
import { makeStepBatch } from '../../../../tools/support/step-batch.js';
import { type TinyNetwork, TinyNetworks } from '../../../../tools/support/tiny-network.js';
import { greatestError, naiveLogits } from '../../../support/naive-network.js';
import { executorOptions, instructionSets, multipliesPairs } from '../../../support/native-options.js';

const WIDTH = 48;
/** Rows of the sequences, and where each is cut in two steps. */
const LENGTHS = [37, 1, 20];
const CUTS = [18, 0, 19];
const BLOCKS = LENGTHS.map((_, s) => [3 * s, 3 * s + 1, 3 * s + 2]);

const networks = new TinyNetworks();
afterAll(() => networks.remove());
const made = {
  f32: networks.make({ hiddenSize: WIDTH, handsRows: true }),
  bf16: networks.make({ hiddenSize: WIDTH, handsRows: true, precision: 'bf16' }),
};

const random = new Random(31);
const TOKENS = LENGTHS.map((length) => random.tokens(length, 131));
/** [sequence] -> what the caller brings, a row for each token */
const ROWS = LENGTHS.map((length) => Float32Array.from({ length: length * WIDTH }, () => random.normal()));

interface Found {
  /** [sequence][position] -> logits, and the row that was kept. */
  logits: Float32Array[][];
  kept: Float32Array[][];
}

/** Feeds all sequences side by side, in steps that end where each of `ends` says. */
function run(
  network: TinyNetwork,
  options: { kvDtype: KvDtype; instructionSet: string | undefined },
  ends: number[][],
): Found {
  const executor = new NativeExecutor(network, executorOptions({ ...options, maxLogitRows: 64 } as object));
  const found: Found = { logits: LENGTHS.map(() => []), kept: LENGTHS.map(() => []) };
  const cached = LENGTHS.map(() => 0);
  for (const [step, upTo] of ends.entries()) {
    const own = upTo.flatMap((end, s) => (end > cached[s]! ? [s] : []));
    const sequences = own.map((s) => ({
      ...{ tokens: TOKENS[s]!.slice(0, upTo[s]), cached: cached[s]!, blocks: BLOCKS[s]! },
      logits: 'all' as const,
    }));
    const rowInputs = Float32Array.from(
      own.flatMap((s) => [...ROWS[s]!.subarray(cached[s]! * WIDTH, upTo[s]! * WIDTH)]),
    );
    const batch = makeStepBatch(sequences, {
      ...{ tokensPerBlock: executor.options.tokensPerBlock, inverseFrequencies: network.inverseFrequencies },
      newBlocks: step === 0 ? BLOCKS.flat() : [],
    });
    const keptRows = new Float32Array(rowInputs.length);
    const logits = executor.forward({ ...batch, rowInputs, keptRows });
    let row = 0;
    for (const s of own) {
      for (; cached[s]! < upTo[s]!; cached[s]! += 1, row++) {
        found.logits[s]!.push(logits.slice(row * executor.vocabSize, (row + 1) * executor.vocabSize));
        found.kept[s]!.push(keptRows.slice(row * WIDTH, (row + 1) * WIDTH));
      }
    }
  }
  executor.close();
  return found;
}

describe.each(instructionSets)(
  'rows that a caller brings, and those that it keeps, on %s',
  (instructionSet) => {
    it.each(['f32', 'bf16'] as const)('are those of the naive network, with a cache in %s', (kvDtype) => {
      const network = made[kvDtype];
      const options = { kvDtype, instructionSet };
      const found = run(network, options, [LENGTHS]);
      const rounds = multipliesPairs(instructionSet) && kvDtype === 'bf16';
      for (const [s, tokens] of TOKENS.entries()) {
        const keptRows: Float64Array[] = [];
        const rowInputs = tokens.map((_, i) =>
          Float64Array.from(ROWS[s]!.subarray(i * WIDTH, (i + 1) * WIDTH)),
        );
        const expected = naiveLogits(network.plan, network.weights, tokens, {
          ...{ kvDtype, inverseFrequencies: network.inverseFrequencies, ropeScale: 1, rowInputs, keptRows },
          ...{ roundsInputs: rounds, roundsAttention: rounds },
        });
        const most = kvDtype === 'f32' ? 2e-5 : 4e-2;
        expect(greatestError(found.logits[s]!, expected)).toBeLessThan(most);
        expect(keptRows).toHaveLength(tokens.length);
        expect(greatestError(found.kept[s]!, keptRows)).toBeLessThan(most);
      }
      // In two steps, and so next to other rows, they are the same bits.
      expect(run(network, options, [CUTS, LENGTHS])).toStrictEqual(found);
    });
  },
);
