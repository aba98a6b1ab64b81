import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { openCheckpoint } from '../../../models/checkpoints/open-checkpoint.js';
import type { TestTensor } from '../../../tools/support/gguf-writer.js';
import { Random } from '../../../tools/support/random.js';
import { safetensorsBytes } from '../../../tools/support/safetensors-writer.js';
import { TestEngines } from '../../../tools/support/test-engine.js';
import { freshFolders } from '../../support/fresh-folders.js';
import {
  MADE_GGUFS,
  MADE_MODELS,
  numbers,
  writeMadeGguf,
  writeMadeModel,
} from '../../support/made-models.js';

const fresh = freshFolders('skein-gptoss');
const engines = new TestEngines();
afterAll(() => engines.remove());

const HIDDEN = 64;
const WIDTH = 32;
const EXPERTS = 3;

/** A gpt-oss of one layer, whose rows are whole groups of MXFP4. */
const MADE = (() => {
  const made = structuredClone(MADE_MODELS.find(({ name }) => name === 'gpt-oss')!);
  Object.assign(made.config, {
    hidden_size: HIDDEN,
    intermediate_size: WIDTH,
    num_local_experts: EXPERTS,
    num_hidden_layers: 1,
    layer_types: ['sliding_attention'],
  });
  const sizes = new Map([
    [32, HIDDEN],
    [48, 2 * WIDTH],
    [24, WIDTH],
    [5, EXPERTS],
  ]);
  // Heads are as many as before: of their products the other side alone is as wide as a row.
  const resized = (name: string, shape: number[]) =>
    /[kv]_proj/.test(name)
      ? [32, ...shape.slice(1).map(() => HIDDEN)]
      : shape.map((size) => sizes.get(size) ?? size);
  made.tensors = made.tensors
    .filter(([name]) => !/layers\.[12]\./.test(name))
    .map(([name, shape, ...rest]) => [name, resized(name, shape), ...rest]);
  return made;
})();

/** As transformers' convert_moe_packed_tensors has them. */
const E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0, -0.5, -1, -1.5, -2, -3, -4, -6];

/** Random matrices of experts [experts, rows, columns] in MXFP4, and their numbers turned, as plain files have them. */
function packed(name: string, rows: number, columns: number): { mxfp4: TestTensor[]; plain: TestTensor } {
  const random = new Random(rows);
  const groups = columns / 32;
  const blocks = new Uint8Array((EXPERTS * rows * columns) / 2);
  const scales = new Uint8Array(EXPERTS * rows * groups);
  const plain = new Float32Array(EXPERTS * rows * columns);
  for (const [i] of scales.entries()) scales[i] = 118 + random.below(6);
  for (let i = 0; i < plain.length; i++) {
    // The zero with a sign is left out: a block of MXFP4 that is kept has none.
    const code = [...E2M1.keys()].filter((one) => one !== 8)[random.below(15)]!;
    blocks[i >> 1]! |= code << (4 * (i & 1));
    const [expert, row, column] = [
      Math.floor(i / (rows * columns)),
      Math.floor(i / columns) % rows,
      i % columns,
    ];
    plain[(expert * columns + column) * rows + row] = E2M1[code]! * 2 ** (scales[Math.floor(i / 32)]! - 127);
  }
  return {
    mxfp4: [
      { name: `${name}_blocks`, shape: [EXPERTS, rows, groups, 16], type: 'U8', data: blocks },
      { name: `${name}_scales`, shape: [EXPERTS, rows, groups], type: 'U8', data: scales },
    ],
    plain: { name, shape: [EXPERTS, columns, rows], data: new Uint8Array(plain.buffer) },
  };
}

const IN_EXPERTS = 'model.layers.0.mlp.experts';
const GATE_UP = packed(`${IN_EXPERTS}.gate_up_proj`, 2 * WIDTH, HIDDEN);
const DOWN = packed(`${IN_EXPERTS}.down_proj`, HIDDEN, WIDTH);
const MXFP4 = { quantization_config: { quant_method: 'mxfp4' } };

/** Writes the model with these tensors of experts. @param change changes its tensors */
function write(
  experts: TestTensor[],
  config: object = {},
  change: (tensors: Map<string, TestTensor>) => void = () => {},
): string {
  const folder = writeMadeModel(fresh(), MADE);
  const others = MADE.tensors
    .filter(([name]) => !/experts\.(gate_up|down)_proj$/.test(name))
    .map(([name, shape, mean, spread]): TestTensor => {
      return { name, shape, data: new Uint8Array(numbers(name, shape, mean, spread).buffer) };
    });
  const tensors = new Map([...others, ...experts].map((tensor) => [tensor.name, tensor]));
  change(tensors);
  writeFileSync(join(folder, 'model.safetensors'), safetensorsBytes([...tensors.values()]));
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...MADE.config, ...config }));
  return folder;
}

