import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CheckpointError } from '../../../models/checkpoints/checkpoint.js';
import { openCheckpoint } from '../../../models/checkpoints/open-checkpoint.js';
import { ropeFrequencies } from '../../../network/rope.js';
import { Random } from '../../../tools/support/random.js';
import { freshFolders } from '../../support/fresh-folders.js';
import { MADE_EMBEDDERS, madeEmbedder, writeMadeEmbedder } from '../../support/made-embedders.js';

const freshFolder = freshFolders('skein-embedder-config');

type Fields = Record<string, unknown>;

/** A made model of which fields of one file are others; a list takes the file's place. */
function changed(name: string, file: string, fields: Fields | unknown[]) {
  const made = madeEmbedder(name);
  const content = Array.isArray(fields) ? fields : { ...(made.files[file] as Fields), ...fields };
  const folder = freshFolder();
  mkdirSync(folder, { recursive: true });
  return openCheckpoint(writeMadeEmbedder(folder, made, { [file]: content }));
}

describe('a decoder', () => {
  it('embeds where its folder has the modules of sentence-transformers, and generates without them', () => {
    const made = madeEmbedder('qwen3-embedding');
    const { encoder } = openCheckpoint(writeMadeEmbedder(freshFolder(), made)).config;
    expect(encoder).toMatchObject({ bothWays: false, head: { kind: 'embedding', pooling: 'last' } });
    const scoring = madeEmbedder('qwen3-reranker');
    const files = Object.fromEntries(Object.keys(scoring.files).map((file) => [file, null]));
    const folder = writeMadeEmbedder(freshFolder(), scoring, {
      ...files,
      'config.json': scoring.files['config.json'],
    });
    expect(openCheckpoint(folder).config.encoder).toBeUndefined();
  });

  it('scores by two tokens that config.json names by their texts', () => {
    const fields = { classifier_from_token: ['a', 'b'] };
    const made = madeEmbedder('qwen3-reranker');
    const files = Object.fromEntries(
      Object.keys(made.files).map((file) => [file, file.endsWith('config.json') ? made.files[file] : null]),
    );
    const config = { ...(made.files['config.json'] as Fields), ...fields };
    const folder = writeMadeEmbedder(freshFolder(), made, { ...files, 'config.json': config });
    expect(openCheckpoint(folder).config.encoder!.head).toMatchObject({ kind: 'score', tokens: [68, 67] });
  });

  it.each<[string, string, string, Fields | unknown[], RegExp]>([
    [
      'a Dense module of another width',
      'qwen2-weighted',
      '2_Dense/config.json',
      { in_features: 31 },
      /2_Dense\/config\.json: in_features should be 32, the width of what comes before it, found 31\.$/,
    ],
    [
      'a Dense module whose matrix is another',
      'qwen2-weighted',
      '2_Dense/config.json',
      { out_features: 13 },
      /2_Dense\/model\.safetensors: tensor 2_Dense\.linear\.weight .*\[13, 32\].*\[12, 32\]/,
    ],
    [
      'a Dense module with an activation of its own',
      'qwen2-weighted',
      '2_Dense/config.json',
      { activation_function: 'my.Activation' },
      /activation_function should be one of torch\.nn\.modules\.linear\.Identity, .*found "my\.Activation"/,
    ],
    [
      'a Dense module over tokens',
      'qwen2-weighted',
      '2_Dense/config.json',
      { module_input_name: 'token_embeddings' },
      /module_input_name should be sentence_embedding/,
    ],
    [
      'two poolings side by side',
      'e5-mistral',
      '1_Pooling/config.json',
      { pooling_mode_mean_tokens: true },
      /the pooling should be one of .*; found pooling_mode_mean_tokens and pooling_mode_lasttoken\.$/,
    ],
    [
      'a pooling that leaves the prompt out',
      'e5-mistral',
      '1_Pooling/config.json',
      { include_prompt: false },
      /include_prompt should be true, found false/,
    ],
    [
      'a module outside of its folder',
      'e5-mistral',
      'modules.json',
      [{ type: 'a.Pooling', path: '../1_Pooling' }],
      /the path of a module should be a folder of the model's, found "\.\.\/1_Pooling"\.$/,
    ],
    [
      'modules without a Pooling',
      'qwen3-embedding',
      'modules.json',
      [{ type: 'a.Transformer', path: '' }],
      /modules\.json: a Pooling should be among the modules, .*; found a\.Transformer\.$/,
    ],
    ['no modules', 'bert', 'modules.json', [], /a Pooling should be among the modules, .*; found none\.$/],
    [
      'two Poolings',
      'bert',
      'modules.json',
      [
        { type: 'a.Transformer', path: '' },
        { type: 'a.Pooling', path: '1_Pooling' },
        { type: 'b.Pooling', path: '1_Pooling' },
      ],
      /there should be one Pooling among the modules, found 2: a\.Transformer, a\.Pooling, b\.Pooling\.$/,
    ],
    [
      'a default prompt without a text',
      'qwen3-embedding',
      'config_sentence_transformers.json',
      { default_prompt_name: 'passage' },
      /default_prompt_name should be the name of one of the prompts, found "passage"\.$/,
    ],
    [
      'prompts that are no texts',
      'qwen3-embedding',
      'config_sentence_transformers.json',
      { prompts: { query: 3 } },
      /prompts should be at most 256 texts/,
    ],
    [
      'a token without a logit',
      'qwen3-reranker',
      '1_LogitScore/config.json',
      { false_token_id: 288 },
      /the score is made of the logit of token 288, but the vocabulary has 288\.$/,
    ],
    [
      'code of its own',
      'qwen2-weighted',
      'config.json',
      { auto_map: { AutoModel: 'modeling_qwen.Qwen2Model' } },
      /auto_map should be without AutoModel, since code of its own is not run/,
    ],
    [
      'labels for which it has no logits',
      'qwen3-pairs',
      'config.json',
      { id2label: { 0: 'a', 1: 'b' } },
      /score\.weight should have the shape \[2, 32\], found \[1, 32\]/,
    ],
  ])('is refused with %s', (_, name, file, fields, message) => {
    expect(() => changed(name, file, fields)).toThrow(message);
  });
});

