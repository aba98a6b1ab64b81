import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { CheckpointError } from '../../../models/checkpoints/checkpoint.js';
import { describeCheckpoint } from '../../../models/checkpoints/describe-checkpoint.js';
import { openCheckpoint } from '../../../models/checkpoints/open-checkpoint.js';
import type { TypedValue } from '../../support/gguf-writer.js';
import { describeWithTestModel, testModelPath } from '../../support/test-model.js';
import {
  ggufTensors,
  safetensorsBytes,
  TINY_SHAPES,
  TINY_TOKENIZER,
  tinyTensors,
  writeTinyGguf,
  writeTinyModel,
} from '../../support/tiny-checkpoint.js';

const root = mkdtempSync(join(tmpdir(), 'skein-checkpoint-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let count = 0;
const fresh = () => {
  const directory = join(root, `model-${count++}`);
  mkdirSync(directory);
  return directory;
};

const expectedConfig = {
  architecture: 'llama',
  vocabSize: 6,
  hiddenSize: 8,
  intermediateSize: 10,
  numLayers: 2,
  numHeads: 2,
  numKvHeads: 1,
  headDim: 4,
  rmsNormEpsilon: 1e-5,
  activation: 'silu',
  attentionBias: false,
  mlpBias: false,
  tieWordEmbeddings: true,
  maxPositions: 32,
  rope: { theta: 10_000, rotaryDim: 4, scaling: { type: 'none' } },
  bosTokenId: 1,
  eosTokenIds: [2],
  padTokenId: null,
};

describe('openCheckpoint of a folder with safetensors', () => {
  it('gives dimensions, tensors and tokenizer', () => {
    const path = writeTinyModel(fresh());
    const checkpoint = openCheckpoint(path);
    expect(checkpoint).toMatchObject({ path, format: 'safetensors', config: expectedConfig });
    expect([...checkpoint.tensors.keys()].sort()).toEqual(Object.keys(TINY_SHAPES).sort());
    expect(checkpoint.tokenizer).toEqual({
      tokenizerJson: TINY_TOKENIZER,
      tokenizerConfig: {},
      chatTemplate: null,
    });
  });

  it('honours the eos ids of generation_config.json, several too', () => {
    const path = writeTinyModel(fresh());
    writeFileSync(join(path, 'generation_config.json'), '{"eos_token_id":[5,2,99]}');
    expect(openCheckpoint(path).config.eosTokenIds).toEqual([5, 2]);
  });

  it('takes the chat template from its own file first, then from tokenizer_config.json', () => {
    const path = writeTinyModel(fresh());
    const config = join(path, 'tokenizer_config.json');
    writeFileSync(config, '{"chat_template":"one"}');
    expect(openCheckpoint(path).tokenizer.chatTemplate).toBe('one');
    const named = [
      { name: 'tool_use', template: 'tools' },
      { name: 'default', template: 'two' },
    ];
    writeFileSync(config, JSON.stringify({ chat_template: named }));
    expect(openCheckpoint(path).tokenizer.chatTemplate).toBe('two');
    writeFileSync(join(path, 'chat_template.jinja'), 'three');
    expect(openCheckpoint(path).tokenizer.chatTemplate).toBe('three');
    writeFileSync(join(path, 'tokenizer_config.json'), '{"chat_template":7}');
    rmSync(join(path, 'chat_template.jinja'));
    expect(() => openCheckpoint(path)).toThrow(/chat_template should be a string/);
  });

  it('ignores tensors that the network does not use, of unknown types too', () => {
    const extra = { name: 'rotary.inv_freq', shape: [1], type: 'I64', data: Buffer.alloc(8) };
    const path = writeTinyModel(fresh(), { tensors: [...tinyTensors(), extra] });
    expect(openCheckpoint(path).tensors.has('rotary.inv_freq')).toBe(false);
  });

  it('changes its hash with any of its files', () => {
    const path = writeTinyModel(fresh());
    const before = openCheckpoint(path).sourceHash;
    expect(openCheckpoint(path).sourceHash).toBe(before);
    const tensors = tinyTensors();
    tensors[3]!.data[5]! ^= 1;
    writeFileSync(join(path, 'model.safetensors'), safetensorsBytes(tensors));
    const after = openCheckpoint(path).sourceHash;
    expect(after).not.toBe(before);
    writeFileSync(join(path, 'generation_config.json'), '{}');
    expect(openCheckpoint(path).sourceHash).not.toBe(after);
  });

  const without = (name: string) => tinyTensors().filter((tensor) => tensor.name !== name);
  const reshaped = (name: string, shape: number[]) =>
    tinyTensors().map((tensor) => (tensor.name === name ? { ...tensor, shape } : tensor));
  const q = 'model.layers.1.self_attn.q_proj.weight';
  const wrong: [string, Parameters<typeof writeTinyModel>[1], RegExp][] = [
    [
      'a missing tensor',
      { tensors: without(q) },
      /model\.safetensors: tensor model\.layers\.1\.self_attn\.q_proj\.weight that.*missing/,
    ],
    [
      'missing output weights',
      { config: { tie_word_embeddings: false } },
      /tensor lm_head\.weight .*missing/,
    ],
    ['missing biases', { config: { attention_bias: true } }, /q_proj\.bias and 7 more/],
    ['a wrong shape', { tensors: reshaped(q, [4, 16]) }, /should have the shape \[8, 8\], found \[4, 16\]/],
    [
      'a norm that is a matrix',
      { tensors: reshaped('model.norm.weight', [1, 8]) },
      /shape \[8\], found \[1, 8\]/,
    ],
    [
      'another vocabulary',
      { config: { vocab_size: 7 } },
      /embed_tokens\.weight should have the shape \[7, 8\], found \[6, 8\]/,
    ],
    ['more layers', { config: { num_hidden_layers: 3 } }, /layers\.2\..* and 8 more/],
    [
      'an unsupported type',
      { tensors: tinyTensors().map((t) => (t.name === q ? { ...t, type: 'I32' } : t)) },
      /has type I32; supported: F32, F16, BF16/,
    ],
    [
      'another architecture',
      { config: { architectures: ['GPT2LMHeadModel'] } },
      /architectures should be one of LlamaForCausalLM, .*found \["GPT2LMHeadModel"\]/,
    ],
    ['no architecture', { config: { architectures: null } }, /found nothing/],
    [
      'heads that do not divide',
      { config: { num_key_value_heads: 4, num_attention_heads: 2 } },
      /2 attention heads should be a multiple of the 4/,
    ],
    [
      'a width that is no multiple',
      { config: { num_attention_heads: 3, num_key_value_heads: 1 } },
      /hidden_size should be a multiple of the 3/,
    ],
    ['an odd head', { config: { head_dim: 5 } }, /2 heads of 5 dimensions/],
    [
      'a missing field',
      { config: { hidden_size: undefined } },
      /hidden_size should be a whole number from 1 to \d+, found nothing/,
    ],
    [
      'a field of another kind',
      { config: { num_hidden_layers: '2' } },
      /num_hidden_layers should be .* found "2"/,
    ],
    ['huge dimensions', { config: { num_hidden_layers: 1e9 } }, /num_hidden_layers should be/],
    ['an unknown activation', { config: { hidden_act: 'relu' } }, /hidden_act should be one of silu/],
    ['a sliding window', { config: { sliding_window: 4096 } }, /sliding_window should be absent/],
    [
      'quantised weights',
      { config: { quantization_config: { quant_method: 'gptq' } } },
      /quantization_config should be absent.*gptq/,
    ],
    [
      'an unknown RoPE',
      { config: { rope_scaling: { rope_type: 'spiral', factor: 2 } } },
      /rope_type should be one of default, linear/,
    ],
    [
      'a RoPE without factor',
      { config: { rope_scaling: { type: 'linear' } } },
      /factor should be a number greater than 0, found nothing/,
    ],
    [
      'factors of another length',
      { config: { rope_scaling: { type: 'longrope', short_factor: [1], long_factor: [1, 1] } } },
      /short_factor should be an array of 2 numbers/,
    ],
    [
      'equal llama3 factors',
      {
        config: { rope_scaling: { rope_type: 'llama3', factor: 2, low_freq_factor: 1, high_freq_factor: 1 } },
      },
      /high_freq_factor should be more than/,
    ],
    [
      'a RoPE for each kind of layer',
      { config: { rope_parameters: { full: { rope_type: 'yarn' } } } },
      /one set of parameters/,
    ],
    ['a theta below 1', { config: { rope_theta: 0.5 } }, /rope theta should be greater than 1/],
    ['a rotation of nothing', { config: { partial_rotary_factor: 0.1 } }, /rotate an even number/],
    ['eos ids that are none', { config: { eos_token_id: ['x'] } }, /eos_token_id should be a token id/],
  ];
  for (const [what, change, message] of wrong) {
    it(`refuses ${what}`, () => {
      const path = writeTinyModel(fresh(), change);
      expect(() => openCheckpoint(path)).toThrow(CheckpointError);
      expect(() => openCheckpoint(path)).toThrow(message);
    });
  }

  it('refuses folders in which something is missing', () => {
    const path = writeTinyModel(fresh());
    const copy = (name: string) => {
      const directory = fresh();
      cpSync(path, directory, { recursive: true });
      rmSync(join(directory, name));
      return directory;
    };
    expect(() => openCheckpoint(copy('config.json'))).toThrow(/holds safetensors, but no config\.json/);
    expect(() => openCheckpoint(copy('tokenizer.json'))).toThrow(/holds no tokenizer\.json/);
    expect(() => openCheckpoint(copy('model.safetensors'))).toThrow(
      /neither \*\.safetensors nor a \.gguf file/,
    );
    const pickled = copy('model.safetensors');
    writeFileSync(join(pickled, 'pytorch_model.bin'), 'x');
    expect(() => openCheckpoint(pickled)).toThrow(/pytorch_model\.bin is no such format/);
    expect(() => openCheckpoint(join(root, 'nowhere'))).toThrow(/nowhere: no such file or folder/);
    const pipe = join(root, 'pipe.gguf');
    execFileSync('mkfifo', [pipe]);
    expect(() => openCheckpoint(pipe)).toThrow(/pipe\.gguf: is not a regular file/);
    expect(() => openCheckpoint(join(path, 'config.json'))).toThrow(/a model is a folder or a \.gguf file/);
  });

  it('refuses a tokenizer with more tokens than the model', () => {
    const path = writeTinyModel(fresh());
    const tokenizer = { ...TINY_TOKENIZER, added_tokens: [{ id: 6, content: '<extra>' }] };
    writeFileSync(join(path, 'tokenizer.json'), JSON.stringify(tokenizer));
    expect(() => openCheckpoint(path)).toThrow(/tokenizer\.json: has a token with id 6, but .* 6 entries/);
  });
});

describe('openCheckpoint of a GGUF', () => {
  it('gives the same dimensions and tensors under the same names', () => {
    const checkpoint = openCheckpoint(writeTinyGguf(join(fresh(), 'tiny.gguf')));
    const { rmsNormEpsilon, ...config } = checkpoint.config;
    expect(config).toEqual((({ rmsNormEpsilon: _, ...rest }) => rest)(expectedConfig));
    expect(Math.fround(rmsNormEpsilon)).toBe(Math.fround(1e-5));
    expect([...checkpoint.tensors.keys()].sort()).toEqual(Object.keys(TINY_SHAPES).sort());
    const heads = [...checkpoint.tensors.values()].flatMap(({ name, interleavedHeads }) =>
      interleavedHeads === undefined ? [] : [`${name} ${interleavedHeads}`],
    );
    expect(heads.sort()).toEqual(
      [0, 1].flatMap((i) => [
        `model.layers.${i}.self_attn.k_proj.weight 1`,
        `model.layers.${i}.self_attn.q_proj.weight 2`,
      ]),
    );
    expect(checkpoint.tokenizer.chatTemplate).toBe('{{ messages[0].content }}');
    expect(checkpoint.tokenizer.tokenizerJson).toMatchObject({ model: { vocab: { ab: 5 } } });
  });

  it('lets files beside it win over its own tokenizer and template', () => {
    const directory = fresh();
    writeTinyGguf(join(directory, 'tiny.gguf'));
    writeFileSync(join(directory, 'tokenizer.json'), JSON.stringify(TINY_TOKENIZER));
    writeFileSync(join(directory, 'generation_config.json'), '{"eos_token_id":[4]}');
    const { tokenizer, config, format } = openCheckpoint(directory);
    expect(format).toBe('gguf');
    expect(tokenizer.tokenizerJson).toEqual(TINY_TOKENIZER);
    expect(tokenizer.tokenizerConfig).toMatchObject({ bos_token: '<s>', eos_token: '</s>' });
    expect(config.eosTokenIds).toEqual([4, 2]);
    writeFileSync(join(directory, 'chat_template.jinja'), 'beside');
    expect(openCheckpoint(directory).tokenizer.chatTemplate).toBe('beside');
  });

  it('reads RoPE scalings from metadata and from tensors', () => {
    const scaling = (metadata: Record<string, TypedValue>, factors: Record<string, number[]> = {}) => {
      const extra = Object.entries(factors).map(([name, values]) => {
        return { name, shape: [values.length], data: new Uint8Array(Float32Array.from(values).buffer) };
      });
      const change = { metadata, tensors: [...ggufTensors(), ...extra] };
      return openCheckpoint(writeTinyGguf(join(fresh(), 'rope.gguf'), change)).config.rope.scaling;
    };
    const type = (value: string): TypedValue => ({ type: 'string', value });
    const f32 = (value: number): TypedValue => ({ type: 'f32', value });
    const key = (name: string) => `llama.rope.scaling.${name}`;
    expect(scaling({ [key('type')]: type('none'), [key('factor')]: f32(4) })).toEqual({ type: 'none' });
    expect(scaling({ [key('factor')]: f32(4) })).toEqual({ type: 'linear', factor: 4 });
    expect(scaling({ 'llama.rope.scale_linear': f32(2) })).toEqual({ type: 'linear', factor: 2 });
    expect(scaling({}, { 'rope_freqs.weight': [1, 8] })).toEqual({ type: 'factors', factors: [1, 8] });
    const original: TypedValue = { type: 'u32', value: 8 };
    const yarn = {
      [key('type')]: type('yarn'),
      [key('factor')]: f32(4),
      [key('original_context_length')]: original,
    };
    expect(scaling(yarn)).toMatchObject({ type: 'yarn', factor: 4, originalMaxPositions: 8, betaFast: 32 });
    const longrope = { [key('type')]: type('longrope'), [key('original_context_length')]: original };
    const factors = { 'rope_factors_long.weight': [2, 3], 'rope_factors_short.weight': [1, 1] };
    expect(scaling(longrope, factors)).toMatchObject({ type: 'longrope', factor: 4, longFactor: [2, 3] });
    expect(() => scaling(longrope)).toThrow(/longrope needs the tensors/);
    expect(() => scaling({ [key('type')]: type('spiral') })).toThrow(
      /one of none, linear, yarn, longrope, found spiral/,
    );
    expect(() => scaling({}, { 'rope_freqs.weight': [1, 2, 3] })).toThrow(
      /should be F32 \[2\], found F32 \[3\]/,
    );
    expect(() => scaling({}, { 'rope_freqs.weight': [1, 0] })).toThrow(/greater than 0/);
  });

  const wrong: [string, Record<string, TypedValue | null>, RegExp][] = [
    [
      'another architecture',
      { 'general.architecture': { type: 'string', value: 'mamba' } },
      /one of llama, found mamba/,
    ],
    ['no architecture', { 'general.architecture': null }, /found nothing/],
    [
      'no dimensions',
      { 'llama.block_count': null },
      /llama\.block_count should be a whole number .* found nothing/,
    ],
    [
      'dimensions of another kind',
      { 'llama.block_count': { type: 'string', value: '2' } },
      /block_count should be a number, found a string/,
    ],
    [
      'heads per layer',
      { 'llama.attention.head_count': { type: 'array', of: 'u32', value: [2, 2] } },
      /head_count should be a number/,
    ],
    [
      'heads that do not divide',
      { 'llama.attention.head_count_kv': { type: 'u32', value: 3 } },
      /multiple of the 3/,
    ],
    [
      'a width that is no multiple',
      { 'llama.attention.head_count': { type: 'u32', value: 3 } },
      /attention heads|dimensions|shape/,
    ],
    [
      'another vocabulary',
      { 'llama.vocab_size': { type: 'u32', value: 9 } },
      /token_embd\.weight should have the shape \[9, 8\]/,
    ],
    [
      'more tokens than rows',
      { 'llama.vocab_size': { type: 'u32', value: 5 } },
      /tokenizer has 6 tokens, more than the vocabulary of 5/,
    ],
    ['one part of several', { 'split.count': { type: 'u16', value: 3 } }, /one of 3 parts/],
    ['experts', { 'llama.expert_count': { type: 'u32', value: 8 } }, /expert_count should be 0/],
    [
      'an adapter',
      { 'general.type': { type: 'string', value: 'adapter' } },
      /general\.type should be model, found adapter/,
    ],
    [
      'another key than value length',
      { 'llama.attention.value_length': { type: 'u32', value: 8 } },
      /value_length should be the key length 4, found 8/,
    ],
  ];
  for (const [what, metadata, message] of wrong) {
    it(`refuses ${what}`, () => {
      const path = writeTinyGguf(join(fresh(), 'wrong.gguf'), { metadata });
      expect(() => openCheckpoint(path)).toThrow(CheckpointError);
      expect(() => openCheckpoint(path)).toThrow(message);
    });
  }

  it('refuses a folder with several, and a type that cannot be converted', () => {
    const directory = fresh();
    writeTinyGguf(join(directory, 'one.gguf'));
    writeTinyGguf(join(directory, 'two.gguf'));
    expect(() => openCheckpoint(directory)).toThrow(
      /holds 2 GGUF files \(one\.gguf, two\.gguf\); name the one/,
    );
    const tensors = ggufTensors().map((t) => (t.name === 'output_norm.weight' ? { ...t, type: 'I32' } : t));
    const path = writeTinyGguf(join(fresh(), 'ints.gguf'), { tensors });
    expect(() => openCheckpoint(path)).toThrow(/tensor output_norm\.weight has type I32; supported: F32/);
  });
});

describeWithTestModel('openCheckpoint of the real model', () => {
  it('reads the folder with one GGUF', () => {
    const { config, tensors, tokenizer, format } = openCheckpoint(testModelPath!);
    expect(format).toBe('gguf');
    expect(config).toMatchObject({
      numLayers: 30,
      hiddenSize: 576,
      numHeads: 9,
      numKvHeads: 3,
      vocabSize: 49_152,
    });
    expect(tensors.size).toBe(272);
    expect(tokenizer.chatTemplate).toContain('<|im_start|>');
    expect(describeCheckpoint(testModelPath!)).toMatchObject({
      parameters: 134_515_008,
      hasChatTemplate: true,
    });
  });
});
