import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type AdapterWeights,
  adapterOf,
  type ModuleLayer,
} from '../../../models/adapters/adapter-weights.js';
import { baseModules } from '../../../models/adapters/base-modules.js';
import {
  type LoraTensors,
  LoraTensorsError,
  writeLoraTensors,
} from '../../../models/adapters/lora-tensors.js';
import { MODULE_IDS, type ModuleId, moduleName } from '../../../models/adapters/module-ids.js';
import { readLoraTensors } from '../../support/read-lora-tensors.js';
import { draws } from '../../support/scale.js';
import { TINY_BASE } from '../../support/tiny-adapter.js';

const { shapes } = baseModules(TINY_BASE);
const MAX_RANK = 6;
const read = (tensors: LoraTensors) => readLoraTensors(tensors, TINY_BASE, { maxRank: MAX_RANK });

/** A module-layer with values that distinguish its elements. */
function moduleLayer(layer: number, module: ModuleId, rank: number, first = 1): ModuleLayer {
  const shape = shapes.get(module)!;
  const values = (length: number, from: number) => Float32Array.from({ length }, (_, i) => from + i / 16);
  return { layer, module, rank, a: values(rank * shape.in, first), b: values(shape.out * rank, -first) };
}

const TWO = adapterOf(
  [moduleLayer(1, MODULE_IDS.attn_k, 3), moduleLayer(0, MODULE_IDS.mlp_gate, 2, 5)],
  null,
);

describe('the tensors of a request', () => {
  it('have a row for each module-layer: A, then B, then zeros', () => {
    const { weights, weightsShape, config, configShape } = writeLoraTensors(TWO);
    // Gate: 2 * (8 + 10) elements. Keys: 3 * (8 + 4), as many.
    expect(weightsShape).toEqual([2, 36]);
    expect(configShape).toEqual([2, 3]);
    expect([...config]).toEqual([MODULE_IDS.mlp_gate, 0, 2, MODULE_IDS.attn_k, 1, 3]);
    expect(weights[16]).toBe(TWO.moduleLayers[0]!.b[0]);
    const wider = writeLoraTensors(
      adapterOf([...TWO.moduleLayers, moduleLayer(0, MODULE_IDS.attn_q, 4)], null),
    );
    expect(wider.weightsShape).toEqual([3, 64]);
    expect([...wider.weights.subarray(64 + 36, 128)]).toEqual(new Array(28).fill(0));
  });

  it('may have a batch of 1 before them', () => {
    const tensors = writeLoraTensors(TWO);
    const shaped = { ...tensors, weightsShape: [1, 2, 36], configShape: [1, 2, 3] };
    expect(read(shaped)).toEqual(TWO);
  });

  it('are copied', () => {
    const tensors = writeLoraTensors(TWO);
    const adapter = read(tensors);
    tensors.weights.fill(0);
    expect(adapter).toEqual(TWO);
  });

  const adapters: fc.Arbitrary<AdapterWeights> = fc
    .uniqueArray(fc.record({ layer: fc.nat(1), module: fc.constantFrom(1, 2, 3, 4, 5, 6, 7) }), {
      minLength: 1,
      maxLength: 14,
      selector: ({ layer, module }) => layer * 100 + module,
    })
    .chain((places) =>
      fc.tuple(
        ...places.map(({ layer, module }) =>
          fc.integer({ min: 1, max: MAX_RANK }).chain((rank) => {
            const shape = shapes.get(module as ModuleId)!;
            const values = (length: number) =>
              fc.float32Array({ minLength: length, maxLength: length, noNaN: true, noDefaultInfinity: true });
            return fc.record({
              layer: fc.constant(layer),
              module: fc.constant(module as ModuleId),
              rank: fc.constant(rank),
              a: values(rank * shape.in),
              b: values(rank * shape.out),
            });
          }),
        ),
      ),
    )
    .map((moduleLayers) => adapterOf(moduleLayers, null));

  it('give back any adapter that was written', () => {
    fc.assert(
      fc.property(adapters, (adapter) => {
        expect(read(writeLoraTensors(adapter))).toEqual(adapter);
      }),
    );
  });

  it('are read or refused, whatever is in them', () => {
    const size = fc.integer({ min: 0, max: 40 });
    const shape = fc.array(fc.integer({ min: -1, max: 40 }), { maxLength: 4 });
    const tensors = fc.record({
      weights: fc.float32Array({ maxLength: 80 }),
      weightsShape: fc.oneof(shape, fc.tuple(size, size)),
      config: fc.int32Array({ min: -2, max: 20, maxLength: 12 }),
      configShape: fc.oneof(
        shape,
        size.map((rows) => [rows, 3]),
      ),
    });
    fc.assert(
      fc.property(tensors, (any) => {
        try {
          read(any);
        } catch (error) {
          if (!(error instanceof LoraTensorsError)) throw error;
        }
      }),
      { numRuns: draws(200) },
    );
  });
});

