import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { planNetwork } from '../../../models/architectures/index.js';
import { CheckpointError } from '../../../models/checkpoints/checkpoint.js';
import { configOfHuggingFace } from '../../../models/checkpoints/huggingface-config.js';
import { openCheckpoint } from '../../../models/checkpoints/open-checkpoint.js';
import { ropeFrequencies } from '../../../network/rope.js';
import { Random } from '../../../tools/support/random.js';
import { freshFolders } from '../../support/fresh-folders.js';
import { MADE_EMBEDDERS, madeEmbedder, writeMadeEmbedder } from '../../support/made-embedders.js';

const freshFolder = freshFolders('skein-embedder-config');

type Fields = Record<string, unknown>;

/** The configuration of a config.json without files next to it. */
const configOf = (fields: Fields) =>
  configOfHuggingFace(join(freshFolder(), 'config.json'), fields as never, null);

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

it('has the name of the label that a cross-encoder scores', () => {
  const headOf = (name: string) =>
    changed('gte-score', 'config.json', { id2label: { 0: name } }).config.encoder!.head;
  expect(headOf('relevance')).toMatchObject({ kind: 'score', label: 'relevance' });
  expect(headOf('LABEL_0')).not.toHaveProperty('label');
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
    [
      'experts without their fields',
      'nomic-embed',
      { moe_every_n_layers: 2 },
      /activation_function should be gelu/,
    ],
    [
      'experts in every layer',
      'nomic-embed-moe',
      { moe_every_n_layers: 1 },
      /moe_every_n_layers should be at/,
    ],
    [
      'shares that are normalised',
      'nomic-embed-moe',
      { moe_normalize_expert_weights: true },
      /should be false/,
    ],
    ['experts that choose', 'nomic-embed-moe', { expert_choice_router: true }, /_router should be false/],
    ['shared experts', 'nomic-embed-moe', { num_shared_experts: 1 }, /num_shared_experts should be 0/],
    [
      'too many experts',
      'nomic-embed-moe',
      { num_experts: 2000 },
      /num_experts should be a whole number from 1 to/,
    ],
    [
      'more experts of a token than there are',
      'nomic-embed-moe',
      { moe_top_k: 5 },
      /moe_top_k should be a whole/,
    ],
    [
      'types of tokens beside experts',
      'nomic-embed-moe',
      { type_vocab_size: 2 },
      /type_vocab_size should be 1/,
    ],
    [
      'an MLP without biases beside experts',
      'nomic-embed-moe',
      { mlp_fc1_bias: false },
      /mlp_fc1_bias should be true/,
    ],
    [
      'other experts than it has',
      'nomic-embed-moe',
      { num_experts: 3 },
      /(router|w1|w2).* should have the shape \[/,
    ],
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

describe('a DeBERTa or MPNet', () => {
  it.each<[string, string, Fields, RegExp]>([
    [
      'absolute positions alone',
      'deberta-v3',
      { relative_attention: false },
      /relative_attention should be true: /,
    ],
    [
      'an unknown product',
      'deberta-v3',
      { pos_att_type: 'c2p|p2p' },
      /pos_att_type should be c2p, p2c or both, found "c2p\|p2p"\.$/,
    ],
    [
      'no product',
      'deberta-v3',
      { pos_att_type: [] },
      /pos_att_type should be c2p, p2c or both, found \[\]\.$/,
    ],
    ['a convolution', 'deberta-v3', { conv_kernel_size: 3 }, /conv_kernel_size should be 0 or absent: /],
    [
      'heads that do not fit',
      'deberta-v3',
      { num_attention_heads: 5 },
      /hidden_size should be a multiple of the 5 attention heads/,
    ],
    [
      'heads of another width',
      'deberta-v3',
      { attention_head_size: 4 },
      /attention_head_size should be a whole number from 8 to 8/,
    ],
    [
      'another norm of distances',
      'deberta-v3',
      { norm_rel_ebd: 'rms' },
      /norm_rel_ebd should be none or layer_norm/,
    ],
    [
      'buckets that are too few',
      'deberta-v3',
      { position_buckets: 2 },
      /position_buckets should be from 4 to 80, or absent, found 2\.$/,
    ],
    [
      'more buckets than distances',
      'deberta-v3',
      { position_buckets: 81 },
      /position_buckets should be a whole number from -1 to 80/,
    ],
    [
      'more distances than are told apart',
      'deberta-v3',
      { max_position_embeddings: 2 ** 20 },
      /max_position_embeddings should be from 2 to 65536/,
    ],
    [
      'a table of another shape',
      'deberta-v3',
      { position_buckets: 12 },
      /tensor encoder\.rel_embeddings\.weight .*\[24, 32\].*\[16, 32\]/,
    ],
    [
      'an unknown activation of its head',
      'deberta-v3-score',
      { pooler_hidden_act: 'selu' },
      /pooler_hidden_act should be one of .*tanh, found "selu"\.$/,
    ],
    [
      'other buckets',
      'mpnet',
      { relative_attention_num_buckets: 64 },
      /relative_attention_num_buckets should be a whole number from 32 to 32/,
    ],
    [
      'biases of other heads',
      'mpnet',
      { num_attention_heads: 8 },
      /tensor encoder\.relative_attention_bias\.weight should have the shape \[32, 8\], found \[32, 4\]\.$/,
    ],
  ])('is refused with %s', (_, name, fields, message) => {
    expect(() => changed(name, 'config.json', fields)).toThrow(message);
  });

  it('is read as it is published', () => {
    const v3 = {
      attention_probs_dropout_prob: 0.1,
      hidden_act: 'gelu',
      hidden_dropout_prob: 0.1,
      hidden_size: 768,
      id2label: { 0: 'LABEL_0' },
      initializer_range: 0.02,
      intermediate_size: 3072,
      layer_norm_eps: 1e-7,
      max_position_embeddings: 512,
      max_relative_positions: -1,
      model_type: 'deberta-v2',
      norm_rel_ebd: 'layer_norm',
      num_attention_heads: 12,
      num_hidden_layers: 12,
      pad_token_id: 0,
      pooler_dropout: 0,
      pooler_hidden_act: 'gelu',
      pooler_hidden_size: 768,
      pos_att_type: ['p2c', 'c2p'],
      position_biased_input: false,
      position_buckets: 256,
      relative_attention: true,
      share_att_key: true,
      type_vocab_size: 0,
      vocab_size: 128_100,
    };
    const reranker = configOf({ architectures: ['DebertaV2ForSequenceClassification'], ...v3 });
    expect(reranker).toMatchObject({ architecture: 'deberta', maxPositions: 512, headDim: 64 });
    expect(planNetwork(reranker).attention.distances).toMatchObject({ count: 512 });
    const mpnet = {
      architectures: ['MPNetForMaskedLM'],
      attention_probs_dropout_prob: 0.1,
      bos_token_id: 0,
      eos_token_id: 2,
      hidden_act: 'gelu',
      hidden_size: 768,
      intermediate_size: 3072,
      layer_norm_eps: 1e-5,
      max_position_embeddings: 514,
      model_type: 'mpnet',
      num_attention_heads: 12,
      num_hidden_layers: 12,
      pad_token_id: 1,
      relative_attention_num_buckets: 32,
      vocab_size: 30_527,
    };
    expect(configOf(mpnet)).toMatchObject({
      maxPositions: 512,
      encoder: { firstPosition: 2, withoutTypes: true },
    });
    const xlarge = { architectures: ['DebertaV2Model'], ...v3, conv_act: 'gelu', conv_kernel_size: 3 };
    expect(() => configOf(xlarge)).toThrow(/conv_kernel_size should be 0 or absent: a layer of convolution/);
    expect(() => configOf({ ...v3, architectures: ['DebertaForSequenceClassification'] })).toThrow(
      /architecture DebertaForSequenceClassification is not supported: the first DeBERTa .*; near to it are DebertaV2/,
    );
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
