import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readGgufAdapter } from '../../../models/adapters/gguf-adapter.js';
import { openAdapter } from '../../../models/adapters/open-adapter.js';
import { readPeftCheckpoint } from '../../../models/adapters/peft-checkpoint.js';
import { CheckpointError } from '../../../models/checkpoints/checkpoint.js';
import { openCheckpoint } from '../../../models/checkpoints/open-checkpoint.js';
import { ggufBytes, type TestTensor, type TypedValue } from '../../../tools/support/gguf-writer.js';
import { freshFolders, temporaryFolder } from '../../support/fresh-folders.js';
import { readsChangedBytes } from '../../support/hostile-adapter.js';
import { floats, TINY_BASE, writeTinyAdapter } from '../../support/tiny-adapter.js';

const fresh = freshFolders('skein-gguf-adapter');
const fixture = (name: string) => new URL(`../../fixtures/${name}`, import.meta.url).pathname;

const text = (value: string): TypedValue => ({ type: 'string', value });
const METADATA: Readonly<Record<string, TypedValue>> = {
  'general.type': text('adapter'),
  'adapter.type': text('lora'),
  'general.architecture': text('llama'),
  'adapter.lora.alpha': { type: 'f32', value: 4 },
};

/** Rank 2 on the values of layer 0 (8 to 4) and on the way down of layer 1 (10 to 8). */
const TENSORS: readonly TestTensor[] = [
  floats('blk.0.attn_v.weight.lora_a', [2, 8]),
  floats('blk.0.attn_v.weight.lora_b', [4, 2], -1),
  floats('blk.1.ffn_down.weight.lora_a', [2, 10]),
  floats('blk.1.ffn_down.weight.lora_b', [8, 2], -1),
];

interface Change {
  metadata?: Record<string, TypedValue | null>;
  tensors?: readonly TestTensor[];
  maxBytes?: number;
}

function read({ metadata = {}, tensors = TENSORS, maxBytes }: Change) {
  const folder = fresh();
  mkdirSync(folder, { recursive: true });
  const file = join(folder, 'adapter.gguf');
  const entries = Object.entries({ ...METADATA, ...metadata }).filter(([, value]) => value !== null);
  writeFileSync(file, ggufBytes(Object.fromEntries(entries) as Record<string, TypedValue>, tensors));
  return readGgufAdapter(file, TINY_BASE, { maxRank: 16, ...(maxBytes === undefined ? {} : { maxBytes }) });
}

