import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestTensor, TypedValue } from '../../tools/support/gguf-writer.js';
import { writeGguf, writeGgufParts } from '../../tools/support/gguf-writer.js';
import { safetensorsBytes } from '../../tools/support/safetensors-writer.js';

/** A Llama of a few hundred weights: 2 layers, 2 heads over 1 KV head of 4 dimensions, tied output. */
export const TINY_CONFIG = {
  architectures: ['LlamaForCausalLM'],
  vocab_size: 6,
  hidden_size: 8,
  intermediate_size: 10,
  num_hidden_layers: 2,
  num_attention_heads: 2,
  num_key_value_heads: 1,
  max_position_embeddings: 32,
  rms_norm_eps: 1e-5,
  rope_theta: 10_000,
  tie_word_embeddings: true,
  bos_token_id: 1,
  eos_token_id: 2,
};

export const TINY_TOKENIZER = {
  version: '1.0',
  added_tokens: [{ id: 0, content: '<pad>', special: true }],
  model: { type: 'BPE', vocab: { '<pad>': 0, '<s>': 1, '</s>': 2, a: 3, b: 4, ab: 5 }, merges: ['a b'] },
};

/** Hugging Face names and shapes of the tiny model's tensors. */
export const TINY_SHAPES: Readonly<Record<string, number[]>> = {
  'model.embed_tokens.weight': [6, 8],
  ...Object.fromEntries(
    [0, 1].flatMap((layer) => {
      const prefix = `model.layers.${layer}`;
      return [
        [`${prefix}.input_layernorm.weight`, [8]],
        [`${prefix}.self_attn.q_proj.weight`, [8, 8]],
        [`${prefix}.self_attn.k_proj.weight`, [4, 8]],
        [`${prefix}.self_attn.v_proj.weight`, [4, 8]],
        [`${prefix}.self_attn.o_proj.weight`, [8, 8]],
        [`${prefix}.post_attention_layernorm.weight`, [8]],
        [`${prefix}.mlp.gate_proj.weight`, [10, 8]],
        [`${prefix}.mlp.up_proj.weight`, [10, 8]],
        [`${prefix}.mlp.down_proj.weight`, [8, 10]],
      ] as [string, number[]][];
    }),
  ),
  'model.norm.weight': [8],
};

/** Values that distinguish tensors and places, and that bf16 holds exactly. */
export function tinyValues(name: string): Float32Array {
  const at = Object.keys(TINY_SHAPES).indexOf(name);
  const length = TINY_SHAPES[name]!.reduce((product, dimension) => product * dimension, 1);
  return Float32Array.from({ length }, (_, i) => (at - 10) * 16 + (i % 16));
}

export function tinyTensors(): TestTensor[] {
  return Object.entries(TINY_SHAPES).map(([name, shape]) => ({
    name,
    shape,
    data: new Uint8Array(tinyValues(name).buffer),
  }));
}

/** A folder with config.json, tokenizer.json and model.safetensors. */
export function writeTinyModel(
  directory: string,
  change: { config?: object; tensors?: readonly TestTensor[] } = {},
): string {
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'config.json'), JSON.stringify({ ...TINY_CONFIG, ...change.config }));
  writeFileSync(join(directory, 'tokenizer.json'), JSON.stringify(TINY_TOKENIZER));
  writeFileSync(join(directory, 'model.safetensors'), safetensorsBytes(change.tensors ?? tinyTensors()));
  return directory;
}

