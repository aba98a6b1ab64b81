const GLOBAL: Readonly<Record<string, string>> = {
  'v.patch_embd.weight': 'tower.patch_embedder.input_proj.weight',
  'v.position_embd.weight': 'tower.patch_embedder.position_embedding_table',
  'v.std_bias': 'tower.std_bias',
  'v.std_scale': 'tower.std_scale',
  'mm.input_projection.weight': 'connector.embedding_projection.weight',
};

/** Linear layers, of which small models keep inputs and outputs between two numbers. */
const LINEAR: Readonly<Record<string, string>> = {
  attn_q: 'self_attn.q_proj',
  attn_k: 'self_attn.k_proj',
  attn_v: 'self_attn.v_proj',
  attn_out: 'self_attn.o_proj',
  ffn_gate: 'mlp.gate_proj',
  ffn_up: 'mlp.up_proj',
  ffn_down: 'mlp.down_proj',
};

const NORMS: Readonly<Record<string, string>> = {
  ln1: 'input_layernorm',
  ln2: 'pre_feedforward_layernorm',
  attn_q_norm: 'self_attn.q_norm',
  attn_k_norm: 'self_attn.k_norm',
  attn_post_norm: 'post_attention_layernorm',
  ffn_post_norm: 'post_feedforward_layernorm',
};

/** transformers' name, with `tower.` and `connector.` in front, of a tensor of a GGUF of Gemma 4's tower; null: it has none. */
export function gemma4TensorName(name: string): string | null {
  if (Object.hasOwn(GLOBAL, name)) return GLOBAL[name]!;
  const [, layer, part = '', end] =
    /^v\.blk\.(0|[1-9]\d*)\.(\w+)\.(weight|(?:in|out)put_(?:min|max))$/.exec(name) ?? [];
  const begin = `tower.encoder.layers.${layer}`;
  if (Object.hasOwn(LINEAR, part)) {
    const linear = `${begin}.${LINEAR[part]}`;
    return end === 'weight' ? `${linear}.linear.weight` : `${linear}.${end}`;
  }
  return Object.hasOwn(NORMS, part) && end === 'weight' ? `${begin}.${NORMS[part]}.weight` : null;
}
