import { afterAll, describe, expect, it } from 'vitest';
import type { EngineTensor } from '../../../../engine/directory/engine-directory.js';
import { NativeExecutor } from '../../../../engine/executors/native/native-executor.js';
import { makeStepBatch } from '../../../../tools/support/step-batch.js';
import { type TinyNetwork, TinyNetworks } from '../../../../tools/support/tiny-network.js';
import { executorOptions, instructionSets } from '../../../support/native-options.js';

const networks = new TinyNetworks();
afterAll(() => networks.remove());

/** The network with each stack of gate and up in two tensors, as a file has it where their types differ. */
function withHalves(network: TinyNetwork): TinyNetwork {
  const halves = ({ rows, byteLength, offset, ...tensor }: EngineTensor): EngineTensor[] => {
    const [half, bytes] = [rows / 2, byteLength / 2];
    return [
      { ...tensor, rows: half, byteLength: bytes, offset },
      { ...tensor, rows: half, byteLength: bytes, offset: offset + bytes, firstRow: half },
    ];
  };
  const tensors = network.tensors.flatMap((one) => (/gateUp$/.test(one.name) ? halves(one) : [one]));
  return { ...network, tensors };
}

function logitsOf(network: TinyNetwork, changes: Parameters<typeof executorOptions>[0]): Float32Array {
  const executor = new NativeExecutor(network, executorOptions({ threads: 3, ...changes }));
  const tokens = Array.from({ length: 21 }, (_, i) => (i * 17) % 101);
  const batch = makeStepBatch([{ tokens, cached: 0, blocks: [0, 1], logits: 'all' }], {
    tokensPerBlock: 16,
    inverseFrequencies: network.inverseFrequencies,
  });
  const logits = executor.forward(batch).slice();
  executor.close();
  return logits;
}

describe('gate and up as products of their own', () => {
  it.each(['f32', 'bf16', 'int8', 'q4_k', 'q6_k'] as const)(
    'have the bits of one gated product, %s',
    (precision) => {
      const isSuperblocked = precision.endsWith('_k');
      const network = networks.make({
        precision,
        numLayers: 1,
        vocabSize: 101,
        ...(isSuperblocked && { hiddenSize: 256, intermediateSize: 256, headDim: 64 }),
        ...(precision !== 'f32' && { bias: true, activation: 'geluTanh' as const }),
      });
      for (const instructionSet of instructionSets) {
        const expected = logitsOf(network, { instructionSet });
        expect(logitsOf(withHalves(network), { instructionSet })).toEqual(expected);
      }
    },
  );

  it('are refused where the parts are no halves', () => {
    const network = networks.make();
    const tensors = withHalves(network).tensors.map((tensor) => {
      if (!/gateUp$/.test(tensor.name)) return tensor;
      const own = (tensor.firstRow ?? 0) === 0;
      const [rows, row] = [own ? 64 : 96, tensor.byteLength / 80];
      const place = own ? {} : { firstRow: 64, offset: tensor.offset - 16 * row };
      return { ...tensor, rows, byteLength: rows * row, ...place };
    });
    expect(() => logitsOf({ ...network, tensors }, {})).toThrow(
      'is stored in 2 formats, but an op needs it in one',
    );
  });
});
