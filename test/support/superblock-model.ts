import { bf16Bits } from '../../tools/support/bf16.js';
import type { TestTensor, TypedValue } from '../../tools/support/gguf-writer.js';
import { type QuantizedType, randomStored, toHalf } from '../../tools/support/quantized.js';
import { Random } from '../../tools/support/random.js';
import { ggufTensors, writeTinyGguf } from './tiny-checkpoint.js';

const [HIDDEN, INTERMEDIATE, HEAD] = [256, 512, 128];
/** GGML's types, and the random blocks that make them: those of Q3_K are any bytes with a scale. */
const BLOCKS: Readonly<Record<string, QuantizedType>> = {
  Q4_1: 'int4',
  Q8_0: 'int8',
  Q4_K: 'q4_k',
  Q5_K: 'q5_k',
  Q6_K: 'q6_k',
  Q5_0: 'q5_0',
  Q5_1: 'q5_1',
  IQ4_NL: 'iq4_nl',
  IQ4_XS: 'iq4_xs',
  MXFP4: 'mxfp4',
};

/** Types of a layer's matrices: a file of Q4_K_M has two kinds of layers, and in some files there are others. */
export interface LayerTypes {
  q: string;
  k: string;
  v: string;
  o: string;
  gate: string;
  up: string;
  down: string;
}
export const LIKE_Q4_K_M: readonly LayerTypes[] = [
  { q: 'Q4_K', k: 'Q4_K', v: 'Q6_K', o: 'Q4_K', gate: 'Q4_K', up: 'Q4_K', down: 'Q6_K' },
  { q: 'Q4_K', k: 'Q4_K', v: 'Q4_K', o: 'Q4_K', gate: 'Q4_K', up: 'Q4_K', down: 'Q4_K' },
];
export const OF_MANY_TYPES: readonly LayerTypes[] = [
  { q: 'Q4_K', k: 'Q5_K', v: 'Q6_K', o: 'Q8_0', gate: 'Q5_K', up: 'Q5_K', down: 'Q3_K' },
  { q: 'Q8_0', k: 'Q4_K', v: 'Q4_1', o: 'Q5_K', gate: 'Q6_K', up: 'Q4_K', down: 'Q5_K' },
];
export const OF_GROUPS_AND_TABLES: readonly LayerTypes[] = [
  { q: 'Q5_0', k: 'Q5_1', v: 'Q8_0', o: 'Q5_0', gate: 'Q5_1', up: 'IQ4_NL', down: 'IQ4_NL' },
  { q: 'IQ4_XS', k: 'IQ4_NL', v: 'MXFP4', o: 'MXFP4', gate: 'IQ4_XS', up: 'IQ4_XS', down: 'Q5_0' },
];

export const OF_GRIDS: readonly LayerTypes[] = [
  { q: 'IQ2_XXS', k: 'IQ2_XS', v: 'TQ2_0', o: 'IQ2_S', gate: 'IQ3_XXS', up: 'IQ3_S', down: 'NVFP4' },
  { q: 'IQ1_S', k: 'TQ1_0', v: 'IQ1_M', o: 'NVFP4', gate: 'TQ2_0', up: 'TQ1_0', down: 'IQ2_XXS' },
];

/** As dynamic files (UD) have it: each matrix in the type that was measured to suit it, some with kernels and some without. */
export const DYNAMIC: readonly LayerTypes[] = [
  { q: 'Q5_K', k: 'Q8_0', v: 'Q8_0', o: 'IQ4_XS', gate: 'IQ2_XXS', up: 'IQ3_XXS', down: 'Q4_K' },
  { q: 'IQ4_XS', k: 'Q6_K', v: 'Q5_K', o: 'Q4_K', gate: 'IQ2_XXS', up: 'IQ2_XXS', down: 'IQ3_S' },
];

/** Bytes of a block of 256 and of 64, and the place of its scale (f16, of weights about a hundredth); null: it has another form. */
const RANDOM_BLOCKS: Readonly<
  Record<string, { elements: number; bytes: number; scaleAt: number | null; scale: number }>
> = {
  Q3_K: { elements: 256, bytes: 110, scaleAt: 108, scale: 0x06 },
  IQ1_S: { elements: 256, bytes: 50, scaleAt: 0, scale: 0x18 },
  IQ1_M: { elements: 256, bytes: 56, scaleAt: null, scale: 0 },
  IQ2_XXS: { elements: 256, bytes: 66, scaleAt: 0, scale: 0x0c },
  IQ2_XS: { elements: 256, bytes: 74, scaleAt: 0, scale: 0x0c },
  IQ2_S: { elements: 256, bytes: 82, scaleAt: 0, scale: 0x0c },
  IQ3_XXS: { elements: 256, bytes: 98, scaleAt: 0, scale: 0x0a },
  IQ3_S: { elements: 256, bytes: 110, scaleAt: 0, scale: 0x0c },
  TQ1_0: { elements: 256, bytes: 54, scaleAt: 52, scale: 0x24 },
  TQ2_0: { elements: 256, bytes: 66, scaleAt: 64, scale: 0x24 },
  NVFP4: { elements: 64, bytes: 36, scaleAt: null, scale: 0 },
};

