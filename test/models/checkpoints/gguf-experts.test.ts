import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CheckpointError } from '../../../models/checkpoints/checkpoint.js';
import { openCheckpoint } from '../../../models/checkpoints/open-checkpoint.js';
import type { TestTensor, TypedValue } from '../../../tools/support/gguf-writer.js';
import {
  EXPERTS,
  type ExpertsChange,
  expertsTensors,
  tensorsByExpert,
  writeExpertsGguf,
} from '../../support/experts-model.js';
import { freshFolders } from '../../support/fresh-folders.js';
import { draws } from '../../support/scale.js';

const fresh = freshFolders('skein-gguf-experts');
const open = (change: ExpertsChange = {}) =>
  openCheckpoint(writeExpertsGguf(join(fresh(), 'm.gguf'), change));
const u32 = (value: number): TypedValue => ({ type: 'u32', value });
const f32 = (value: number): TypedValue => ({ type: 'f32', value });

/** Bytes of a tensor of an opened checkpoint. */
function bytesOf({ tensors }: ReturnType<typeof open>, name: string): Buffer {
  const { file, offset, byteLength } = tensors.get(name)!;
  return readFileSync(file).subarray(offset, offset + byteLength);
}

/** The part of a tensor of all experts that is one expert's. */
function sliceOf(tensors: readonly TestTensor[], name: string, expert: number): Buffer {
  const { data, shape } = tensors.find((tensor) => tensor.name === name)!;
  const bytes = data.length / shape[0]!;
  return Buffer.from(data.subarray(expert * bytes, (expert + 1) * bytes));
}

describe('a GGUF with experts', () => {
  it('has the configuration of Qwen3 with experts', () => {
    expect(open().config).toMatchObject({
      architecture: 'qwen3moe',
      hiddenSize: 256,
      intermediateSize: 768,
      experts: { count: 4, used: 2, width: 256, normalize: true },
      attentionBias: false,
      mlpBias: false,
    });
    const older = open({ metadata: { expert_feed_forward_length: null, feed_forward_length: u32(512) } });
    expect(older.config.experts!.width).toBe(256);
    const alone = open({ metadata: { feed_forward_length: null } });
    expect(alone.config).toMatchObject({ intermediateSize: 256, experts: { width: 256 } });
  });

  it('is a Mixtral where its architecture is llama', () => {
    const { config, tensors } = open({ architecture: 'llama' });
    expect(config).toMatchObject({
      architecture: 'mixtral',
      intermediateSize: 256,
      experts: { count: 4, used: 2, width: 256, normalize: true },
    });
    const heads = ['q', 'k', 'v'].map(
      (one) => tensors.get(`model.layers.1.self_attn.${one}_proj.weight`)!.interleavedHeads,
    );
    expect(heads).toEqual([2, 1, undefined]);
  });

  it.each([
    ['qwen3moe', 'mlp', 'gate_proj', 'up_proj', 'down_proj'],
    ['llama', 'block_sparse_moe', 'w1', 'w3', 'w2'],
  ] as const)('has the matrices of each expert, as slices: %s', (architecture, block, gate, up, down) => {
    const tensors = expertsTensors(architecture);
    const checkpoint = open({ architecture, tensors });
    for (const layer of [0, 1]) {
      const prefix = `model.layers.${layer}.${block}`;
      for (let expert = 0; expert < EXPERTS.count; expert++) {
        for (const [name, stem] of [
          [gate, 'gate'],
          [up, 'up'],
          [down, 'down'],
        ] as const) {
          const found = bytesOf(checkpoint, `${prefix}.experts.${expert}.${name}.weight`);
          expect(found.equals(sliceOf(tensors, `blk.${layer}.ffn_${stem}_exps.weight`, expert))).toBe(true);
        }
      }
      expect(checkpoint.tensors.get(`${prefix}.gate.weight`)).toMatchObject({ type: 'F32', shape: [4, 256] });
    }
    expect(checkpoint.tensors.get(`model.layers.1.${block}.experts.3.${up}.weight`)).toMatchObject({
      name: `model.layers.1.${block}.experts.3.${up}.weight`,
      type: 'Q6_K',
      shape: [256, 256],
    });
  });

  it('may have a tensor for each expert, as the first files of Mixtral have', () => {
    const tensors = expertsTensors('llama');
    const [stacked, single] = [tensors, tensorsByExpert(tensors)].map((one) =>
      open({ architecture: 'llama', tensors: one }),
    );
    expect([...single!.tensors.keys()].sort()).toEqual([...stacked!.tensors.keys()].sort());
    for (const name of stacked!.tensors.keys())
      expect(bytesOf(single!, name).equals(bytesOf(stacked!, name)), name).toBe(true);
  });

  it('may have gate and up of a layer in one tensor', () => {
    const tensors = expertsTensors();
    const [gate, up] = ['gate', 'up'].map((one) => `blk.0.ffn_${one}_exps.weight`);
    const one = tensors.find(({ name }) => name === gate)!;
    const both = Array.from({ length: EXPERTS.count }, (_, expert) => [
      sliceOf(tensors, gate!, expert),
      sliceOf(tensors, up!, expert),
    ]).flat();
    const [count, rows, columns] = one.shape as [number, number, number];
    const data = new Uint8Array(Buffer.concat(both));
    const merged = { ...one, name: 'blk.0.ffn_gate_up_exps.weight', shape: [count, 2 * rows, columns], data };
    const rest = tensors.filter(({ name }) => name !== gate && name !== up);
    const [stacked, apart] = [open({ tensors: [...rest, merged] }), open()];
    expect([...stacked.tensors.keys()].sort()).toEqual([...apart.tensors.keys()].sort());
    for (const name of apart.tensors.keys())
      expect(bytesOf(stacked, name).equals(bytesOf(apart, name)), name).toBe(true);
  });

  it('has layers beyond its own, which are left alone', () => {
    const more = expertsTensors().filter(({ name }) => name === 'blk.1.ffn_up_exps.weight');
    const beyond = more.map((tensor) => ({ ...tensor, name: 'blk.2.ffn_up_exps.weight' }));
    expect(open({ tensors: [...expertsTensors(), ...beyond] }).tensors.size).toBe(open().tensors.size);
  });
});

