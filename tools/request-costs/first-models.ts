import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { safetensorsBytes } from '../support/safetensors-writer.js';

/** The rank that --max-lora-rank takes at most by default. */
const RANK = 64;
/** What is read of a model's config.json. */
interface Sizes {
  hidden_size: number;
  intermediate_size: number;
  num_hidden_layers: number;
  num_attention_heads: number;
  num_key_value_heads: number;
  head_dim: number;
  vocab_size: number;
}

/** A tensor in float32 whose elements all have one value. */
interface FlatTensor {
  name: string;
  shape: readonly number[];
  value: number;
}

/**
 * A tiny model with a large tokenizer, which continues from that of another model. Each number is another
 * one, so that an engine is built for it. @param numTexts texts of its vocabulary
 */
export function writeLateModel(model: string, folder: string, number: number, numTexts: number): void {
  mkdirSync(folder, { recursive: true });
  for (const name of ['tokenizer_config.json', 'generation_config.json'])
    cpSync(join(model, name), join(folder, name));
  const heads = { num_attention_heads: 1, num_key_value_heads: 1, head_dim: 32 };
  const sizes = { ...heads, hidden_size: 32, intermediate_size: 32, num_hidden_layers: 1 };
  const config: Sizes = { ...readJson(join(model, 'config.json')), ...sizes, vocab_size: numTexts };
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  const tokenizer = readJson(join(model, 'tokenizer.json'));
  addTexts(tokenizer.model, number, numTexts);
  writeFileSync(join(folder, 'tokenizer.json'), JSON.stringify(tokenizer));
  const { hidden_size: hidden } = config;
  const norms = ['layers.0.input_layernorm', 'layers.0.post_attention_layernorm', 'norm'];
  writeTensors(join(folder, 'model.safetensors'), [
    { name: 'model.embed_tokens.weight', shape: [numTexts, hidden], value: 0 },
    ...norms.map((name) => ({ name: `model.${name}.weight`, shape: [hidden], value: 1 })),
    ...Object.entries(matricesOf(config)).map(([name, [from, to]]) => {
      return { name: `model.layers.0.${name}.weight`, shape: [to, from], value: 0 };
    }),
  ]);
}

/** A tiny classifier with many labels, with the tokenizer of another encoder. */
export function writeClassifier(encoder: string, folder: string, numLabels: number): string {
  mkdirSync(folder, { recursive: true });
  for (const name of ['tokenizer.json', 'tokenizer_config.json'])
    cpSync(join(encoder, name), join(folder, name));
  const config = readJson(join(encoder, 'config.json'));
  const { hidden_size: width, intermediate_size: inner, vocab_size: vocabulary } = config;
  const id2label = Object.fromEntries(Array.from({ length: numLabels }, (_, i) => [i, `label ${i}`]));
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...config, num_hidden_layers: 1, id2label }));
  const embeddings = [
    ['word', vocabulary],
    ['position', config.max_position_embeddings],
    ['token_type', config.type_vocab_size],
  ] as const;
  const layer = 'bert.encoder.layer.0';
  const layers: [string, number, number][] = [
    ...['query', 'key', 'value'].map((of): [string, number, number] => [
      `${layer}.attention.self.${of}`,
      width,
      width,
    ]),
    [`${layer}.attention.output.dense`, width, width],
    [`${layer}.intermediate.dense`, inner, width],
    [`${layer}.output.dense`, width, inner],
    ['bert.pooler.dense', width, width],
    ['classifier', numLabels, width],
  ];
  const norms = ['bert.embeddings', `${layer}.attention.output`, `${layer}.output`];
  writeTensors(join(folder, 'model.safetensors'), [
    ...embeddings.map(([name, rows]) => {
      return { name: `bert.embeddings.${name}_embeddings.weight`, shape: [rows, width], value: 0.5 };
    }),
    ...norms.flatMap((name) =>
      ['weight', 'bias'].map((part) => ({ name: `${name}.LayerNorm.${part}`, shape: [width], value: 1 })),
    ),
    ...layers.flatMap(([name, rows, columns]) => [
      { name: `${name}.weight`, shape: [rows, columns], value: 0.01 },
      { name: `${name}.bias`, shape: [rows], value: 0.01 },
    ]),
  ]);
  return folder;
}

