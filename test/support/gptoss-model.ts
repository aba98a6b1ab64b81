import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestTensor } from '../../tools/support/gguf-writer.js';
import { Random } from '../../tools/support/random.js';
import { safetensorsBytes } from '../../tools/support/safetensors-writer.js';
import { MADE_GGUFS, MADE_MODELS, numbers, writeMadeGguf, writeMadeModel } from './made-models.js';

export const HIDDEN = 64;
export const WIDTH = 32;
export const EXPERTS = 3;

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

export const IN_EXPERTS = 'model.layers.0.mlp.experts';
export const GATE_UP = packed(`${IN_EXPERTS}.gate_up_proj`, 2 * WIDTH, HIDDEN);
export const DOWN = packed(`${IN_EXPERTS}.down_proj`, HIDDEN, WIDTH);
const MXFP4 = { quantization_config: { quant_method: 'mxfp4' } };

/** Changes the tensors of a model before it is written. */
export type ChangeTensors = (tensors: Map<string, TestTensor>) => void;

/** Writes the model with these tensors of experts into a folder. */
export function writeGptOss(
  folder: string,
  experts: TestTensor[],
  config: object = {},
  change: ChangeTensors = () => {},
): string {
  writeMadeModel(folder, MADE);
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

/** The same with its experts in MXFP4, as it is published. */
export const writeMxfp4 = (folder: string, change?: ChangeTensors, config: object = {}) =>
  writeGptOss(folder, [...GATE_UP.mxfp4, ...DOWN.mxfp4], { ...MXFP4, ...config }, change);

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

/** The model as llama.cpp's converter writes it. @param change changes the blocks of its experts by the names of their tensors */
export function writeMxfp4Gguf(
  file: string,
  change: (experts: Map<string, Uint8Array>) => void = () => {},
): string {
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
  change(experts);
  return writeMadeGguf(file, sources, gguf, (tensor) => {
    const data = experts.get(tensor.name);
    return data === undefined ? tensor : { ...tensor, type: 'MXFP4', data };
  });
}
