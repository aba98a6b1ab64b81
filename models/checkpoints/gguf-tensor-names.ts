import { turnsPairs } from './rope-config.js';

/** Hugging Face's names of GGUF's tensors, by ModelConfig.architecture. */
interface Names {
  global: Readonly<Record<string, string>>;
  inLayer: Readonly<Record<string, string>>;
  /** Names of vectors in layers that stand for themselves, with what GGUF has at their end. */
  vectors?: Readonly<Record<string, string>>;
  /** Prefix in front of a layer's number. */
  layers: string;
}

const LLAMA: Names = {
  layers: 'model.layers',
  global: { token_embd: 'model.embed_tokens', output_norm: 'model.norm', output: 'lm_head' },
  inLayer: {
    attn_norm: 'input_layernorm',
    attn_q: 'self_attn.q_proj',
    attn_k: 'self_attn.k_proj',
    attn_v: 'self_attn.v_proj',
    attn_output: 'self_attn.o_proj',
    ffn_norm: 'post_attention_layernorm',
    ffn_gate: 'mlp.gate_proj',
    ffn_up: 'mlp.up_proj',
    ffn_down: 'mlp.down_proj',
  },
};
const QUERY_AND_KEY_NORMS = { attn_q_norm: 'self_attn.q_norm', attn_k_norm: 'self_attn.k_norm' };
const GEMMA: Names = {
  ...LLAMA,
  inLayer: {
    ...LLAMA.inLayer,
    ...QUERY_AND_KEY_NORMS,
    post_attention_norm: 'post_attention_layernorm',
    ffn_norm: 'pre_feedforward_layernorm',
    post_ffw_norm: 'post_feedforward_layernorm',
  },
};

const withNorms = (norms: Names['inLayer']): Names => ({ ...LLAMA, inLayer: { ...LLAMA.inLayer, ...norms } });
/** Of families with norms after the halves of a layer alone. */
const POST_NORMS = withNorms({
  ...QUERY_AND_KEY_NORMS,
  post_attention_norm: 'post_attention_layernorm',
  post_ffw_norm: 'post_feedforward_layernorm',
});

/** Tensors of experts have names of their own: see gguf-tensors.ts. */
const withRouter = (
  { ffn_gate: _, ffn_up: __, ffn_down: ___, ...inLayer }: Names['inLayer'],
  router: string,
) => ({
  ...inLayer,
  ffn_gate_inp: router,
});
const QWEN3 = { ...LLAMA.inLayer, ...QUERY_AND_KEY_NORMS };
/** The MLP that all tokens go to, next to the experts. */
const sharedExpert = (block: string) => ({
  ffn_gate_shexp: `${block}.gate_proj`,
  ffn_up_shexp: `${block}.up_proj`,
  ffn_down_shexp: `${block}.down_proj`,
});
const QWEN_SHARED = {
  ffn_gate_inp_shexp: 'mlp.shared_expert_gate',
  ...sharedExpert('mlp.shared_expert'),
};
const QWEN35: Names = {
  ...LLAMA,
  inLayer: {
    ...QWEN3,
    post_attention_norm: 'post_attention_layernorm',
    attn_qkv: 'linear_attn.in_proj_qkv',
    attn_gate: 'linear_attn.in_proj_z',
    ssm_alpha: 'linear_attn.in_proj_a',
    ssm_beta: 'linear_attn.in_proj_b',
    ssm_conv1d: 'linear_attn.conv1d',
    ssm_norm: 'linear_attn.norm',
    ssm_out: 'linear_attn.out_proj',
  },
  vectors: { ssm_a: 'linear_attn.A_log', 'ssm_dt.bias': 'linear_attn.dt_bias' },
};
const QWEN35_MOE: Names = {
  ...QWEN35,
  inLayer: { ...withRouter(QWEN35.inLayer, 'mlp.gate'), ...QWEN_SHARED },
};
const LFM2: Names = {
  ...LLAMA,
  global: { ...LLAMA.global, token_embd_norm: 'model.norm' },
  inLayer: {
    ...QWEN3,
    'shortconv.conv': 'conv.conv',
    'shortconv.in_proj': 'conv.in_proj',
    'shortconv.out_proj': 'conv.out_proj',
  },
};

