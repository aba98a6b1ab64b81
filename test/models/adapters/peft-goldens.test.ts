import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { baseModules } from '../../../models/adapters/base-modules.js';
import { MODULE_IDS, type ModuleName } from '../../../models/adapters/module-ids.js';
import { readPeftCheckpoint } from '../../../models/adapters/peft-checkpoint.js';
import { openCheckpoint } from '../../../models/checkpoints/open-checkpoint.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { pathsOf } from '../../support/lora-goldens.js';

interface GoldenAdapter {
  adapter: string;
  model: string;
  deltas: { module: string; scaling: number; shape: [number, number]; values: string }[];
}

const { adapters } = JSON.parse(
  readFileSync(new URL('../../goldens/lora.json', import.meta.url), 'utf8'),
) as { adapters: GoldenAdapter[] };

/** Greatest difference from PEFT's sum, which has other roundings, as a share of the greatest element. */
const DIFFERENCE_MAX = 1e-6;

const folder = temporaryFolder('skein-peft');

/** Modules and ranks of each adapter, in the first and in the second layer. */
const EXPECTED: Readonly<Record<string, Partial<Record<ModuleName, number>>[]>> = {
  'lora-plain': [
    { attn_q: 4, attn_v: 4 },
    { attn_q: 4, attn_v: 4 },
  ],
  'lora-patterns': [
    { attn_q: 4, attn_k: 2, attn_v: 4, attn_dense: 4, mlp_h_to_4h: 4, mlp_4h_to_h: 1, mlp_gate: 4 },
    { attn_q: 4, attn_k: 5, attn_v: 4, attn_dense: 4, mlp_h_to_4h: 5, mlp_4h_to_h: 1, mlp_gate: 5 },
  ],
  'lora-rslora': [{}, { attn_dense: 3, mlp_4h_to_h: 8 }],
  'lora-gpt2': [
    { attn_qkv: 3, attn_dense: 3, mlp_h_to_4h: 3, mlp_4h_to_h: 3 },
    { attn_qkv: 3, attn_dense: 3, mlp_h_to_4h: 3, mlp_4h_to_h: 3 },
  ],
  'lora-gpt-oss': Array.from({ length: 3 }, () => ({ attn_q: 4, attn_k: 4, attn_v: 4, attn_dense: 4 })),
  'lora-phi3': [
    { attn_qkv: 2, attn_dense: 2, mlp_gate_up: 2, mlp_4h_to_h: 2 },
    { attn_qkv: 2, attn_dense: 2, mlp_gate_up: 2, mlp_4h_to_h: 2 },
  ],
};

describe.each(adapters)('$adapter as PEFT saved it', ({ adapter, model, deltas }) => {
  const paths = pathsOf({ adapter, model }, folder);
  const { config } = openCheckpoint(paths.model);
  const weights = readPeftCheckpoint(paths.adapter, config, { maxRank: 8 });

  it('has the modules and ranks of its configuration', () => {
    const ranks = EXPECTED[adapter]!.flatMap((modules, layer) =>
      Object.entries(modules).map(([name, rank]) => [layer, MODULE_IDS[name as ModuleName], rank]),
    );
    expect(weights.moduleLayers.map(({ layer, module, rank }) => [layer, module, rank])).toEqual(
      ranks.sort((one, other) => one[0]! - other[0]! || one[1]! - other[1]!),
    );
    expect(weights.maxRank).toBe(Math.max(...ranks.map(([, , rank]) => rank!)));
    expect(weights.modules).toEqual([...new Set(ranks.map(([, id]) => id!))].sort((a, b) => a - b));
    expect(weights.baseModel).toBe(model);
  });

  it.each(deltas)('adds what PEFT adds to $module', ({ module, shape: [out, columns], values: data }) => {
    const { names, shapes } = baseModules(config);
    const [, layer, name] = /\.(\d+)\.(.*)$/.exec(module)!;
    const id = names.get(name!)!;
    expect(shapes.get(id)).toEqual({ in: columns, out });
    const found = weights.moduleLayers.find((one) => one.layer === Number(layer) && one.module === id)!;
    const bytes = Buffer.from(data, 'base64');
    const values = Float32Array.from({ length: out * columns }, (_, i) => bytes.readFloatLE(4 * i));
    const greatest = Math.max(...values.map(Math.abs));
    let difference = 0;
    for (let row = 0; row < out; row++) {
      for (let column = 0; column < columns; column++) {
        let sum = 0;
        for (let j = 0; j < found.rank; j++)
          sum += found.b[row * found.rank + j]! * found.a[j * columns + column]!;
        difference = Math.max(difference, Math.abs(sum - values[row * columns + column]!));
      }
    }
    expect(difference / greatest).toBeLessThan(DIFFERENCE_MAX);
  });
});
