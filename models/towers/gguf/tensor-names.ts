import type { TowerKind } from '../tower-config.js';

/** The network's names of what a tower's GGUF has, without `weight` and `bias`. */
interface Names {
  global: Readonly<Record<string, string>>;
  /** Beginning of the names in a layer, before its number. */
  layers: string;
  inLayer: Readonly<Record<string, string>>;
  /** Those of them that have no end. */
  bare?: ReadonlySet<string>;
}

const SIGLIP: Names = {
  global: {
    'v.patch_embd': 'tower.embeddings.patch_embedding',
    'v.position_embd': 'tower.embeddings.position_embedding',
    'v.class_embd': 'tower.embeddings.class_embedding',
    'v.pre_ln': 'tower.pre_layrnorm',
    'v.post_ln': 'tower.post_layernorm',
    'mm.model.fc': 'connector.modality_projection.proj',
    'mm.input_projection': 'connector.mm_input_projection',
    'mm.soft_emb_norm': 'connector.mm_soft_emb_norm',
    'mm.0': 'connector.linear_1',
    'mm.2': 'connector.linear_2',
  },
  layers: 'tower.encoder.layers',
  inLayer: {
    ln1: 'layer_norm1',
    ln2: 'layer_norm2',
    attn_q: 'self_attn.q_proj',
    attn_k: 'self_attn.k_proj',
    attn_v: 'self_attn.v_proj',
    attn_out: 'self_attn.out_proj',
    ffn_up: 'mlp.fc1',
    ffn_down: 'mlp.fc2',
  },
};

const FAMILIES: Readonly<Record<Exclude<TowerKind, 'qwen2.5' | 'gemma4'>, Names>> = {
  siglip: SIGLIP,
  clip: SIGLIP,
  pixtral: {
    global: {
      'v.patch_embd': 'tower.patch_conv',
      'v.pre_ln': 'tower.ln_pre',
      'mm.1': 'connector.linear_1',
      'mm.2': 'connector.linear_2',
      'mm.input_norm': 'connector.norm',
      'mm.patch_merger': 'connector.patch_merger.merging_layer',
    },
    layers: 'tower.transformer.layers',
    inLayer: {
      ln1: 'attention_norm',
      ln2: 'ffn_norm',
      attn_q: 'attention.q_proj',
      attn_k: 'attention.k_proj',
      attn_v: 'attention.v_proj',
      attn_out: 'attention.o_proj',
      ffn_gate: 'feed_forward.gate_proj',
      ffn_up: 'feed_forward.up_proj',
      ffn_down: 'feed_forward.down_proj',
    },
  },
  internvl: {
    global: {
      'v.patch_embd': 'tower.embeddings.patch_embeddings.projection',
      'v.position_embd': 'tower.embeddings.position_embeddings',
      'v.class_embd': 'tower.embeddings.cls_token',
      'mm.model.mlp.0': 'connector.layer_norm',
      'mm.model.mlp.1': 'connector.linear_1',
      'mm.model.mlp.3': 'connector.linear_2',
    },
    layers: 'tower.encoder.layer',
    inLayer: {
      ln1: 'layernorm_before',
      ln2: 'layernorm_after',
      attn_q: 'attention.q_proj',
      attn_k: 'attention.k_proj',
      attn_v: 'attention.v_proj',
      attn_q_norm: 'attention.q_norm',
      attn_k_norm: 'attention.k_norm',
      attn_out: 'attention.projection_layer',
      ls1: 'lambda_1',
      ls2: 'lambda_2',
      ffn_up: 'mlp.fc1',
      ffn_down: 'mlp.fc2',
    },
    bare: new Set(['tower.embeddings.position_embeddings', 'lambda_1', 'lambda_2']),
  },
  qwen2: {
    global: {
      'v.patch_embd': 'tower.patch_embed.proj',
      'v.post_ln': 'tower.merger.ln_q',
      'mm.0': 'tower.merger.mlp.0',
      'mm.2': 'tower.merger.mlp.2',
    },
    layers: 'tower.blocks',
    inLayer: {
      ln1: 'norm1',
      ln2: 'norm2',
      // With keys and values: see open-gguf-tower.ts.
      attn_q: 'attn.qkv',
      attn_out: 'attn.proj',
      ffn_up: 'mlp.fc1',
      ffn_down: 'mlp.fc2',
    },
  },
  qwen: {
    global: {
      'v.patch_embd': 'tower.patch_embed.proj',
      'v.position_embd': 'tower.pos_embed',
      'v.post_ln': 'tower.merger.norm',
      'mm.0': 'tower.merger.linear_fc1',
      'mm.2': 'tower.merger.linear_fc2',
    },
    layers: 'tower.blocks',
    inLayer: {
      ln1: 'norm1',
      ln2: 'norm2',
      attn_qkv: 'attn.qkv',
      attn_out: 'attn.proj',
      ffn_up: 'mlp.linear_fc1',
      ffn_down: 'mlp.linear_fc2',
    },
  },
};

const QWEN25: Names = {
  ...FAMILIES.qwen2,
  inLayer: {
    ...FAMILIES.qwen2.inLayer,
    ffn_gate: 'mlp.gate_proj',
    ffn_up: 'mlp.up_proj',
    ffn_down: 'mlp.down_proj',
  },
};

/** What a level of Qwen3-VL has, which is named by its layer in a GGUF, and by its own number in the network. */
const OF_LEVEL: Readonly<Record<string, string>> = { norm: 'norm', fc1: 'linear_fc1', fc2: 'linear_fc2' };

/** The network's name of a tensor of a tower's GGUF; null for one that it has none for. */
export function towerTensorName(
  name: string,
  kind: TowerKind,
  { levels, swapsUpAndDown }: { levels: readonly number[]; swapsUpAndDown: boolean },
): string | null {
  if (kind === 'gemma4') return gemma4TensorName(name);
  const { global, layers, inLayer, bare } = kind === 'qwen2.5' ? QWEN25 : FAMILIES[kind];
  const ended = (own: string, end: string) => (bare?.has(own) ? '' : `.${end}`);
  const [, stem = name, end = 'weight'] = /^(.*)\.(weight|bias)$/.exec(name) ?? [];
  const whole = Object.hasOwn(global, stem) ? global[stem] : undefined;
  // CLIP's own row has no end.
  if (whole !== undefined) return stem === name ? whole : whole + ended(whole, end);
  const [, level, part] = /^v\.deepstack\.(0|[1-9]\d*)\.(\w+)$/.exec(stem) ?? [];
  const at = levels.indexOf(Number(level));
  if (part !== undefined && at >= 0 && Object.hasOwn(OF_LEVEL, part))
    return `tower.deepstack_merger_list.${at}.${OF_LEVEL[part]}.${end}`;
  const [, layer, given] = /^v\.blk\.(0|[1-9]\d*)\.(\w+)$/.exec(stem) ?? [];
  const own = swapsUpAndDown ? swapped(given) : given;
  if (own === undefined || !Object.hasOwn(inLayer, own)) return null;
  return `${layers}.${layer}.${inLayer[own]}${ended(inLayer[own]!, end)}`;
}

/** Files of the first converters have the two layers of an MLP under each other's names. */
function swapped(name: string | undefined): string | undefined {
  if (name === 'ffn_up') return 'ffn_down';
  return name === 'ffn_down' ? 'ffn_up' : name;
}

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
function gemma4TensorName(name: string): string | null {
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