/** Tensors of scans. */
const SCANS = {
  ssm_in: 'mamba.in_proj',
  ssm_conv1d: 'mamba.conv1d',
  ssm_norm: 'mamba.norm',
  ssm_out: 'mamba.out_proj',
};
const SCAN_VECTORS = { ssm_a: 'mamba.A_log', ssm_d: 'mamba.D', 'ssm_dt.bias': 'mamba.dt_bias' };

const MIXTRAL: Names = { ...LLAMA, inLayer: withRouter(LLAMA.inLayer, 'block_sparse_moe.gate') };

const FAMILIES: Readonly<Record<string, Names>> = {
  llama: LLAMA,
  mixtral: MIXTRAL,
  phimoe: MIXTRAL,
  qwen2: LLAMA,
  qwen3: { ...LLAMA, inLayer: QWEN3 },
  qwen3moe: { ...LLAMA, inLayer: withRouter(QWEN3, 'mlp.gate') },
  qwen2moe: { ...LLAMA, inLayer: { ...withRouter(LLAMA.inLayer, 'mlp.gate'), ...QWEN_SHARED } },
  olmoe: { ...LLAMA, inLayer: withRouter(QWEN3, 'mlp.gate') },
  gptoss: {
    ...LLAMA,
    inLayer: {
      ...withRouter(LLAMA.inLayer, 'mlp.router'),
      post_attention_norm: 'post_attention_layernorm',
    },
    vectors: { 'attn_sinks.weight': 'self_attn.sinks' },
  },
  glm4moe: {
    ...LLAMA,
    inLayer: {
      ...QWEN3,
      ffn_gate_inp: 'mlp.gate',
      post_attention_norm: 'post_attention_layernorm',
      ...sharedExpert('mlp.shared_experts'),
    },
    vectors: { 'exp_probs_b.bias': 'mlp.gate.e_score_correction_bias' },
  },
  qwen35: QWEN35,
  qwen35moe: QWEN35_MOE,
  // Files that were made before the converter took it apart have one projection for queries, keys, values and gates.
  qwen3next: {
    ...QWEN35_MOE,
    inLayer: { ...QWEN35_MOE.inLayer, ssm_in: 'linear_attn.in_proj_qkvz', ssm_ba: 'linear_attn.in_proj_ba' },
  },
  lfm2: LFM2,
  lfm2moe: {
    ...LFM2,
    inLayer: { ...LFM2.inLayer, ffn_gate_inp: 'feed_forward.gate' },
    vectors: { 'exp_probs_b.bias': 'feed_forward.expert_bias' },
  },
  mamba2: { ...LLAMA, inLayer: { attn_norm: 'input_layernorm', ...SCANS }, vectors: SCAN_VECTORS },
  nemotronh: {
    ...LLAMA,
    inLayer: {
      ...LLAMA.inLayer,
      ...SCANS,
      ffn_gate_inp: 'mlp.gate',
      ...sharedExpert('mlp.shared_experts'),
    },
    vectors: { ...SCAN_VECTORS, 'exp_probs_b.bias': 'mlp.gate.e_score_correction_bias' },
  },
  falconh1: {
    ...LLAMA,
    inLayer: { ...LLAMA.inLayer, ...SCANS },
    // llama.cpp has no end of this name.
    vectors: { ...SCAN_VECTORS, ffn_norm: 'post_attention_layernorm.weight' },
  },
  granite4: {
    ...LLAMA,
    inLayer: {
      ...LLAMA.inLayer,
      ...SCANS,
      ffn_gate: 'shared_mlp.gate',
      ffn_up: 'shared_mlp.up',
      ffn_down: 'shared_mlp.output_linear',
      // Next to the experts.
      ffn_gate_shexp: 'shared_mlp.gate',
      ffn_up_shexp: 'shared_mlp.up',
      ffn_down_shexp: 'shared_mlp.output_linear',
      ffn_gate_inp: 'block_sparse_moe.gate',
    },
    vectors: SCAN_VECTORS,
  },
  gemma: LLAMA,
  smollm3: LLAMA,
  ministral3: LLAMA,
  ernie4_5: LLAMA,
  granite: LLAMA,
  cohere: { ...LLAMA, inLayer: QWEN3 },
  arcee: LLAMA,
  nemotron: LLAMA,
  minicpm: LLAMA,
  openelm: withNorms({ ...QUERY_AND_KEY_NORMS, attn_qkv: 'self_attn.qkv_proj' }),
  apertus: withNorms({
    ...QUERY_AND_KEY_NORMS,
    attn_norm: 'attention_layernorm',
    ffn_norm: 'feedforward_layernorm',
  }),
  hunyuan: withNorms({ attn_q_norm: 'self_attn.query_layernorm', attn_k_norm: 'self_attn.key_layernorm' }),
  cohere2: LLAMA,
  seed_oss: withNorms({ post_attention_norm: 'post_attention_layernorm' }),
  olmo2: POST_NORMS,
  olmo3: POST_NORMS,
  exaone4: POST_NORMS,
  glm: withNorms({ ffn_up: 'mlp.gate_up_proj' }),
  glm4: {
    ...LLAMA,
    inLayer: {
      ...LLAMA.inLayer,
      ffn_up: 'mlp.gate_up_proj',
      post_attention_norm: 'post_self_attn_layernorm',
      post_ffw_norm: 'post_mlp_layernorm',
    },
  },
  phi3: {
    ...LLAMA,
    inLayer: { ...LLAMA.inLayer, attn_qkv: 'self_attn.qkv_proj', ffn_up: 'mlp.gate_up_proj' },
  },
  gemma2: GEMMA,
  gemma3: GEMMA,
  gemma4: {
    ...GEMMA,
    global: {
      ...GEMMA.global,
      per_layer_token_embd: 'model.embed_tokens_per_layer',
      per_layer_model_proj: 'model.per_layer_model_projection',
      per_layer_proj_norm: 'model.per_layer_projection_norm',
    },
    inLayer: {
      ...GEMMA.inLayer,
      post_ffw_norm_1: 'post_feedforward_layernorm_1',
      pre_ffw_norm_2: 'pre_feedforward_layernorm_2',
      post_ffw_norm_2: 'post_feedforward_layernorm_2',
      ffn_gate_inp: 'mixture.router.proj',
      inp_gate: 'per_layer_input_gate',
      proj: 'per_layer_projection',
      post_norm: 'post_per_layer_input_norm',
    },
    vectors: {
      'ffn_gate_inp.scale': 'mixture.router.scale.weight',
      'ffn_down_exps.scale': 'mixture.router.per_expert_scale',
      'layer_output_scale.weight': 'layer_scalar',
    },
  },
  gpt2: {
    layers: 'h',
    global: { token_embd: 'wte', position_embd: 'wpe', output_norm: 'ln_f', output: 'lm_head' },
    inLayer: {
      attn_norm: 'ln_1',
      attn_qkv: 'attn.c_attn',
      attn_output: 'attn.c_proj',
      ffn_norm: 'ln_2',
      ffn_up: 'mlp.c_fc',
      ffn_down: 'mlp.c_proj',
    },
  },
  bert: {
    layers: 'encoder.layer',
    global: {
      token_embd: 'embeddings.word_embeddings',
      token_types: 'embeddings.token_type_embeddings',
      position_embd: 'embeddings.position_embeddings',
      token_embd_norm: 'embeddings.LayerNorm',
      cls: 'classifier.dense',
      'cls.output': 'classifier.out_proj',
    },
    inLayer: {
      attn_q: 'attention.self.query',
      attn_k: 'attention.self.key',
      attn_v: 'attention.self.value',
      attn_output: 'attention.output.dense',
      attn_output_norm: 'attention.output.LayerNorm',
      ffn_up: 'intermediate.dense',
      ffn_down: 'output.dense',
      layer_output_norm: 'output.LayerNorm',
    },
  },
  ropebert: {
    layers: 'layers',
    global: {
      token_embd: 'embeddings.word_embeddings',
      token_types: 'embeddings.token_type_embeddings',
      token_embd_norm: 'embeddings.LayerNorm',
    },
    inLayer: {
      attn_qkv: 'self_attn.qkv_proj',
      attn_output: 'self_attn.o_proj',
      attn_output_norm: 'post_attention_layernorm',
      ffn_gate: 'mlp.gate_proj',
      ffn_up: 'mlp.up_proj',
      ffn_down: 'mlp.down_proj',
      ffn_gate_inp: 'mlp.router.layer',
      layer_output_norm: 'post_mlp_layernorm',
    },
  },
  modernbert: {
    layers: 'layers',
    global: {
      token_embd: 'embeddings.tok_embeddings',
      token_embd_norm: 'embeddings.norm',
      output_norm: 'final_norm',
      cls: 'head.dense',
      'cls.norm': 'head.norm',
      'cls.output': 'classifier',
    },
    inLayer: {
      attn_norm: 'attn_norm',
      attn_qkv: 'attn.Wqkv',
      attn_output: 'attn.Wo',
      ffn_norm: 'mlp_norm',
      ffn_up: 'mlp.Wi',
      ffn_down: 'mlp.Wo',
    },
  },
};

