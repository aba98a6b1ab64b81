import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CheckpointError } from '../../../models/checkpoints/checkpoint.js';
import { openCheckpoint } from '../../../models/checkpoints/open-checkpoint.js';
import type { TypedValue } from '../../../tools/support/gguf-writer.js';
import { freshFolders } from '../../support/fresh-folders.js';
import { describeWithTestModel, testModelPath } from '../../support/test-model.js';
import {
  ggufTensors,
  TINY_GGUF_METADATA,
  TINY_MODEL_CONFIG,
  TINY_SHAPES,
  TINY_TOKENIZER,
  writeTinyGguf,
} from '../../support/tiny-checkpoint.js';

const fresh = freshFolders('skein-checkpoint');

describe('openCheckpoint of a GGUF', () => {
  it('gives the same dimensions and tensors under the same names', () => {
    const checkpoint = openCheckpoint(writeTinyGguf(join(fresh(), 'tiny.gguf')));
    const { rmsNormEpsilon, ...config } = checkpoint.config;
    expect(config).toEqual((({ rmsNormEpsilon: _, ...rest }) => rest)(TINY_MODEL_CONFIG));
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

  it('takes the text model of a Qwen-VL for Qwen, by the keys of its own name', () => {
    const metadata = Object.fromEntries(
      Object.entries(TINY_GGUF_METADATA).map(([key, value]) => [key.replace(/^llama\./, 'qwen3vl.'), value]),
    );
    const norms = ['attn_q_norm', 'attn_k_norm'].flatMap((name) =>
      [0, 1].map((layer) => ({
        name: `blk.${layer}.${name}.weight`,
        shape: [4],
        type: 'F32',
        data: new Uint8Array(16),
      })),
    );
    const path = writeTinyGguf(join(fresh(), 'vl.gguf'), {
      metadata: { ...metadata, 'general.architecture': { type: 'string', value: 'qwen3vl' } },
      tensors: [...ggufTensors(), ...norms],
    });
    expect(openCheckpoint(path).config).toMatchObject({ architecture: 'qwen3', numLayers: 2, headDim: 4 });
  });

  const wrong: [string, Record<string, TypedValue | null>, RegExp][] = [
    [
      'another architecture',
      { 'general.architecture': { type: 'string', value: 'mamba' } },
      /wrong\.gguf: architecture mamba is not supported: layers of this kind may keep a state/,
    ],
    ['no architecture', { 'general.architecture': null }, /general\.architecture, .*, is missing/],
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
      { 'llama.attention.head_count': { type: 'array', of: 'u32', value: [2, 4] } },
      /head_count should be a whole number from 1 to \d+, or \d+ times one and the same/,
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
    [
      'experts without how many are used',
      { 'llama.expert_count': { type: 'u32', value: 8 } },
      /llama\.expert_used_count should be a whole number from 1 to 8, found nothing/,
    ],
    [
      'experts of an architecture without them',
      {
        'general.architecture': { type: 'string', value: 'qwen2' },
        'qwen2.expert_count': { type: 'u32', value: 8 },
      },
      /qwen2\.expert_count should be 0 \(qwen2 has no experts\), found 8/,
    ],
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

  it('refuses tensors that nothing reads, and leaves those of further layers alone', () => {
    const openWith = (name: string) => {
      const extra = { name, shape: [4], data: new Uint8Array(Float32Array.of(1, 2, 3, 4).buffer) };
      const tensors = [...ggufTensors(), extra];
      return () => openCheckpoint(writeTinyGguf(join(fresh(), 'more.gguf'), { tensors }));
    };
    const parts = ['attn_q_norm.weight', 'attn_sinks.weight', 'attn_q.scale', 'attn_norm.bias'];
    for (const name of [...parts.map((part) => `blk.1.${part}`), 'unknown.weight'])
      expect(openWith(name), name).toThrow(
        `more.gguf: tensor ${name} is not supported: llama is computed without it`,
      );
    for (const name of ['blk.2.nextn.eh_proj.weight', 'blk.0.attn_rot_embd.weight', 'encoder.position_ids'])
      expect(openWith(name), name).not.toThrow();
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
  });
});