describe('what a GGUF says of experts that is not computed', () => {
  it.each<[string, TypedValue | null, RegExp]>([
    ['expert_count', u32(0), /qwen3moe\.expert_count should be a whole number from 1 to 1024, found 0\.$/],
    ['expert_count', null, /qwen3moe\.expert_count should be a whole number from 1 to 1024, found nothing/],
    ['expert_count', u32(1025), /expert_count should be a whole number from 1 to 1024, found 1025/],
    ['expert_count', f32(2.5), /expert_count should be a whole number .* found 2\.5/],
    ['expert_used_count', null, /expert_used_count should be a whole number from 1 to 4, found nothing/],
    ['expert_used_count', u32(0), /expert_used_count should be a whole number from 1 to 4, found 0/],
    ['expert_used_count', u32(5), /expert_used_count should be a whole number from 1 to 4, found 5/],
    [
      'expert_used_count',
      { type: 'array', of: 'u32', value: [2, 2] },
      /expert_used_count should be a number/,
    ],
    ['expert_feed_forward_length', u32(0), /expert_feed_forward_length should be a whole number from 1/],
    ['expert_shared_count', u32(1), /expert_shared_count should be 0 \(experts that all tokens go to/],
    ['expert_shared_feed_forward_length', u32(64), /expert_shared_feed_forward_length should be 0/],
    ['expert_group_count', u32(2), /expert_group_count should be 0 or 1 \(groups/],
    ['expert_weights_scale', f32(2.5), /expert_weights_scale should be 1 .*found 2\.5/],
    [
      'expert_weights_norm',
      { type: 'bool', value: false },
      /expert_weights_norm should be true .*found false/,
    ],
    ['expert_gating_func', u32(2), /expert_gating_func should be 1 \(softmax: .*found 2/],
    ['leading_dense_block_count', u32(1), /leading_dense_block_count should be 0 \(layers with one MLP/],
    ['interleave_moe_layer_step', u32(2), /interleave_moe_layer_step should be 1/],
    ['expert_latent_length', u32(32), /expert_latent_length should be 0/],
  ])('is refused by name: %s', (key, value, message) => {
    const change = { metadata: { [key]: value } };
    expect(() => open(change)).toThrow(CheckpointError);
    expect(() => open(change)).toThrow(message);
  });

  it('changes nothing where it is off', () => {
    const off = {
      expert_shared_count: u32(0),
      expert_group_count: u32(1),
      expert_weights_scale: f32(1),
      expert_weights_norm: { type: 'bool', value: true },
      expert_gating_func: u32(1),
      leading_dense_block_count: u32(0),
    } as const;
    expect(open({ metadata: off }).config).toEqual(open().config);
  });

  it('is refused where the architecture has no experts', () => {
    const tensors = expertsTensors('llama');
    const path = writeExpertsGguf(join(fresh(), 'm.gguf'), { architecture: 'qwen3' as never, tensors });
    expect(() => openCheckpoint(path)).toThrow(
      /qwen3\.expert_count should be 0 \(qwen3 has no experts\), found 4\.$/,
    );
  });

  it('is asked for where there is a router and no number of experts', () => {
    const change = { architecture: 'llama', metadata: { expert_count: u32(0) } } as const;
    expect(() => open(change)).toThrow(
      /llama\.expert_count should be the number of experts, since there is a router \(blk\.0\.ffn_gate_inp\.weight\), found 0\.$/,
    );
  });

  it('is bounded over all layers', () => {
    const metadata = { block_count: u32(1000), expert_count: u32(100) };
    expect(() => open({ metadata })).toThrow(
      /m\.gguf: 1000 layers of 100 experts should have 65536 experts in all at most, found 100000\.$/,
    );
  });
});

it('a changed header is read or refused, whatever the bytes', () => {
  const path = writeExpertsGguf(join(fresh(), 'fuzz.gguf'));
  const headerBytes = Math.min(...[...openCheckpoint(path).tensors.values()].map(({ offset }) => offset));
  const header = readFileSync(path).subarray(0, headerBytes);
  const file = openSync(path, 'r+');
  const change = fc.array(fc.tuple(fc.nat(headerBytes - 1), fc.integer({ min: 0, max: 255 })), {
    maxLength: 4,
  });
  fc.assert(
    fc.property(change, (bytes) => {
      const copy = Buffer.from(header);
      for (const [at, value] of bytes) copy[at] = value;
      writeSync(file, copy, 0, copy.length, 0);
      try {
        openCheckpoint(path);
      } catch (error) {
        if (!(error instanceof CheckpointError)) throw error;
      }
    }),
    { numRuns: draws(200) },
  );
  closeSync(file);
});

describe('tensors of experts', () => {
  const changed = (name: string, change: Partial<TestTensor>) =>
    expertsTensors().map((tensor) => (tensor.name === name ? { ...tensor, ...change } : tensor));
  const without = (name: string) => expertsTensors().filter((tensor) => tensor.name !== name);
  const extra = (name: string, shape: number[]): TestTensor[] => [
    ...expertsTensors(),
    { name, shape, data: new Uint8Array(4 * shape.reduce((product, size) => product * size, 1)) },
  ];

  it.each<[string, readonly TestTensor[], RegExp]>([
    [
      'of another number of experts',
      changed('blk.0.ffn_gate_exps.weight', { shape: [2, 512, 256] }),
      /m\.gguf: tensor blk\.0\.ffn_gate_exps\.weight should have the shape \[4, 256, 256\], found \[2, 512, 256\]\.$/,
    ],
    [
      'of two dimensions',
      changed('blk.1.ffn_down_exps.weight', { shape: [1024, 256] }),
      /tensor blk\.1\.ffn_down_exps\.weight should have the shape \[4, 256, 256\], found \[1024, 256\]\.$/,
    ],
    [
      'of a type that cannot be read',
      changed('blk.1.ffn_up_exps.weight', { type: 'I32', data: new Uint8Array(4 * 4 * 256 * 256) }),
      /tensor blk\.1\.ffn_up_exps\.weight has type I32; supported: F32/,
    ],
    [
      'that are missing',
      without('blk.1.ffn_up_exps.weight'),
      /tensor model\.layers\.1\.mlp\.experts\.0\.up_proj\.weight and 3 more that the configuration calls for is missing/,
    ],
    [
      'without a router',
      without('blk.0.ffn_gate_inp.weight'),
      /tensor model\.layers\.0\.mlp\.gate\.weight that/,
    ],
    [
      'with a router of another number',
      changed('blk.0.ffn_gate_inp.weight', { shape: [2, 512] }),
      /tensor blk\.0\.ffn_gate_inp\.weight should have the shape \[4, 256\], found \[2, 512\]/,
    ],
    [
      'that are there for all and for one',
      extra('blk.0.ffn_gate.2.weight', [256, 256]),
      /tensor model\.layers\.0\.mlp\.experts\.2\.gate_proj\.weight is there twice/,
    ],
    [
      'of an expert beyond the last',
      [...tensorsByExpert(expertsTensors()), ...extra('blk.0.ffn_gate.4.weight', [256, 256]).slice(-1)],
      /tensor blk\.0\.ffn_gate\.4\.weight is not supported: qwen3moe is computed without it/,
    ],
    ['with scales', extra('blk.0.ffn_gate_exps.scale', [4]), /blk\.0\.ffn_gate_exps\.scale is not supported/],
    ['with biases', extra('blk.0.ffn_up_exps.bias', [4, 256]), /blk\.0\.ffn_up_exps\.bias is not supported/],
    [
      'whose router has a bias',
      extra('blk.0.ffn_gate_inp.bias', [4]),
      /blk\.0\.ffn_gate_inp\.bias is not supported/,
    ],
    [
      'whose choice has a bias',
      extra('blk.1.exp_probs_b.bias', [4]),
      /blk\.1\.exp_probs_b\.bias is not supported/,
    ],
    [
      'beside shared ones',
      extra('blk.1.ffn_up_shexp.weight', [8, 256]),
      /ffn_up_shexp\.weight is not supported/,
    ],
    ['beside an MLP', extra('blk.1.ffn_up.weight', [8, 256]), /blk\.1\.ffn_up\.weight is not supported/],
    [
      'that are there twice',
      extra('blk.1.ffn_gate_up_exps.weight', [4, 512, 256]),
      /tensor model\.layers\.1\.mlp\.experts\.0\.gate_proj\.weight is there twice/,
    ],
    [
      'whose gate and up are one of another shape',
      extra('blk.1.ffn_gate_up_exps.weight', [4, 256, 256]),
      /blk\.1\.ffn_gate_up_exps\.weight should have the shape \[4, 512, 256\], found \[4, 256, 256\]/,
    ],
  ])('%s are refused by their name in the file', (_, tensors, message) => {
    expect(() => open({ tensors })).toThrow(CheckpointError);
    expect(() => open({ tensors })).toThrow(message);
  });
});