/** Of heads of decoders that embed or score; a score by two tokens has rows: see gguf-encoders.ts. */
const HEADS: Names['global'] = {
  dense_2: '2_Dense.linear',
  dense_3: '3_Dense.linear',
  'cls.output': 'score',
};

/** Hugging Face's name of a GGUF tensor; unknown names stay as they are. */
export function huggingFaceTensorName(name: string, architecture = 'llama'): string {
  const family = FAMILIES[architecture];
  const [, at, vector] = /^blk\.(0|[1-9]\d*)\.([a-z_.]+)$/.exec(name) ?? [];
  const own = vector === undefined ? undefined : family?.vectors?.[vector];
  if (own !== undefined) return `${family!.layers}.${at}.${own}`;
  const match = /^(?:blk\.(0|[1-9]\d*)\.)?([a-z_]+(?:\d[a-z]?|\.[a-z_]+)?)\.(weight|bias)$/.exec(name);
  if (!match || !family) return name;
  const [, layer, stem, kind] = match;
  const names = layer === undefined ? { ...HEADS, ...family.global } : family.inLayer;
  if (!Object.hasOwn(names, stem!)) return name;
  const place = layer === undefined ? '' : `${family.layers}.${layer}.`;
  return `${place}${names[stem!]}.${kind}`;
}

/** Families whose rows of queries and keys llama.cpp's converter interleaves. */
const INTERLEAVED: ReadonlySet<string> = new Set([
  'llama',
  'mixtral',
  'smollm3',
  'ministral3',
  'granite',
  'granite4',
  'nemotronh',
  'arcee',
  'minicpm',
]);

/**
 * Number of heads whose rows are interleaved: those of queries and keys where llama.cpp's converter does so, for the RoPE that its
 * files are made for, and where Hugging Face's order is that already. All others have the network's order.
 */
export function interleavedHeads(
  name: string,
  { architecture, numHeads, numKvHeads }: { architecture: string; numHeads: number; numKvHeads: number },
): number | undefined {
  if (!INTERLEAVED.has(architecture) && !turnsPairs(architecture)) return undefined;
  const projection = /\.self_attn\.([qk])_proj\./.exec(name)?.[1];
  return projection === 'q' ? numHeads : projection === 'k' ? numKvHeads : undefined;
}
