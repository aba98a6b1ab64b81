import type { AvailableMemory } from '../../kvcache/available-memory.js';
import type { NetworkPlan } from '../../network/plan.js';
import { productsOf } from '../../network/products.js';
import type { EngineTensor } from '../directory/engine-directory.js';

/** Memory that a running engine takes besides the KV cache, in bytes. */
export interface FixedMemory {
  packedWeights: number;
  /** Bytes of weights.bin that are read in their stored form. */
  storedWeights: number;
  workspace: number;
}

/** Bytes of a network's experts: of all, of the layer that has most, and of those that a token goes to, at most. */
export interface ExpertBytes {
  bytes: number;
  bytesOfLayer: number;
  bytesPerToken: number;
}

/** Bytes of the experts that memory counts where it has room for a share of them. */
export function countedExperts({ bytes }: ExpertBytes, fraction: number): number {
  return Math.ceil(fraction * bytes);
}

/** Memory of a model of whose experts a share counts, and the others are read from the disk. @param experts null: it has none */
export function withExperts(fixed: FixedMemory, experts: ExpertBytes | null, fraction: number): FixedMemory {
  if (experts === null) return fixed;
  return {
    ...fixed,
    packedWeights: fixed.packedWeights - (experts.bytes - countedExperts(experts, fraction)),
  };
}

/** Sum of the memory of a model and its draft model. */
export function addMemory(a: FixedMemory, b: FixedMemory): FixedMemory {
  return {
    packedWeights: a.packedWeights + b.packedWeights,
    storedWeights: a.storedWeights + b.storedWeights,
    workspace: a.workspace + b.workspace,
  };
}

/**
 * Memory left for the KV cache. Weights are mapped files and come in while running: their place counts as available,
 * but will be taken.
 */
export function afterLoading(memory: AvailableMemory, fixed: FixedMemory): AvailableMemory {
  const { packedWeights, storedWeights, workspace } = fixed;
  return {
    bytes: Math.max(0, memory.bytes - packedWeights - storedWeights - workspace),
    from: `${memory.bytes} bytes by ${memory.from}, less ${packedWeights} of packed weights, ${storedWeights} of weights read as stored and ${workspace} of workspace`,
  };
}

/** Memory left for the KV cache besides what adapters may take on the host. */
export function besideAdapters(memory: AvailableMemory, hostAdapterBytes: number): AvailableMemory {
  if (hostAdapterBytes === 0) return memory;
  return {
    bytes: Math.max(0, memory.bytes - hostAdapterBytes),
    from: `${memory.from}, less ${hostAdapterBytes} for LoRA adapters`,
  };
}

/** Memory left for blocks besides the states of sequences. */
export function besideStates(memory: AvailableMemory, stateBytes: number): AvailableMemory {
  if (stateBytes === 0) return memory;
  return {
    bytes: Math.max(0, memory.bytes - stateBytes),
    from: `${memory.from}, less ${stateBytes} for the states of sequences`,
  };
}

/** Limit of one of the pools that hold the same blocks. */
export interface PoolLimit {
  /** Size of the largest such pool that its executor can have; absent: no limit. */
  most: { bytes: number; of: string } | undefined;
  bytesPerBlock: number;
}

/** The available memory, or less if the executors' pools cannot be so large. */
export function withinPools(available: AvailableMemory, pools: readonly PoolLimit[]): AvailableMemory {
  const perBlock = pools.reduce((sum, { bytesPerBlock }) => sum + bytesPerBlock, 0);
  return pools.reduce((least, { most, bytesPerBlock }) => {
    if (most === undefined || bytesPerBlock === 0) return least;
    const bytes = Math.floor(most.bytes / bytesPerBlock) * perBlock;
    if (bytes >= least.bytes) return least;
    return { bytes, from: `${bytes} bytes by what ${most.of} holds (there are ${least.from})` };
  }, available);
}

/** Bytes of weights.bin that a step reads: embeddings, norms and biases. The matrices are read from the packed file. */
export function storedWeightBytes(plan: NetworkPlan, tensors: readonly EngineTensor[]): number {
  const read = new Set(
    plan.ops.flatMap((op) => {
      if (productsOf(op).length === 0) return 'weight' in op ? [op.weight] : [];
      return 'bias' in op && op.bias !== null ? [op.bias] : [];
    }),
  );
  return tensors.reduce((sum, { name, byteLength }) => sum + (read.has(name) ? byteLength : 0), 0);
}