describe('an adapter that llama.cpp converted', () => {
  it.each([
    ['plain', 'tiny-gqa'],
    ['phi3', 'tiny-phi3'],
  ])('is the one that PEFT saved: %s', (name, model) => {
    const { config } = openCheckpoint(fixture(model));
    const limits = { maxRank: 8 };
    const adapter = openAdapter(fixture(`lora-${name}-gguf`), config, limits);
    const { baseModel: _, ...expected } = readPeftCheckpoint(fixture(`lora-${name}`), config, limits);
    expect(adapter).toEqual({ ...expected, baseModel: null });
  });

  it('is read where no scaling is written, and with a base that llama.cpp calls otherwise', () => {
    for (const metadata of [
      { 'adapter.lora.alpha': null },
      { 'adapter.lora.alpha': { type: 'f32', value: 0 } },
    ]) {
      const { moduleLayers } = read({ metadata: metadata as Change['metadata'] & object });
      expect(moduleLayers[0]!.b[0]).toBe(-1);
    }
    expect(read({}).moduleLayers[0]!.b[0]).toBe(-2);
    const file = join(fixture('lora-plain-gguf'), 'adapter.gguf');
    const { config } = openCheckpoint(fixture('tiny-gqa'));
    const mistral = readGgufAdapter(file, { ...config, architecture: 'mistral' }, { maxRank: 8 });
    expect(mistral).toEqual(readGgufAdapter(file, config, { maxRank: 8 }));
  });

  it.each<[string, Change, RegExp]>([
    [
      'a model',
      { metadata: { 'general.type': text('model') } },
      /general\.type should be adapter, found model\.$/,
    ],
    [
      'another kind',
      { metadata: { 'adapter.type': null } },
      /adapter\.type should be lora, found nothing\.$/,
    ],
    [
      'another architecture',
      { metadata: { 'general.architecture': text('qwen2') } },
      /general\.architecture should be llama, found qwen2\.$/,
    ],
    [
      'one that begins at certain tokens',
      { metadata: { 'adapter.alora.invocation_tokens': { type: 'array', of: 'u32', value: [1] } } },
      /alora\.invocation_tokens\), which is not supported\.$/,
    ],
    [
      'a scaling that is none',
      { metadata: { 'adapter.lora.alpha': { type: 'f32', value: Infinity } } },
      /finite/,
    ],
    ['no tensors', { tensors: [] }, /holds no tensors\.$/],
    [
      'one matrix alone',
      { tensors: TENSORS.slice(0, 3) },
      /ffn_down\.weight\.lora_a has no lora_b to go with it\.$/,
    ],
    [
      'embeddings',
      { tensors: [floats('token_embd.weight.lora_a', [2, 8])] },
      /token_embd\.weight\.lora_a belongs to no module of the base model that can have an adapter; those are self_attn/,
    ],
    ['norms', { tensors: [floats('blk.0.attn_norm.weight', [8])] }, /belongs to no module/],
    [
      'a layer too far',
      { tensors: TENSORS.map((one) => ({ ...one, name: one.name.replace('1.', '2.') })) },
      /layers 0 to 1/,
    ],
    [
      'a rank of its own in B',
      { tensors: [TENSORS[0]!, floats('blk.0.attn_v.weight.lora_b', [4, 3])] },
      /should have the shape \[4, 2\] \(2 is its rank by blk\.0\.attn_v\.weight\.lora_a\), found \[4, 3\]\.$/,
    ],
    [
      'another width',
      { tensors: [floats('blk.0.attn_v.weight.lora_a', [2, 9]), TENSORS[1]!] },
      /should have the shape \[2, 8\] \(8 is the base model's\), found \[2, 9\]\.$/,
    ],
    ['no rank', { tensors: [floats('blk.0.attn_v.weight.lora_a', [0, 8]), TENSORS[1]!] }, /has rank 0\.$/],
    [
      'too high a rank',
      { tensors: [floats('blk.0.attn_v.weight.lora_a', [17, 8]), TENSORS[1]!] },
      /at most 16/,
    ],
    ['too much', { maxBytes: 100 }, /takes 240 bytes in float32; at most 100 are accepted \(maxBytes\)\.$/],
  ])('is refused with one sentence: %s', (_, change, message) => {
    expect(() => read(change)).toThrow(CheckpointError);
    expect(() => read(change)).toThrow(message);
  });

  it('is read or refused whatever its bytes', () => {
    const file = join(temporaryFolder('skein-gguf-adapter-fuzz'), 'adapter.gguf');
    readsChangedBytes(file, ggufBytes(METADATA, TENSORS), () =>
      readGgufAdapter(file, TINY_BASE, { maxRank: 16 }),
    );
  });
});

describe('an adapter by its path', () => {
  const limits = { maxRank: 16 };

  it('is a folder of PEFT, a GGUF file, or a folder with one', () => {
    const folder = writeTinyAdapter(fresh());
    expect(openAdapter(folder, TINY_BASE, limits).baseModel).toBe('tiny');
    const { config } = openCheckpoint(fixture('tiny-gqa'));
    const file = join(fixture('lora-plain-gguf'), 'adapter.gguf');
    expect(openAdapter(file, config, limits)).toEqual(
      openAdapter(fixture('lora-plain-gguf'), config, limits),
    );
    copyFileSync(file, join(folder, 'adapter.gguf'));
    expect(openAdapter(folder, TINY_BASE, limits).baseModel).toBe('tiny');
  });

  it('is refused where there is none, or more than one', () => {
    expect(() => openAdapter('/nowhere', TINY_BASE, limits)).toThrow('/nowhere: no such folder.');
    const file = join(writeTinyAdapter(fresh()), 'adapter_model.safetensors');
    expect(() => openAdapter(file, TINY_BASE, limits)).toThrow(
      `${file}: is a file of an adapter of PEFT; the folder that holds it is expected, or a GGUF file.`,
    );
    const folder = fresh();
    mkdirSync(folder, { recursive: true });
    for (const name of ['a.gguf', 'b.gguf'])
      writeFileSync(join(folder, name), readFileSync(import.meta.filename));
    expect(() => openAdapter(folder, TINY_BASE, limits)).toThrow(
      'holds 2 GGUF files; name the one that is the adapter.',
    );
  });
});