describe('readLoraTensors refuses', () => {
  const good = writeLoraTensors(TWO);
  const config = (...rows: number[]) => ({
    ...good,
    config: Int32Array.from(rows),
    configShape: [rows.length / 3, 3],
    weights: good.weights.slice(0, (rows.length / 3) * 36),
    weightsShape: [rows.length / 3, 36],
  });
  const weights = (change: (values: Float32Array) => void): LoraTensors => {
    const copy = good.weights.slice();
    change(copy);
    return { ...good, weights: copy };
  };
  const wide = (value: number): LoraTensors => {
    const row = new Float32Array(40);
    row[39] = value;
    return { weights: row, weightsShape: [1, 40], config: Int32Array.of(7, 0, 2), configShape: [1, 3] };
  };

  const wrong: [string, LoraTensors, string][] = [
    [
      'a flat config',
      { ...good, configShape: [6] },
      'lora_config should have the shape [number of module-layers, 3], found [6] with 6 elements.',
    ],
    [
      'a batch',
      { ...good, configShape: [2, 1, 3] },
      'lora_config should have the shape [number of module-layers, 3], found [2, 1, 3] with 6 elements.',
    ],
    [
      'other columns',
      { ...good, configShape: [3, 2] },
      'lora_config should have 3 columns (module id, layer, rank), found 2.',
    ],
    [
      'no rows',
      { ...good, config: new Int32Array(0), configShape: [0, 3] },
      'lora_config should have at least one row, found none.',
    ],
    [
      'other rows',
      { ...good, weightsShape: [3, 24] },
      'lora_weights should have the shape [2, columns], a row for each of lora_config, found 3 rows.',
    ],
    [
      'a wrong shape',
      { ...good, weightsShape: [2, 35] },
      'lora_weights should have the shape [2, columns], a row for each of lora_config, found [2, 35] with 72 elements.',
    ],
    [
      'a module of other models',
      config(8, 0, 1),
      'lora_config row 0: the module should be one that the model has, 0 (attn_qkv), 1 (attn_q), 2 (attn_k), 3 (attn_v), 4 (attn_dense), 5 (mlp_h_to_4h), 6 (mlp_4h_to_h), 7 (mlp_gate), 18 (mlp_gate_up), found 8 (cross_attn_qkv).',
    ],
    ['an unknown module', config(2, 0, 1, 99, 0, 1), 'found 99.'],
    [
      'a layer that is not there',
      config(2, 2, 1),
      'lora_config row 0: the layer should be from 0 to 1, found 2.',
    ],
    ['a negative layer', config(2, -1, 1), 'the layer should be from 0 to 1, found -1.'],
    ['a rank of 0', config(2, 0, 0), 'lora_config row 0: the rank should be from 1 to 6, found 0.'],
    ['a rank above the limit', config(2, 0, 7), 'the rank should be from 1 to 6, found 7.'],
    [
      'rows that are too short',
      config(1, 0, 3),
      'lora_weights should have at least 48 columns for row 0 (rank 3 times 8 + 8), found 36.',
    ],
    [
      'a module twice',
      config(2, 0, 1, 2, 0, 1),
      'lora_config row 1: attn_k of layer 0 overlaps row 0, attn_k of the same layer.',
    ],
    [
      'a part of a stacked module',
      config(0, 0, 1, 3, 0, 1),
      'lora_config row 1: attn_v of layer 0 overlaps row 0, attn_qkv of the same layer.',
    ],
    [
      'a stacked module of a part',
      config(5, 1, 1, 18, 1, 1),
      'lora_config row 1: mlp_gate_up of layer 1 overlaps row 0, mlp_h_to_4h of the same layer.',
    ],
    [
      'no number',
      weights((values) => values.fill(Number.NaN, 40, 41)),
      'lora_weights row 1: column 4 should be a finite number, found NaN.',
    ],
    [
      'infinity',
      weights((values) => values.fill(Number.NEGATIVE_INFINITY, 3, 4)),
      'lora_weights row 0: column 3 should be a finite number, found -Infinity.',
    ],
    [
      'padding that is not 0',
      wide(2),
      'lora_weights row 0: column 39 should be 0 after the 36 elements of mlp_gate at rank 2, found 2.',
    ],
  ];
  it.each(wrong)('%s', (_, tensors, message) => {
    expect(() => read(tensors)).toThrow(LoraTensorsError);
    expect(() => read(tensors)).toThrow(message);
  });

  it('more bytes than the limit', () => {
    expect(() => readLoraTensors(good, TINY_BASE, { maxRank: 8, maxBytes: 287 })).toThrow(
      'lora_weights takes 288 bytes; at most 287 are accepted.',
    );
  });

  it('any module of an encoder', () => {
    const encoder = { ...TINY_BASE, encoder: {} as never };
    expect(() => readLoraTensors(good, encoder, { maxRank: 8 })).toThrow(
      'which are none, found 7 (mlp_gate).',
    );
  });

  it('names the tensor as data', () => {
    try {
      read({ ...good, weightsShape: [3, 24] });
      expect.unreachable();
    } catch (error) {
      expect(error).toMatchObject({ code: 'SKEIN_LORA_TENSORS', tensor: 'lora_weights' });
    }
  });
});

describe('module ids', () => {
  it("are TensorRT-LLM's", () => {
    expect(Object.values(MODULE_IDS)).toEqual(Array.from({ length: 19 }, (_, id) => id));
    expect(moduleName(MODULE_IDS.mlp_4h_to_h)).toBe('mlp_4h_to_h');
  });
});
