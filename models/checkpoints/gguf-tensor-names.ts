/** GGUF's tensor names of the Llama family in Hugging Face's words. Names that are not known stay as they are. */
const GLOBAL = new Map([
  ['token_embd', 'model.embed_tokens'],
  ['output_norm', 'model.norm'],
  ['output', 'lm_head'],
]);
const IN_LAYER = new Map([
  ['attn_norm', 'input_layernorm'],
  ['attn_q', 'self_attn.q_proj'],
  ['attn_k', 'self_attn.k_proj'],
  ['attn_v', 'self_attn.v_proj'],
  ['attn_output', 'self_attn.o_proj'],
  ['ffn_norm', 'post_attention_layernorm'],
  ['ffn_gate', 'mlp.gate_proj'],
  ['ffn_up', 'mlp.up_proj'],
  ['ffn_down', 'mlp.down_proj'],
]);

export function huggingFaceTensorName(name: string): string {
  const match = /^(?:blk\.(0|[1-9]\d*)\.)?([a-z_]+)\.(weight|bias)$/.exec(name);
  if (!match) return name;
  const [, layer, stem, kind] = match;
  const translated = (layer === undefined ? GLOBAL : IN_LAYER).get(stem!);
  if (translated === undefined) return name;
  return layer === undefined ? `${translated}.${kind}` : `model.layers.${layer}.${translated}.${kind}`;
}