export const TINY_GGUF_METADATA: Readonly<Record<string, TypedValue>> = {
  'general.architecture': { type: 'string', value: 'llama' },
  'llama.block_count': { type: 'u32', value: 2 },
  'llama.context_length': { type: 'u32', value: 32 },
  'llama.embedding_length': { type: 'u32', value: 8 },
  'llama.feed_forward_length': { type: 'u32', value: 10 },
  'llama.attention.head_count': { type: 'u32', value: 2 },
  'llama.attention.head_count_kv': { type: 'u32', value: 1 },
  'llama.attention.layer_norm_rms_epsilon': { type: 'f32', value: 1e-5 },
  'llama.rope.freq_base': { type: 'f32', value: 10_000 },
  'tokenizer.ggml.model': { type: 'string', value: 'gpt2' },
  'tokenizer.ggml.pre': { type: 'string', value: 'smollm' },
  'tokenizer.ggml.tokens': { type: 'array', of: 'string', value: ['<pad>', '<s>', '</s>', 'a', 'b', 'ab'] },
  'tokenizer.ggml.token_type': { type: 'array', of: 'i32', value: [3, 3, 3, 1, 1, 1] },
  'tokenizer.ggml.merges': { type: 'array', of: 'string', value: ['a b'] },
  'tokenizer.ggml.bos_token_id': { type: 'u32', value: 1 },
  'tokenizer.ggml.eos_token_id': { type: 'u32', value: 2 },
  'tokenizer.chat_template': { type: 'string', value: '{{ messages[0].content }}' },
};

const GGUF_STEMS: readonly (readonly [RegExp, string])[] = [
  [/^model\.embed_tokens/, 'token_embd'],
  [/^model\.norm/, 'output_norm'],
  [/^lm_head/, 'output'],
  [/^model\.layers\.(\d+)\.input_layernorm/, 'blk.$1.attn_norm'],
  [/^model\.layers\.(\d+)\.self_attn\.([qkv])_proj/, 'blk.$1.attn_$2'],
  [/^model\.layers\.(\d+)\.self_attn\.o_proj/, 'blk.$1.attn_output'],
  [/^model\.layers\.(\d+)\.post_attention_layernorm/, 'blk.$1.ffn_norm'],
  [/^model\.layers\.(\d+)\.mlp\.(gate|up|down)_proj/, 'blk.$1.ffn_$2'],
];

/** The tensors as llama.cpp's converter writes them: its names, and the rows of q and k interleaved in each head. */
export function ggufTensors(tensors: readonly TestTensor[] = tinyTensors()): TestTensor[] {
  return tensors.map((tensor) => {
    const [pattern, stem] = GGUF_STEMS.find(([candidate]) => candidate.test(tensor.name))!;
    const heads = /\.q_proj/.test(tensor.name) ? 2 : /\.k_proj/.test(tensor.name) ? 1 : 0;
    const data = heads === 0 ? tensor.data : interleave(tensor.data, tensor.shape[0]!, heads);
    return { ...tensor, name: tensor.name.replace(pattern, stem), data };
  });
}

/** Halves of each head's rows (0 1 | 2 3) become pairs (0 2 1 3). */
export function interleave(data: Uint8Array, rows: number, heads: number): Uint8Array {
  const rowBytes = data.length / rows;
  const half = rows / heads / 2;
  const result = new Uint8Array(data.length);
  for (let row = 0; row < rows; row++) {
    const head = Math.floor(row / (2 * half));
    const inside = row % (2 * half);
    const to = head * 2 * half + 2 * (inside % half) + Math.floor(inside / half);
    result.set(data.subarray(row * rowBytes, (row + 1) * rowBytes), to * rowBytes);
  }
  return result;
}

export function writeTinyGguf(
  file: string,
  change: {
    metadata?: Record<string, TypedValue | null>;
    tensors?: readonly TestTensor[];
    parts?: number;
  } = {},
): string {
  const entries = Object.entries({ ...TINY_GGUF_METADATA, ...change.metadata });
  const metadata = Object.fromEntries(entries.filter(([, value]) => value !== null)) as Record<
    string,
    TypedValue
  >;
  const tensors = change.tensors ?? ggufTensors();
  const { parts = 1 } = change;
  if (parts > 1) return writeGgufParts(file.replace(/\.gguf$/, ''), metadata, tensors, parts);
  writeGguf(file, metadata, tensors);
  return file;
}

/** The tiny model's configuration as openCheckpoint returns it. */
export const TINY_MODEL_CONFIG = {
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
  slidingWindow: null,
  rope: { theta: 10_000, rotaryDim: 4, scaling: { type: 'none' } },
  bosTokenId: 1,
  eosTokenIds: [2],
  padTokenId: null,
};
