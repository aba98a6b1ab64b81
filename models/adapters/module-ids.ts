/**
 * Ids of the modules that adapters change, by TensorRT-LLM's names (its LoRA page; mlp_router and mlp_gate_up are in its
 * sources alone). A client's `lora_config` has these ids.
 *
 * In a gated MLP, down(act(gate(x)) * up(x)), the page calls 5 "up" and 7 "gate". TensorRT-LLM itself has them the other
 * way round: its converter of Hugging Face adapters writes gate_proj as mlp_h_to_4h and up_proj as mlp_gate. The
 * converter counts here, since it makes the tensors that clients send.
 */
export const MODULE_IDS = {
  attn_qkv: 0,
  attn_q: 1,
  attn_k: 2,
  attn_v: 3,
  attn_dense: 4,
  mlp_h_to_4h: 5,
  mlp_4h_to_h: 6,
  mlp_gate: 7,
  cross_attn_qkv: 8,
  cross_attn_q: 9,
  cross_attn_k: 10,
  cross_attn_v: 11,
  cross_attn_dense: 12,
  moe_h_to_4h: 13,
  moe_4h_to_h: 14,
  moe_gate: 15,
  moe_router: 16,
  mlp_router: 17,
  mlp_gate_up: 18,
} as const;

export type ModuleName = keyof typeof MODULE_IDS;
export type ModuleId = (typeof MODULE_IDS)[ModuleName];

const NAMES = new Map<number, ModuleName>(
  (Object.entries(MODULE_IDS) as [ModuleName, ModuleId][]).map(([name, id]) => [id, name]),
);

export function isModuleId(id: number): id is ModuleId {
  return NAMES.has(id);
}

export function moduleName(id: ModuleId): ModuleName {
  return NAMES.get(id)!;
}
