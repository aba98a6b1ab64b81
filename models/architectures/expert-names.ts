/** Hugging Face's names of the router and the experts of a layer, after `model.layers.L.`. */
export interface ExpertNames {
  /** What they are parts of: the router is its `router`, or where that is absent its `gate`, an expert its `experts.E`. */
  block: string;
  router?: string;
  /** Matrices of an expert. gate absent: experts have none, nor has the MLP that all tokens go to. */
  gate?: string;
  up: string;
  down: string;
  /** One that has the rows of gate above those of up, in files where they lie in one. */
  stacked?: string;
  /** Bias that is added for the choice, in the block. */
  choiceBias?: string;
  /** Factors on the experts' shares, in the block. */
  shareScales?: string;
  /** The MLP that all tokens go to. gate: matrix of one row, the sigmoid of which it is multiplied with; absent: it has none. */
  shared?: { block: string; gate?: string };
}

const PROJECTIONS = { gate: 'gate_proj', up: 'up_proj', down: 'down_proj' };
const QWEN: ExpertNames = { block: 'mlp', ...PROJECTIONS };
const MIXTRAL: ExpertNames = { block: 'block_sparse_moe', gate: 'w1', up: 'w3', down: 'w2' };
const QWEN_SHARED: ExpertNames = {
  ...QWEN,
  shared: { block: 'mlp.shared_expert', gate: 'mlp.shared_expert_gate' },
};

/** Names by ModelConfig.architecture, of those that have experts. */
const NAMES = new Map<string, ExpertNames>([
  ['qwen2moe', QWEN_SHARED],
  ['qwen35moe', QWEN_SHARED],
  ['qwen3next', QWEN_SHARED],
  ['qwen3moe', { ...QWEN, stacked: 'gate_up_proj' }],
  ['olmoe', QWEN],
  ['gemma4', { ...QWEN, block: 'mixture', router: 'router.proj', shareScales: 'router.per_expert_scale' }],
  ['gptoss', { ...QWEN, router: 'router', stacked: 'gate_up_proj' }],
  [
    'glm4moe',
    { ...QWEN, choiceBias: 'gate.e_score_correction_bias', shared: { block: 'mlp.shared_experts' } },
  ],
  [
    'nemotronh',
    {
      block: 'mlp',
      up: 'up_proj',
      down: 'down_proj',
      choiceBias: 'gate.e_score_correction_bias',
      shared: { block: 'mlp.shared_experts' },
    },
  ],
  // Its files have one tensor for each matrix of all experts.
  ['granite4', { block: 'block_sparse_moe', gate: 'gate_proj', up: 'up_proj', down: 'down_proj' }],
  ['mixtral', MIXTRAL],
  ['phimoe', MIXTRAL],
  ['lfm2moe', { block: 'feed_forward', gate: 'w1', up: 'w3', down: 'w2', choiceBias: 'expert_bias' }],
]);

/** Undefined for an architecture without experts. */
export function expertNames(architecture: string): ExpertNames | undefined {
  return NAMES.get(architecture);
}
