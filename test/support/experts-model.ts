import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { type TestTensor, type TypedValue, writeGguf } from '../../tools/support/gguf-writer.js';
import { Random } from '../../tools/support/random.js';
import { randomMatrix } from './superblock-model.js';
import { TINY_GGUF_METADATA } from './tiny-checkpoint.js';

/** Widths that superblocks need, and 4 experts in each layer, of which a token goes to 2. */
export const EXPERTS = { hidden: 256, width: 256, count: 4, used: 2 } as const;
const HEAD = 128;

/** Types of a layer's tensors. */
export interface ExpertTypes {
  attention: string;
  router: string;
  gate: string;
  up: string;
  down: string;
}
/** As llama-quantize makes a Q4_K_M, but for the last layer, whose gate and up differ. */
const EXPERTS_LIKE_Q4_K_M: readonly ExpertTypes[] = [
  { attention: 'Q4_K', router: 'F32', gate: 'Q4_K', up: 'Q4_K', down: 'Q6_K' },
  { attention: 'Q6_K', router: 'F32', gate: 'Q4_K', up: 'Q6_K', down: 'Q4_K' },
];

/** GGUF's general.architecture: llama is Mixtral's. */
export type ExpertsArchitecture = 'qwen3moe' | 'llama';

const drawn = new Map<string, readonly TestTensor[]>();

/**
 * The tensors of a GGUF with random weights, in its names, with all experts of a layer in one tensor. They are drawn once, which takes
 * longer than all that a test does with them: their bytes are shared, and not to be changed.
 */
export function expertsTensors(
  architecture: ExpertsArchitecture = 'qwen3moe',
  layers: readonly ExpertTypes[] = EXPERTS_LIKE_Q4_K_M,
): readonly TestTensor[] {
  const key = JSON.stringify([architecture, layers]);
  const tensors = drawn.get(key) ?? drawTensors(architecture, layers);
  drawn.set(key, tensors);
  return tensors;
}

function drawTensors(architecture: ExpertsArchitecture, layers: readonly ExpertTypes[]): TestTensor[] {
  const random = new Random(37);
  const { hidden, width, count } = EXPERTS;
  const matrix = (name: string, type: string, ...shape: number[]): TestTensor => {
    const columns = shape.at(-1)!;
    const rows = shape.slice(0, -1).reduce((product, size) => product * size, 1);
    return { name: `${name}.weight`, shape, type, data: randomMatrix(type, rows, columns, random) };
  };
  const norm = (name: string, length: number): TestTensor => {
    const scales = Float32Array.from({ length }, () => 1 + 0.1 * random.normal());
    return { name: `${name}.weight`, shape: [length], data: new Uint8Array(scales.buffer) };
  };
  return [
    matrix('token_embd', 'Q6_K', 6, hidden),
    norm('output_norm', hidden),
    ...layers.flatMap(({ attention, router, gate, up, down }, layer) => {
      const blk = `blk.${layer}`;
      return [
        norm(`${blk}.attn_norm`, hidden),
        matrix(`${blk}.attn_q`, attention, 2 * HEAD, hidden),
        matrix(`${blk}.attn_k`, attention, HEAD, hidden),
        matrix(`${blk}.attn_v`, attention, HEAD, hidden),
        matrix(`${blk}.attn_output`, attention, hidden, 2 * HEAD),
        ...(architecture === 'qwen3moe'
          ? [norm(`${blk}.attn_q_norm`, HEAD), norm(`${blk}.attn_k_norm`, HEAD)]
          : []),
        norm(`${blk}.ffn_norm`, hidden),
        matrix(`${blk}.ffn_gate_inp`, router, count, hidden),
        matrix(`${blk}.ffn_gate_exps`, gate, count, width, hidden),
        matrix(`${blk}.ffn_up_exps`, up, count, width, hidden),
        matrix(`${blk}.ffn_down_exps`, down, count, hidden, width),
      ];
    }),
  ];
}

/** The same with a tensor for each expert, as files of Mixtral had them at first. */
export function tensorsByExpert(tensors: readonly TestTensor[]): TestTensor[] {
  return tensors.flatMap((tensor) => {
    const { name, shape, data } = tensor;
    const stem = /^(.*)_exps\.weight$/.exec(name)?.[1];
    if (stem === undefined) return [tensor];
    const [count, ...own] = shape as [number, number, number];
    const bytes = data.length / count;
    return Array.from({ length: count }, (_, expert) => ({
      ...tensor,
      name: `${stem}.${expert}.weight`,
      shape: own,
      data: data.subarray(expert * bytes, (expert + 1) * bytes),
    }));
  });
}

export interface ExpertsChange {
  architecture?: ExpertsArchitecture;
  /** Keys after the architecture's name; null: the key is left out. */
  metadata?: Record<string, TypedValue | null>;
  tensors?: readonly TestTensor[];
}

/** Writes such a GGUF. @returns its path */
export function writeExpertsGguf(file: string, change: ExpertsChange = {}): string {
  const { architecture = 'qwen3moe', tensors = expertsTensors(architecture) } = change;
  const u32 = (value: number): TypedValue => ({ type: 'u32', value });
  const own: Record<string, TypedValue | null> = {
    embedding_length: u32(EXPERTS.hidden),
    feed_forward_length: u32(architecture === 'llama' ? EXPERTS.width : 3 * EXPERTS.width),
    expert_count: u32(EXPERTS.count),
    expert_used_count: u32(EXPERTS.used),
    ...(architecture === 'llama' ? {} : { expert_feed_forward_length: u32(EXPERTS.width) }),
    ...change.metadata,
  };
  const tiny = Object.entries(TINY_GGUF_METADATA).map(
    ([key, value]) => [key.replace(/^llama\./, `${architecture}.`), value] as const,
  );
  const metadata = new Map<string, TypedValue | null>([
    ...tiny,
    ['general.architecture', { type: 'string', value: architecture }],
    ...Object.entries(own).map(([key, value]) => [`${architecture}.${key}`, value] as const),
  ]);
  const given = [...metadata].filter((entry): entry is [string, TypedValue] => entry[1] !== null);
  mkdirSync(dirname(file), { recursive: true });
  writeGguf(file, Object.fromEntries(given), tensors);
  return file;
}