const writeMxfp4 = (change?: (tensors: Map<string, TestTensor>) => void, config: object = {}) =>
  write([...GATE_UP.mxfp4, ...DOWN.mxfp4], { ...MXFP4, ...config }, change);

describe('the experts of a gpt-oss in MXFP4', () => {
  it('have the numbers of plain ones that transformers makes of them, gate and up apart', async () => {
    const plain = await engines.get(write([GATE_UP.plain, DOWN.plain]), 'f32');
    const quantised = await engines.get(writeMxfp4(), 'f32');
    expect(quantised.plan).toEqual(plain.plan);
    expect(readFileSync(quantised.weightsFile).equals(readFileSync(plain.weightsFile))).toBe(true);
    const [own] = plain.manifest.tensors.filter(({ name }) => name === 'layers.0.experts.1.gateUp');
    const bytes = readFileSync(plain.weightsFile).subarray(own!.offset, own!.offset + own!.byteLength);
    const rows = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
    const all = new Float32Array(GATE_UP.plain.data.buffer);
    // Row `output` of an expert's stack is the column that a gate and a way up take turns at.
    for (const output of [0, 1, WIDTH - 1, WIDTH, 2 * WIDTH - 1]) {
      const column = output < WIDTH ? 2 * output : 2 * (output - WIDTH) + 1;
      const expected = Float32Array.from(
        { length: HIDDEN },
        (_, k) => all[(HIDDEN + k) * 2 * WIDTH + column]!,
      );
      expect(rows.subarray(output * HIDDEN, (output + 1) * HIDDEN)).toEqual(expected);
    }
  });

  it('are kept without loss', async () => {
    const { manifest } = await engines.get(writeMxfp4(), 'stored');
    const experts = manifest.tensors.filter(({ name, rows }) => /experts\.\d+\./.test(name) && rows > 1);
    expect(new Set(experts.map(({ dtype }) => dtype))).toEqual(new Set(['mxfp4']));
    expect(experts).toHaveLength(2 * EXPERTS);
  });
});

/** Bytes of some rows of a matrix of each expert as llama.cpp's converter writes them: blocks of an exponent and 32 codes. */
function ggmlBlocks([blocks, scales]: TestTensor[], first: number, step: number): Uint8Array {
  const [experts, rows, groups] = scales!.shape as [number, number, number];
  const bytes: number[] = [];
  for (let expert = 0; expert < experts; expert++)
    for (let row = first; row < rows; row += step)
      for (let group = 0; group < groups; group++) {
        const at = (expert * rows + row) * groups + group;
        const code = (i: number) => (blocks!.data[16 * at + (i >> 1)]! >> (4 * (i & 1))) & 15;
        bytes.push(scales!.data[at]!);
        for (let i = 0; i < 16; i++) bytes.push(code(i) | (code(i + 16) << 4));
      }
  return Uint8Array.from(bytes);
}

function writeMxfp4Gguf(): string {
  const gguf = structuredClone(MADE_GGUFS.find(({ name }) => name === 'gpt-oss')!);
  const sources = new Map(MADE.tensors.map((tensor) => [tensor[0], tensor]));
  const sizes = new Map<string, number>([
    ['block_count', 1],
    ['embedding_length', HIDDEN],
    ['feed_forward_length', WIDTH],
    ['expert_feed_forward_length', WIDTH],
    ['expert_count', EXPERTS],
  ]);
  for (const key of gguf.keys) key[2] = sizes.get(key[0].replace('gpt-oss.', '')) ?? key[2];
  gguf.tensors = gguf.tensors
    .filter(([name]) => !/^blk\.[12]\./.test(name))
    .map(([name, , source, how]) => {
      const own = sources.get(source)![1];
      const taken = own.at(-1)! / (how.columns?.[1] ?? 1);
      const shape = how.columns === undefined ? own : [own[0]!, taken, ...own.slice(1, -1)];
      return [name, shape, source, how];
    });
  const experts = new Map([
    ['blk.0.ffn_gate_exps.weight', ggmlBlocks(GATE_UP.mxfp4, 0, 2)],
    ['blk.0.ffn_up_exps.weight', ggmlBlocks(GATE_UP.mxfp4, 1, 2)],
    ['blk.0.ffn_down_exps.weight', ggmlBlocks(DOWN.mxfp4, 0, 1)],
  ]);
  return writeMadeGguf(join(fresh(), 'gpt-oss.gguf'), sources, gguf, (tensor) => {
    const data = experts.get(tensor.name);
    return data === undefined ? tensor : { ...tensor, type: 'MXFP4', data };
  });
}