/** A copy of a tiny encoder that also gives each token a weight, and a vector of this width. */
export function writeTokenModel(encoder: string, folder: string, width: number): string {
  cpSync(encoder, folder, { recursive: true });
  const { hidden_size: hidden } = readJson(join(encoder, 'config.json')) as Sizes;
  for (const [layer, rows] of [['colbert_linear', width] as const, ['sparse_linear', 1] as const]) {
    writeTensors(join(folder, `${layer}.safetensors`), [
      { name: 'weight', shape: [rows, hidden], value: 0.1 },
      { name: 'bias', shape: [rows], value: 0.1 },
    ]);
  }
  return folder;
}

/** An adapter of a model's every matrix, of the highest rank. Each number is another one. */
export function writeLargeAdapter(model: string, folder: string, number: number): void {
  mkdirSync(folder, { recursive: true });
  const config: Sizes = readJson(join(model, 'config.json'));
  const matrices = Object.entries(matricesOf(config));
  const modules = matrices.map(([name]) => name.split('.')[1]);
  const ofAdapter = { peft_type: 'LORA', r: RANK, lora_alpha: RANK, target_modules: modules };
  writeFileSync(join(folder, 'adapter_config.json'), JSON.stringify(ofAdapter));
  const layers = Array.from({ length: config.num_hidden_layers }, (_, layer) => layer);
  const tensors = layers.flatMap((layer) =>
    matrices.flatMap(([matrix, [from, to]]): FlatTensor[] => {
      const name = `base_model.model.model.layers.${layer}.${matrix}`;
      return [
        { name: `${name}.lora_A.weight`, shape: [RANK, from], value: number / 1000 },
        { name: `${name}.lora_B.weight`, shape: [to, RANK], value: 0 },
      ];
    }),
  );
  writeTensors(join(folder, 'adapter_model.safetensors'), tensors);
}

/** Merges pairs of a BPE's texts until its vocabulary has as many. @param number the pairs begin with this text */
function addTexts(
  bpe: { vocab: Record<string, number>; merges: [string, string][] },
  number: number,
  numTexts: number,
): void {
  const texts = Object.keys(bpe.vocab);
  let size = texts.length;
  for (let i = number; size < numTexts; i++) {
    for (const right of texts) {
      const left = texts[i % texts.length]!;
      if (size === numTexts || left + right in bpe.vocab) continue;
      bpe.vocab[left + right] = size++;
      bpe.merges.push([left, right]);
    }
  }
}

/** Inputs and outputs of a layer's matrices by name. */
function matricesOf({ hidden_size: hidden, intermediate_size: inner, ...heads }: Sizes) {
  const queries = heads.num_attention_heads * heads.head_dim;
  const keys = heads.num_key_value_heads * heads.head_dim;
  return {
    'self_attn.q_proj': [hidden, queries],
    'self_attn.k_proj': [hidden, keys],
    'self_attn.v_proj': [hidden, keys],
    'self_attn.o_proj': [queries, hidden],
    'mlp.gate_proj': [hidden, inner],
    'mlp.up_proj': [hidden, inner],
    'mlp.down_proj': [inner, hidden],
  } as const;
}

function writeTensors(file: string, tensors: readonly FlatTensor[]): void {
  const written = tensors.map(({ name, shape, value }) => {
    const numElements = shape.reduce((product, size) => product * size, 1);
    return { name, shape, data: new Uint8Array(new Float32Array(numElements).fill(value).buffer) };
  });
  writeFileSync(file, safetensorsBytes(written));
}

// biome-ignore lint/suspicious/noExplicitAny: the demo model's own files
const readJson = (file: string): any => JSON.parse(readFileSync(file, 'utf8'));
