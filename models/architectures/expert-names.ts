/** Hugging Face's names of the router and the experts of a layer, behind `model.layers.L.`. */
export interface ExpertNames {
  /** What they are parts of: the router is its `gate`, an expert its `experts.E`. */
  block: string;
  /** Matrices of an expert. */
  gate: string;
  up: string;
  down: string;
}

/** Names by ModelConfig.architecture, of those that have experts. */
const NAMES = new Map<string, ExpertNames>([
  ['qwen35moe', { block: 'mlp', gate: 'gate_proj', up: 'up_proj', down: 'down_proj' }],
  ['qwen3next', { block: 'mlp', gate: 'gate_proj', up: 'up_proj', down: 'down_proj' }],
  ['qwen3moe', { block: 'mlp', gate: 'gate_proj', up: 'up_proj', down: 'down_proj' }],
  // Its files have one tensor for each matrix of all experts.
  ['granite4', { block: 'block_sparse_moe', gate: 'gate_proj', up: 'up_proj', down: 'down_proj' }],
  ['mixtral', { block: 'block_sparse_moe', gate: 'w1', up: 'w3', down: 'w2' }],
]);

/** Undefined for an architecture without experts. */
export function expertNames(architecture: string): ExpertNames | undefined {
  return NAMES.get(architecture);
}