it('a GGUF of a gpt-oss has the same experts, kept without loss too', async () => {
  const file = writeMxfp4Gguf();
  const [own, hub] = [await engines.get(file, 'f32'), await engines.get(writeMxfp4(), 'f32')];
  expect(readFileSync(own.weightsFile).equals(readFileSync(hub.weightsFile))).toBe(true);
  const { manifest } = await engines.get(file, 'stored');
  const experts = manifest.tensors.filter(({ name, rows }) => /experts\.\d+\./.test(name) && rows > 1);
  expect(new Set(experts.map(({ dtype }) => dtype))).toEqual(new Set(['mxfp4']));
});

const without = (name: string) => (tensors: Map<string, TestTensor>) => tensors.delete(name);
const shaped = (name: string, shape: number[]) => (tensors: Map<string, TestTensor>) => {
  const data = new Uint8Array(4 * shape.reduce((product, size) => product * size, 1));
  tensors.set(name, { name, shape, data });
};
const SINKS = 'model.layers.0.self_attn.sinks';

describe('a gpt-oss that does not fit together is refused', () => {
  it.each<[string, (tensors: Map<string, TestTensor>) => void, RegExp]>([
    [
      'scales that are missing',
      without(`${IN_EXPERTS}.down_proj_scales`),
      /down_proj_scales is missing, which model\.layers\.0\.mlp\.experts\.down_proj_blocks needs/,
    ],
    [
      'blocks that are missing',
      without(`${IN_EXPERTS}.down_proj_blocks`),
      /down_proj_scales belongs to quantised weights that are not there \(blocks\)/,
    ],
    [
      'blocks of other experts',
      (tensors) => {
        const name = `${IN_EXPERTS}.down_proj_blocks`;
        tensors.set(name, { ...tensors.get(name)!, shape: [1, EXPERTS * HIDDEN, 1, 16] });
        const scales = `${IN_EXPERTS}.down_proj_scales`;
        tensors.set(scales, { ...tensors.get(scales)!, shape: [1, EXPERTS * HIDDEN, 1] });
      },
      /down_proj should have the shape \[3, 64, 32\], found \[1, 192, 32\]/,
    ],
    [
      'a bias of other experts',
      shaped(`${IN_EXPERTS}.gate_up_proj_bias`, [EXPERTS + 1, 2 * WIDTH]),
      /gate_up_proj_bias should have the shape \[3, 64\], found \[4, 64\]/,
    ],
    [
      'a bias of another width',
      shaped(`${IN_EXPERTS}.down_proj_bias`, [EXPERTS, WIDTH]),
      /down_proj_bias should have the shape \[3, 64\], found \[3, 32\]/,
    ],
    [
      'a bias that is missing',
      without(`${IN_EXPERTS}.down_proj_bias`),
      /experts\.0\.down_proj\.bias and 2 more that the configuration calls for is missing/,
    ],
    [
      'scores without values for other heads',
      shaped(SINKS, [5]),
      /tensor model\.layers\.0\.self_attn\.sinks should have the shape \[4\], found \[5\]/,
    ],
    ...[Number.NaN, Number.POSITIVE_INFINITY].map(
      (value): [string, (tensors: Map<string, TestTensor>) => void, RegExp] => [
        `a score without a value that is ${value}`,
        (tensors) => {
          const data = new Uint8Array(Float32Array.of(0, 1, value, 2).buffer);
          tensors.set(SINKS, { name: SINKS, shape: [4], data });
        },
        new RegExp(
          `tensor model\\.layers\\.0\\.self_attn\\.sinks should hold a finite number for each head, found ${value} for head 2\\.$`,
        ),
      ],
    ),
    [
      'one in 16 bits',
      (tensors) =>
        tensors.set(SINKS, {
          name: SINKS,
          shape: [4],
          type: 'BF16',
          data: new Uint8Array(Uint16Array.of(0, 0xff80, 0, 0).buffer),
        }),
      /found -Infinity for head 1\.$/,
    ],
  ])('with %s', (_, change, message) => {
    const folder = writeMxfp4(change);
    expect(() => openCheckpoint(folder)).toThrow(message);
  });

  it.each([
    ['swiglu_limit', 'seven'],
    ['swiglu_limit', 0],
    ['swiglu_alpha', -1],
    ['layer_types', ['chunked_attention']],
    ['num_experts_per_tok', 4],
  ])('with %s %j', (key, value) => {
    const folder = writeMxfp4(undefined, { [key]: value });
    expect(() => openCheckpoint(folder)).toThrow(new RegExp(`config\\.json: ${key} should be `));
  });
});