/** Layers with all matrices in one type. */
export const ofOneType = (type: string): readonly LayerTypes[] => [
  { q: type, k: type, v: type, o: type, gate: type, up: type, down: type },
  { q: type, k: type, v: type, o: type, gate: type, up: type, down: type },
];

/** Writes a GGUF, or its parts, of two layers and widths that superblocks need, with random weights in the types of the layers. */
export function writeSuperblockModel(
  file: string,
  layers: readonly LayerTypes[],
  embedding = 'Q6_K',
  parts = 1,
): string {
  const random = new Random(31);
  const matrix = (name: string, type: string, rows: number, columns: number): TestTensor => ({
    name,
    shape: [rows, columns],
    type,
    data: randomMatrix(type, rows, columns, random),
  });
  const norm = (name: string): TestTensor => ({
    name,
    shape: [HIDDEN],
    data: new Uint8Array(Float32Array.from({ length: HIDDEN }, () => 1 + 0.1 * random.normal()).buffer),
  });
  const tensors = [
    matrix('model.embed_tokens.weight', embedding, 6, HIDDEN),
    norm('model.norm.weight'),
    ...layers.flatMap((types, layer) => {
      const prefix = `model.layers.${layer}`;
      return [
        norm(`${prefix}.input_layernorm.weight`),
        matrix(`${prefix}.self_attn.q_proj.weight`, types.q, 2 * HEAD, HIDDEN),
        matrix(`${prefix}.self_attn.k_proj.weight`, types.k, HEAD, HIDDEN),
        matrix(`${prefix}.self_attn.v_proj.weight`, types.v, HEAD, HIDDEN),
        matrix(`${prefix}.self_attn.o_proj.weight`, types.o, HIDDEN, 2 * HEAD),
        norm(`${prefix}.post_attention_layernorm.weight`),
        matrix(`${prefix}.mlp.gate_proj.weight`, types.gate, INTERMEDIATE, HIDDEN),
        matrix(`${prefix}.mlp.up_proj.weight`, types.up, INTERMEDIATE, HIDDEN),
        matrix(`${prefix}.mlp.down_proj.weight`, types.down, HIDDEN, INTERMEDIATE),
      ];
    }),
  ];
  const u32 = (value: number): TypedValue => ({ type: 'u32', value });
  return writeTinyGguf(file, {
    metadata: { 'llama.embedding_length': u32(HIDDEN), 'llama.feed_forward_length': u32(INTERMEDIATE) },
    tensors: ggufTensors(tensors),
    parts,
  });
}

/** Bytes of random rows in a type. */
export function randomMatrix(type: string, rows: number, columns: number, random: Random): Uint8Array {
  const spread = 2 / Math.sqrt(columns);
  const made = BLOCKS[type];
  if (made !== undefined) return randomStored(made, rows, columns, () => random.uniform(), spread);
  if (type === 'F32' || type === 'F16' || type === 'BF16') {
    const values = Float32Array.from({ length: rows * columns }, () => spread * (random.uniform() - 0.5));
    if (type === 'F32') return new Uint8Array(values.buffer);
    const halves = Uint16Array.from(values, (value) => (type === 'F16' ? toHalf(value) : bf16Bits(value)));
    return new Uint8Array(halves.buffer);
  }
  if (type === 'Q4_0') {
    const data = Uint8Array.from({ length: ((rows * columns) / 32) * 18 }, () => random.below(256));
    for (let at = 0; at < data.length; at += 18) data.set([random.below(256), 0x14], at);
    return data;
  }
  const { elements, bytes, scaleAt, scale } = RANDOM_BLOCKS[type]!;
  const data = Uint8Array.from({ length: ((rows * columns) / elements) * bytes }, () => random.below(256));
  for (let at = 0; at < data.length; at += bytes) {
    if (scaleAt !== null) data.set([random.below(256), scale], at + scaleAt);
    // The scale of IQ1_M is in the upper nibbles of four numbers, and NVFP4 has one of 8 bits for each group.
    if (type === 'IQ1_M')
      for (const [i, digit] of [1, 2, 3, 1].entries())
        data[at + 49 + 2 * i] = (data[at + 49 + 2 * i]! & 15) | (digit << 4);
    if (type === 'NVFP4') data.set([0x08, 0x09, 0x0a, 0x0b], at);
    // A file has no quant of 3.
    if (type === 'TQ2_0')
      for (let i = 0; i < 64; i++) data[at + i]! &= ~((data[at + i]! & (data[at + i]! >> 1) & 0x55) * 2);
  }
  return data;
}
