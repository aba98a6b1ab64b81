import type { ModelConfig } from '../model-config.js';
import { MODULE_IDS, type ModuleId } from './module-ids.js';

/** Width of what a module reads and of what it writes. */
export interface ModuleShape {
  in: number;
  out: number;
}

/** The modules of a base model that an adapter can change. */
export interface BaseModules {
  /** Shapes of all modules, also of those that the checkpoint holds only as part of another, or in several parts. */
  shapes: ReadonlyMap<ModuleId, ModuleShape>;
  /** Hugging Face's names of the modules that the checkpoint holds, without the layer: `self_attn.q_proj`. */
  names: ReadonlyMap<string, ModuleId>;
  /** What stands before the number of a layer in Hugging Face's names: `model.layers`. */
  layersName: string;
}

const ATTENTION: [string, ModuleId][] = [
  ['self_attn.q_proj', MODULE_IDS.attn_q],
  ['self_attn.k_proj', MODULE_IDS.attn_k],
  ['self_attn.v_proj', MODULE_IDS.attn_v],
];
const ATTENTION_OUTPUT: [string, ModuleId] = ['self_attn.o_proj', MODULE_IDS.attn_dense];
const DOWN: [string, ModuleId] = ['mlp.down_proj', MODULE_IDS.mlp_4h_to_h];

/** Names of most decoders on Hugging Face. */
const USUAL_NAMES: [string, ModuleId][] = [
  ...ATTENTION,
  ATTENTION_OUTPUT,
  ['mlp.gate_proj', MODULE_IDS.mlp_h_to_4h],
  ['mlp.up_proj', MODULE_IDS.mlp_gate],
  DOWN,
];

/** Names of decoders whose MLP has no gate. */
const WITHOUT_GATE: [string, ModuleId][] = [
  ...ATTENTION,
  ATTENTION_OUTPUT,
  ['mlp.up_proj', MODULE_IDS.mlp_h_to_4h],
  DOWN,
];

const LFM2: [string, ModuleId][] = [
  ...ATTENTION,
  ['self_attn.out_proj', MODULE_IDS.attn_dense],
  ['feed_forward.w1', MODULE_IDS.mlp_h_to_4h],
  ['feed_forward.w3', MODULE_IDS.mlp_gate],
  ['feed_forward.w2', MODULE_IDS.mlp_4h_to_h],
];

/** Names of the architectures whose checkpoints hold other modules. */
const OTHER_NAMES: Readonly<Record<string, [string, ModuleId][]>> = {
  gpt2: [
    ['attn.c_attn', MODULE_IDS.attn_qkv],
    ['attn.c_proj', MODULE_IDS.attn_dense],
    ['mlp.c_fc', MODULE_IDS.mlp_h_to_4h],
    ['mlp.c_proj', MODULE_IDS.mlp_4h_to_h],
  ],
  lfm2: LFM2,
  lfm2moe: LFM2,
  arcee: WITHOUT_GATE,
  apertus: WITHOUT_GATE,
  nemotron: WITHOUT_GATE,
  phi3: [
    ['self_attn.qkv_proj', MODULE_IDS.attn_qkv],
    ATTENTION_OUTPUT,
    ['mlp.gate_up_proj', MODULE_IDS.mlp_gate_up],
    DOWN,
  ],
};

/** Queries whose heads are each followed by a gate, so that they cannot be stacked with keys and values. */
const GATED_QUERIES: ReadonlySet<string> = new Set(['qwen35', 'qwen35moe', 'qwen3next']);
const OF_ATTENTION: ReadonlySet<ModuleId> = new Set([
  MODULE_IDS.attn_qkv,
  ...[...ATTENTION, ATTENTION_OUTPUT].map(([, module]) => module),
]);

const LAYERS_DIFFER: ReadonlySet<string> = new Set(['mamba2', 'nemotronh']);
const ATTENTION_ALONE: ReadonlySet<string> = new Set(['granite4', 'falconh1']);

/**
 * The modules of a base model. All decoders stack the rows of some modules, in this order, so that the parts and the
 * whole can both be changed:
 *
 *   attn_qkv    = attn_q | attn_k | attn_v     (heads, then twice the key-value heads)
 *   mlp_gate_up = mlp_h_to_4h | mlp_gate       (gate, then up)
 *
 * An encoder has no modules, nor has a decoder whose layers differ or do not attend; and layers with experts, and those of Granite 4 and Falcon-H1,
 * have those of attention alone.
 */
export function baseModules(config: ModelConfig): BaseModules {
  const { architecture, hiddenSize, intermediateSize, numHeads, numKvHeads, headDim } = config;
  const { encoder, experts } = config;
  const isGpt2 = architecture === 'gpt2';
  const layersName = isGpt2 ? 'transformer.h' : 'model.layers';
  const differ = config.layerShapes !== undefined || LAYERS_DIFFER.has(architecture);
  if (encoder || differ) return { shapes: new Map(), names: new Map(), layersName };
  const queries = numHeads * headDim;
  const keys = numKvHeads * headDim;
  const shapes = new Map<ModuleId, ModuleShape>([
    [MODULE_IDS.attn_qkv, { in: hiddenSize, out: queries + 2 * keys }],
    [MODULE_IDS.attn_q, { in: hiddenSize, out: queries }],
    [MODULE_IDS.attn_k, { in: hiddenSize, out: keys }],
    [MODULE_IDS.attn_v, { in: hiddenSize, out: keys }],
    [MODULE_IDS.attn_dense, { in: queries, out: hiddenSize }],
  ]);
  if (GATED_QUERIES.has(architecture)) {
    shapes.delete(MODULE_IDS.attn_qkv);
    shapes.set(MODULE_IDS.attn_q, { in: hiddenSize, out: 2 * queries });
  }
  const names = OTHER_NAMES[architecture] ?? USUAL_NAMES;
  // An adapter cannot change experts.
  if (experts !== undefined || ATTENTION_ALONE.has(architecture)) {
    const ofAttention = names.filter(([, module]) => OF_ATTENTION.has(module));
    return { shapes, names: new Map(ofAttention), layersName };
  }
  shapes.set(MODULE_IDS.mlp_h_to_4h, { in: hiddenSize, out: intermediateSize });
  shapes.set(MODULE_IDS.mlp_4h_to_h, { in: intermediateSize, out: hiddenSize });
  if (!isGpt2 && names !== WITHOUT_GATE) {
    shapes.set(MODULE_IDS.mlp_gate, { in: hiddenSize, out: intermediateSize });
    shapes.set(MODULE_IDS.mlp_gate_up, { in: hiddenSize, out: 2 * intermediateSize });
  }
  return { shapes, names: new Map(names), layersName };
}

/** Whether a layer of the model has a module: those of attention are not in layers that keep a state in its place. */
export function isInLayer({ attendingLayers }: ModelConfig, layer: number, module: ModuleId): boolean {
  return attendingLayers?.[layer] !== false || !OF_ATTENTION.has(module);
}

/**
 * The module of a layer by Hugging Face's names; undefined: there is none.
 * @param layersName what stands before the layer's number, with the model's own prefix (`model.`, `transformer.`) or without
 */
export function moduleIn(base: BaseModules, layersName: string, name: string): ModuleId | undefined {
  const isOfBase = layersName === base.layersName || layersName === base.layersName.replace(/^\w+\./, '');
  return isOfBase ? base.names.get(name) : undefined;
}
