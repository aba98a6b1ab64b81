import { closeSync, mkdirSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { ModelShape } from '../../compare/shape/model-shapes.js';
import { Random } from '../../support/random.js';
import { type FormTensor, type MatrixForm, normals } from './matrix-forms.js';

/** Random bytes that all codes are cut from. */
const POOL_BYTES = 4 << 20;
const BITS_16 = 2;
const TYPE_BYTES: Readonly<Record<string, number>> = { BF16: BITS_16, F16: BITS_16, I32: 4, I64: 8, F32: 4 };
const ONE = Uint8Array.of(0x80, 0x3f);
/** A tokenizer of two tokens: what is measured gets ids. */
const TOKENIZER = {
  version: '1.0',
  added_tokens: [{ id: 0, content: '<pad>', special: true }],
  model: { type: 'BPE', vocab: { '<pad>': 0, a: 1 }, merges: [] },
};

/**
 * Writes a folder of safetensors of a shape of the architecture llama, whose matrices are random in the given form; embedding and norms
 * are bf16. @returns bytes of the file
 */
export function writeRandomSafetensors(folder: string, shape: ModelShape, form: MatrixForm): number {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'config.json'), JSON.stringify(configOf(shape, form)));
  writeFileSync(join(folder, 'tokenizer.json'), JSON.stringify(TOKENIZER));
  const tensors = tensorsOf(shape, form);
  const header: Record<string, unknown> = { __metadata__: { format: 'pt' } };
  let offset = 0;
  for (const { name, type, shape: sizes } of tensors) {
    const end = offset + bytesOf(type, sizes);
    header[name] = { dtype: type, shape: sizes, data_offsets: [offset, end] };
    offset = end;
  }
  const text = Buffer.from(JSON.stringify(header));
  const prefix = Buffer.alloc(8);
  prefix.writeBigUInt64LE(BigInt(text.length));
  const descriptor = openSync(join(folder, 'model.safetensors'), 'w');
  try {
    for (const bytes of [prefix, text]) writeAll(descriptor, bytes);
    const codes = randomCodes();
    for (const tensor of tensors) {
      const source = tensor.fill === 'codes' ? codes : repeated(tensor.fill);
      let left = bytesOf(tensor.type, tensor.shape);
      for (; left > 0; left -= source.length)
        writeAll(descriptor, source.subarray(0, Math.min(left, source.length)));
    }
  } finally {
    closeSync(descriptor);
  }
  return prefix.length + text.length + offset;
}

type NamedTensor = FormTensor & { name: string };

function tensorsOf(shape: ModelShape, form: MatrixForm): NamedTensor[] {
  const { hiddenSize, intermediateSize, numHeads, numKvHeads, headDim, vocabSize, numLayers } = shape;
  const tensors: NamedTensor[] = [];
  const plain = (name: string, sizes: number[], fill: Uint8Array) =>
    tensors.push({ name: `${name}.weight`, part: 'weight', type: 'BF16', shape: sizes, fill });
  const matrix = (name: string, rows: number, columns: number) => {
    for (const tensor of form.tensors(rows, columns))
      tensors.push({ ...tensor, name: `${name}.${tensor.part}` });
  };
  plain('model.embed_tokens', [vocabSize, hiddenSize], normals(hiddenSize));
  for (let layer = 0; layer < numLayers; layer++) {
    const prefix = `model.layers.${layer}`;
    plain(`${prefix}.input_layernorm`, [hiddenSize], ONE);
    matrix(`${prefix}.self_attn.q_proj`, numHeads * headDim, hiddenSize);
    matrix(`${prefix}.self_attn.k_proj`, numKvHeads * headDim, hiddenSize);
    matrix(`${prefix}.self_attn.v_proj`, numKvHeads * headDim, hiddenSize);
    matrix(`${prefix}.self_attn.o_proj`, hiddenSize, numHeads * headDim);
    plain(`${prefix}.post_attention_layernorm`, [hiddenSize], ONE);
    matrix(`${prefix}.mlp.gate_proj`, intermediateSize, hiddenSize);
    matrix(`${prefix}.mlp.up_proj`, intermediateSize, hiddenSize);
    matrix(`${prefix}.mlp.down_proj`, hiddenSize, intermediateSize);
  }
  plain('model.norm', [hiddenSize], ONE);
  return tensors;
}

function configOf(shape: ModelShape, form: MatrixForm): Record<string, unknown> {
  return {
    architectures: ['LlamaForCausalLM'],
    model_type: 'llama',
    vocab_size: shape.vocabSize,
    hidden_size: shape.hiddenSize,
    intermediate_size: shape.intermediateSize,
    num_hidden_layers: shape.numLayers,
    num_attention_heads: shape.numHeads,
    num_key_value_heads: shape.numKvHeads,
    head_dim: shape.headDim,
    hidden_act: 'silu',
    max_position_embeddings: 32_768,
    rms_norm_eps: 1e-5,
    rope_theta: shape.ropeTheta,
    tie_word_embeddings: true,
    torch_dtype: 'bfloat16',
    ...(form.quantization && { quantization_config: form.quantization }),
  };
}

const bytesOf = (type: string, sizes: readonly number[]): number =>
  sizes.reduce((product, size) => product * size, TYPE_BYTES[type] ?? 1);

/** Any bytes but the two NaN of e4m3. */
function randomCodes(): Uint8Array {
  const random = new Random(1);
  const codes = new Uint8Array(POOL_BYTES + 64);
  for (let i = 0; i < codes.length; i++) {
    const byte = random.below(256);
    codes[i] = (byte & 127) === 127 ? byte - 1 : byte;
  }
  return codes;
}

/** The bytes over and over. */
function repeated(bytes: Uint8Array): Uint8Array {
  const times = Math.max(1, Math.floor(POOL_BYTES / bytes.length));
  const all = new Uint8Array(times * bytes.length);
  for (let i = 0; i < times; i++) all.set(bytes, i * bytes.length);
  return all;
}

function writeAll(descriptor: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.length; ) done += writeSync(descriptor, bytes, done);
}
