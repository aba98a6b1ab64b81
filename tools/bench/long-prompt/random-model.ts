import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Sizes of a Llama; the rest is what `config.json` of the model next to it says. */
const HIDDEN = 576;
const INTERMEDIATE = 1536;
const KV = 192;
const VOCABULARY = 49_152;

/**
 * A checkpoint of SmolLM2-135M's shape with random weights, fewer layers and a context of 131,072 tokens, with the
 * tokenizer of `model`: what it says is nothing, what it costs is real.
 */
export function writeRandomModel(folder: string, model: string, layers: number): void {
  mkdirSync(folder, { recursive: true });
  const config = JSON.parse(readFileSync(join(model, 'config.json'), 'utf8')) as object;
  const sizes = { num_hidden_layers: layers, max_position_embeddings: 131_072, vocab_size: VOCABULARY };
  writeFileSync(
    join(folder, 'config.json'),
    JSON.stringify({ ...config, ...sizes, hidden_size: HIDDEN, intermediate_size: INTERMEDIATE }),
  );
  copyFileSync(join(model, 'tokenizer.json'), join(folder, 'tokenizer.json'));
  const shapes: Record<string, number[]> = {
    'model.embed_tokens.weight': [VOCABULARY, HIDDEN],
    'model.norm.weight': [HIDDEN],
  };
  for (let layer = 0; layer < layers; layer++) {
    const prefix = `model.layers.${layer}`;
    Object.assign(shapes, {
      [`${prefix}.input_layernorm.weight`]: [HIDDEN],
      [`${prefix}.self_attn.q_proj.weight`]: [HIDDEN, HIDDEN],
      [`${prefix}.self_attn.k_proj.weight`]: [KV, HIDDEN],
      [`${prefix}.self_attn.v_proj.weight`]: [KV, HIDDEN],
      [`${prefix}.self_attn.o_proj.weight`]: [HIDDEN, HIDDEN],
      [`${prefix}.post_attention_layernorm.weight`]: [HIDDEN],
      [`${prefix}.mlp.gate_proj.weight`]: [INTERMEDIATE, HIDDEN],
      [`${prefix}.mlp.up_proj.weight`]: [INTERMEDIATE, HIDDEN],
      [`${prefix}.mlp.down_proj.weight`]: [HIDDEN, INTERMEDIATE],
    });
  }
  const header: Record<string, object> = {};
  let offset = 0;
  const parts = Object.entries(shapes).map(([name, shape]) => {
    const values = bf16Values(shape);
    header[name] = { dtype: 'BF16', shape, data_offsets: [offset, offset + values.byteLength] };
    offset += values.byteLength;
    return Buffer.from(values.buffer);
  });
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  writeFileSync(join(folder, 'model.safetensors'), Buffer.concat([length, text, ...parts]));
}

/** Norms are 1; matrices are even over -0.07 to 0.07. */
function bf16Values(shape: readonly number[]): Uint16Array {
  const floats = new Float32Array(shape.reduce((product, size) => product * size, 1)).fill(1);
  let state = 1;
  if (shape.length > 1) {
    for (let i = 0; i < floats.length; i++) {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      floats[i] = 0.14 * (state / 2 ** 32 - 0.5);
    }
  }
  return Uint16Array.from(new Uint32Array(floats.buffer), (bits) => bits >>> 16);
}
