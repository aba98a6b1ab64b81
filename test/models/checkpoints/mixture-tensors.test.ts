import { describe, expect, it } from 'vitest';
import { openCheckpoint } from '../../../models/checkpoints/open-checkpoint.js';
import { freshFolders } from '../../support/fresh-folders.js';
import { MADE_MODELS, type MadeModel, writeMadeModel } from '../../support/made-models.js';

const fresh = freshFolders('skein-mixtures');

type Change = Partial<Record<string, number[] | null>>;

/** Writes a made model with other shapes of some tensors; null: without the tensor. */
function write(name: string, shapes: Change, config: object = {}): string {
  const made = MADE_MODELS.find((one) => one.name === name)!;
  const tensors = made.tensors.flatMap(([own, shape, ...rest]): MadeModel['tensors'] => {
    const other = shapes[own];
    return other === null ? [] : [[own, other ?? shape, ...rest]];
  });
  return writeMadeModel(fresh(), { ...made, tensors, config: { ...made.config, ...config } });
}

const IN_LAYER = 'model.layers.1';

describe('parts of a mixture that do not fit together are refused by their name', () => {
  it.each<[string, string, Change, RegExp]>([
    [
      'a bias of the choice for other experts',
      'glm4.5',
      { [`${IN_LAYER}.mlp.gate.e_score_correction_bias`]: [7] },
      /layers\.1\.mlp\.gate\.e_score_correction_bias should have the shape \[8\], found \[7\]/,
    ],
    [
      'no bias of the choice',
      'glm4.5',
      { [`${IN_LAYER}.mlp.gate.e_score_correction_bias`]: null },
      /layers\.1\.mlp\.gate\.e_score_correction_bias that the configuration calls for is missing/,
    ],
    [
      'scores of other experts',
      'glm4.5',
      { [`${IN_LAYER}.mlp.gate.weight`]: [9, 32] },
      /layers\.1\.mlp\.gate\.weight should have the shape \[8, 32\], found \[9, 32\]/,
    ],
    [
      'an MLP for all tokens as wide as one expert, where it should be as wide as two',
      'glm4.5',
      { [`${IN_LAYER}.mlp.shared_experts.up_proj.weight`]: [24, 32] },
      /shared_experts\.up_proj\.weight should have the shape \[48, 32\], found \[24, 32\]/,
    ],
    [
      'an MLP for all tokens whose way down has another width',
      'qwen2-moe',
      { [`${IN_LAYER}.mlp.shared_expert.down_proj.weight`]: [32, 48] },
      /shared_expert\.down_proj\.weight should have the shape \[32, 40\], found \[32, 48\]/,
    ],
    [
      'a gate of all tokens with several rows',
      'qwen2-moe',
      { [`${IN_LAYER}.mlp.shared_expert_gate.weight`]: [2, 32] },
      /shared_expert_gate\.weight should have the shape \[1, 32\], found \[2, 32\]/,
    ],
    [
      'scores of gpt-oss without their bias',
      'gpt-oss',
      { [`${IN_LAYER}.mlp.router.bias`]: null },
      /layers\.1\.mlp\.router\.bias that the configuration calls for is missing/,
    ],
    [
      'a bias of logits for other tokens',
      'phi-moe',
      { 'lm_head.bias': [127] },
      /lm_head\.bias should have the shape \[128\], found \[127\]/,
    ],
    [
      'an expert of another width',
      'phi-moe',
      { [`${IN_LAYER}.block_sparse_moe.experts.2.w2.weight`]: [32, 23] },
      /block_sparse_moe\.experts\.2\.w2\.weight should have the shape \[32, 24\], found \[32, 23\]/,
    ],
  ])('%s, %s', (_, name, shapes, message) => {
    expect(() => openCheckpoint(write(name, shapes))).toThrow(message);
  });

  it('fewer experts in reach of the groups than a token goes to', () => {
    expect(() => openCheckpoint(write('glm4.5', {}, { topk_group: 1 }))).toThrow(
      /config\.json: num_experts_per_tok should be a whole number from 1 to 2, found 3\.$/,
    );
  });
});