describe('an encoder with RoPE', () => {
  it("stretches its frequencies where GTE's config says so, as its own code does", () => {
    const stretched = { rope_theta: 500_000, rope_scaling: { type: 'ntk', factor: 2 } };
    const { rope } = changed('gte-score', 'config.json', stretched).config;
    const { inverseFrequencies } = ropeFrequencies(rope, 1);
    const published = [
      0.8408964152537146, 0.026591479484724942, 0.0008408964152537146, 2.6591479484724945e-5,
    ];
    for (const [i, frequency] of published.entries())
      expect(inverseFrequencies[i]! / frequency).toBeCloseTo(1, 6);
  });

  it.each<[string, string, Fields, RegExp]>([
    ['experts', 'nomic-embed', { moe_every_n_layers: 2 }, /moe_every_n_layers should be 0: an encoder with/],
    ['another RoPE', 'nomic-embed', { rotary_scaling_factor: 2 }, /rotary_scaling_factor should be absent/],
    ['another gate', 'nomic-embed', { activation_function: 'gelu' }, /should be one of swiglu, geglu/],
    [
      'a mixed NTK',
      'gte-score',
      { rope_scaling: { type: 'ntk', factor: 2, mixed_b: 0.6 } },
      /without mixed_b/,
    ],
    ['several groups of layers', 'albert', { num_hidden_groups: 2 }, /num_hidden_groups should be a whole/],
  ])('is refused with %s', (_, name, fields, message) => {
    expect(() => changed(name, 'config.json', fields)).toThrow(message);
  });
});

describe('mutated files', () => {
  const VALUES = [null, -1, 0, 1.5, 1e300, '', 'x', true, [], {}, [1], { a: 1 }, 2 ** 31];

  /** Replaces, removes or adds one value somewhere in a JSON value. */
  function mutate(random: Random, value: unknown): unknown {
    if (typeof value !== 'object' || value === null || random.below(6) === 0)
      return VALUES[random.below(VALUES.length)];
    const keys = Object.keys(value);
    if (keys.length === 0) return VALUES[random.below(VALUES.length)];
    const key = keys[random.below(keys.length)]!;
    const copy: Record<string, unknown> | unknown[] = Array.isArray(value) ? [...value] : { ...value };
    const at = copy as Record<string, unknown>;
    if (random.below(5) === 0 && !Array.isArray(copy)) delete at[key];
    else at[key] = mutate(random, at[key]);
    return copy;
  }

  it('are read or refused in one sentence, three hundred of them', () => {
    const random = new Random(50);
    let refused = 0;
    const folders = MADE_EMBEDDERS.map((made) => writeMadeEmbedder(freshFolder(), made));
    for (let i = 0; i < 300; i++) {
      const made = MADE_EMBEDDERS[i % MADE_EMBEDDERS.length]!;
      const names = Object.keys(made.files).filter((name) => name !== 'tokenizer_config.json');
      const name = names[random.below(names.length)]!;
      const folder = folders[i % MADE_EMBEDDERS.length]!;
      writeFileSync(join(folder, name), JSON.stringify(mutate(random, made.files[name])));
      try {
        openCheckpoint(folder);
      } catch (error) {
        refused++;
        expect(error, `model ${i}`).toBeInstanceOf(CheckpointError);
        expect((error as Error).message, `model ${i}`).toMatch(/^[^\n]*\.$/);
      }
      writeFileSync(join(folder, name), JSON.stringify(made.files[name]));
    }
    expect(refused).toBeGreaterThan(100);
  });
});
