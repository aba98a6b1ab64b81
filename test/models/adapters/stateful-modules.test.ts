import { describe, expect, it } from 'vitest';
import { LoraTensorsError } from '../../../models/adapters/lora-tensors.js';
import { MODULE_IDS } from '../../../models/adapters/module-ids.js';
import { readPeftCheckpoint } from '../../../models/adapters/peft-checkpoint.js';
import { CheckpointError } from '../../../models/checkpoints/checkpoint.js';
import type { TestTensor } from '../../../tools/support/gguf-writer.js';
import { expertsConfig } from '../../support/experts-config.js';
import { freshFolders } from '../../support/fresh-folders.js';
import { readLoraTensors } from '../../support/read-lora-tensors.js';
import { floats, writeTinyAdapter } from '../../support/tiny-adapter.js';

const fresh = freshFolders('skein-stateful-modules');
/** Hidden size 12, three heads of 6 over one; layer 1 attends, layer 0 keeps a state. */
const baseOf = (architecture: string) => {
  const { experts: _, ...config } = expertsConfig({ architecture });
  return { ...config, attendingLayers: [false, true] };
};
const pair = (name: string, from: number, to: number) => [
  floats(`base_model.model.model.layers.${name}.lora_A.weight`, [2, from]),
  floats(`base_model.model.model.layers.${name}.lora_B.weight`, [to, 2]),
];
const read = (architecture: string, tensors: readonly TestTensor[]) =>
  readPeftCheckpoint(
    writeTinyAdapter(fresh(), { tensors, config: { target_modules: null } }),
    baseOf(architecture),
    {
      maxRank: 8,
    },
  );

describe('an adapter of a model with states', () => {
  it('changes queries with their gates, and what every layer has', () => {
    const { moduleLayers } = read('qwen35', [
      ...pair('1.self_attn.q_proj', 12, 36),
      ...pair('1.self_attn.k_proj', 12, 6),
      ...pair('0.mlp.down_proj', 20, 12),
    ]);
    const { attn_q, attn_k, mlp_4h_to_h } = MODULE_IDS;
    expect(moduleLayers.map(({ layer, module }) => [layer, module])).toEqual([
      [0, mlp_4h_to_h],
      [1, attn_q],
      [1, attn_k],
    ]);
  });

  it('has the names of LFM2 there', () => {
    const { moduleLayers } = read('lfm2', [
      ...pair('1.self_attn.out_proj', 18, 12),
      ...pair('0.feed_forward.w2', 20, 12),
    ]);
    expect(moduleLayers.map(({ module }) => module)).toEqual([MODULE_IDS.mlp_4h_to_h, MODULE_IDS.attn_dense]);
  });

  it.each<[string, string, number, number, string]>([
    [
      'qwen35',
      '0.self_attn.k_proj',
      12,
      6,
      'belongs to the attention of layer 0, which keeps a state in its place',
    ],
    [
      'qwen35',
      '0.linear_attn.in_proj_qkv',
      12,
      6,
      'belongs to no module of the base model that can have an adapter; its layers (model.layers) have self_attn.q_proj',
    ],
    [
      'lfm2',
      '0.conv.in_proj',
      12,
      36,
      'have self_attn.q_proj, self_attn.k_proj, self_attn.v_proj, self_attn.out_proj',
    ],
  ])('of %s cannot change %s, and names it', (architecture, module, from, to, sentence) => {
    const refused = () => read(architecture, pair(module, from, to));
    expect(refused).toThrow(CheckpointError);
    expect(refused).toThrow(sentence);
  });

  it('is refused as tensors of a request too', () => {
    const tensors = (module: number, layer: number) => ({
      weights: new Float32Array(200),
      weightsShape: [1, 200],
      config: Int32Array.of(module, layer, 1),
      configShape: [1, 3],
    });
    const of = (module: number, layer: number) => () =>
      readLoraTensors(tensors(module, layer), baseOf('qwen35'), { maxRank: 8 });
    expect(of(MODULE_IDS.attn_k, 1)().moduleLayers).toHaveLength(1);
    expect(of(MODULE_IDS.attn_k, 0)).toThrow(LoraTensorsError);
    expect(of(MODULE_IDS.attn_k, 0)).toThrow(
      'row 0: the layer should be one that attends, for 2 (attn_k), but layer 0 keeps a state in place of attention',
    );
    // Queries with gates lie in no stack with keys and values.
    expect(of(MODULE_IDS.attn_qkv, 1)).toThrow('the module should be one that the model has');
  });
});
