import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openCheckpoint } from '../../../models/checkpoints/open-checkpoint.js';
import { tinyModelPath } from '../../../tools/support/test-engine.js';
import { freshFolders } from '../../support/fresh-folders.js';

const freshFolder = freshFolders('skein-bert-config');

/** A copy of a tiny model, with fields of one of its JSON files changed; undefined takes a field out. */
function changed(model: string, file: string, fields: Record<string, unknown> | unknown[]): string {
  const folder = freshFolder();
  cpSync(tinyModelPath(model), folder, { recursive: true });
  const path = join(folder, file);
  const json = Array.isArray(fields) ? fields : { ...JSON.parse(readFileSync(path, 'utf8')), ...fields };
  writeFileSync(path, JSON.stringify(json));
  return folder;
}

const config = (model: string, fields: Record<string, unknown>) => changed(model, 'config.json', fields);

describe('the configuration of an encoder', () => {
  it('is read from config.json and from the files of sentence-transformers', () => {
    const { encoder, ...rest } = openCheckpoint(tinyModelPath('bert-mean')).config;
    expect(rest).toMatchObject({ architecture: 'bert', headDim: 16, maxPositions: 64, activation: 'gelu' });
    expect(encoder).toEqual({
      bothWays: true,
      tokenTypes: 2,
      positionRows: 64,
      firstPosition: 0,
      head: {
        kind: 'embedding',
        pooling: 'mean',
        normalize: true,
        matryoshka: null,
        layers: [],
        prompts: {},
        defaultPrompt: null,
      },
    });
  });

  it.each([
    ['bert-cls', { pooling: 'cls', normalize: false }],
    ['bert-last', { pooling: 'last', normalize: true }],
    [
      'bert-score',
      {
        kind: 'score',
        activation: 'sigmoid',
        layers: [{ tensors: ['pooler.dense'] }, { tensors: ['classifier'] }],
      },
    ],
    [
      'roberta-score',
      {
        kind: 'score',
        activation: 'none',
        layers: [{ tensors: ['classifier.dense'] }, { tensors: ['classifier.out_proj'] }],
      },
    ],
  ])('%s has its own head', (model, head) => {
    expect(openCheckpoint(tinyModelPath(model)).config.encoder!.head).toMatchObject(head);
  });

  it("leaves the rows of RoBERTa's padding out of the positions", () => {
    const { maxPositions, encoder } = openCheckpoint(tinyModelPath('roberta-score')).config;
    expect([maxPositions, encoder!.firstPosition, encoder!.positionRows]).toEqual([64, 2, 66]);
  });

  it('takes the length of sentence_bert_config.json where it is shorter', () => {
    const folder = config('bert-mean', {});
    writeFileSync(join(folder, 'sentence_bert_config.json'), JSON.stringify({ max_seq_length: 24 }));
    expect(openCheckpoint(folder).config.maxPositions).toBe(24);
  });

  it('is the mean, not normalised, without modules.json', () => {
    const folder = config('bert-mean', {});
    rmSync(join(folder, 'modules.json'));
    expect(openCheckpoint(folder).config.encoder!.head).toMatchObject({ pooling: 'mean', normalize: false });
  });

  it('reads the sizes of a Matryoshka model', () => {
    const sizes = config('bert-mean', { matryoshka_dimensions: [16, 32] });
    expect(openCheckpoint(sizes).config.encoder!.head).toMatchObject({ matryoshka: [16, 32] });
    const any = config('bert-mean', { is_matryoshka: true });
    expect(openCheckpoint(any).config.encoder!.head).toMatchObject({ matryoshka: 'any' });
  });

  it('counts in the hash of the source, modules.json included', () => {
    const folder = config('bert-mean', {});
    const before = openCheckpoint(folder).sourceHash;
    rmSync(join(folder, 'modules.json'));
    expect(openCheckpoint(folder).sourceHash).not.toBe(before);
  });
});

describe('an encoder that would be computed wrongly is refused', () => {
  it.each([
    [
      { architectures: ['BertForMaskedLM'] },
      /architecture BertForMaskedLM is not supported; near to it are BertForSequenceClassification, BertModel/,
    ],
    [
      { position_embedding_type: 'relative_key' },
      /position_embedding_type should be absolute, found "relative_key"/,
    ],
    [
      // As jina-embeddings v3 is published.
      { position_embedding_type: 'rotary', auto_map: { AutoModel: 'modeling_lora.XLMRobertaLoRA' } },
      /position_embedding_type should be absolute, since code that comes with a model is not run, found "rotary"/,
    ],
    [
      { hidden_act: 'silu' },
      /hidden_act should be one of gelu, gelu_new, gelu_pytorch_tanh, relu, found "silu"/,
    ],
    [{ is_decoder: true }, /is_decoder should be false, found true/],
    [{ num_attention_heads: 5 }, /hidden_size should be a multiple of the 5 attention heads, found 48/],
    [
      { max_position_embeddings: 60 },
      /position_embeddings.weight should have the shape \[60, 48\], found \[64, 48\]/,
    ],
    [{ matryoshka_dimensions: [99] }, /matryoshka_dimensions should be an array of sizes from 1 to 48/],
    [{ quantization_config: {} }, /quantization_config should be absent/],
  ])('%j', (fields, message) => {
    expect(() => openCheckpoint(config('bert-mean', fields))).toThrow(message);
  });

  it.each([
    [{ id2label: { 0: 'no', 2: 'yes' } }, /id2label should be an object of 1 to 16384 labels/],
    [{ id2label: { 0: 'no', 1: 5 } }, /id2label should be an object/],
    [{ id2label: {} }, /id2label should be an object/],
    [{ id2label: { 0: 'x'.repeat(1025) } }, /each of 1024 characters at most/],
    [{ id2label: null, num_labels: 16_385 }, /num_labels should be a whole number from 1 to 16384/],
    [
      { id2label: { 0: 'no', 1: 'yes' }, problem_type: 'other' },
      /problem_type should be one of single_label_classification, multi_label_classification, regression, found "other"/,
    ],
    [{ id2label: { 0: 'no', 1: 'yes' } }, /classifier\.\w+ should have the shape \[2(, 48)?\], found \[1/],
  ])('with labels as %j', (fields, message) => {
    expect(() => openCheckpoint(config('bert-score', fields))).toThrow(message);
  });

  it('with another activation of its score', () => {
    const folder = config('bert-score', { sentence_transformers: { activation_fn: 'torch.nn.Softmax' } });
    expect(() => openCheckpoint(folder)).toThrow(
      /activation_fn\) should be .*Sigmoid or .*, found "torch.nn.Softmax"/,
    );
  });

  it('with a module that is not there', () => {
    const dense = [{ idx: 2, name: '2', path: '2_LSTM', type: 'sentence_transformers.models.LSTM' }];
    expect(() => openCheckpoint(changed('bert-mean', 'modules.json', dense))).toThrow(
      /the module sentence_transformers.models.LSTM is not supported; supported: Transformer, Pooling, Dense, Normalize, LogitScore/,
    );
  });

  it.each([
    [{ pooling_mode_max_tokens: true, pooling_mode_mean_tokens: false }, /found pooling_mode_max_tokens/],
    [{ pooling_mode_cls_token: true }, /found pooling_mode_mean_tokens and pooling_mode_cls_token/],
    [
      { word_embedding_dimension: 47 },
      /word_embedding_dimension should be a whole number from 48 to 48, found 47/,
    ],
  ])('with the pooling %j', (fields, message) => {
    expect(() => openCheckpoint(changed('bert-mean', '1_Pooling/config.json', fields))).toThrow(message);
  });
});
