import { longestTable, resolveWindow } from '../../../kvcache/kv-cache-options.js';
import { kvBytesPerBlock, stateBytesPerSlot } from '../../../kvcache/kv-cache-size.js';
import type { NetworkPlan, PlanOp, PlanWeight } from '../../../network/plan.js';
import { expertWidth, multipliedWeights } from '../../../network/products.js';
import { stateInputBytes } from '../../../network/state-inputs.js';
import type { ExecutorOptions } from '../executor.js';
import type { RunnerMemory } from '../portable/network-runner.js';
import { MAX_HEAP_BYTES } from './heap.js';
import { relativeFloats } from './relative-tables.js';

/** Number of rows that a product and the op after it take at once: the values between them stay in a core's cache. */
export const ROWS_AT_ONCE = 128;
/** Bytes of the heap for tfjs and emscripten themselves, and for gaps between regions; a generous guess. */
const BESIDES_BYTES = 32 << 20;

/** Parts of a runner's memory, in bytes. */
export interface MemoryLayout {
  /** Weights in the heap: packed matrices, norms. */
  packedWeights: number;
  /** Weights outside of the heap: tables for looking up rows. */
  tables: number;
  kvCache: number;
  /** The states of sequences, snapshots of them, and the log of drafts. */
  states: number;
  /** Values of the plan, angles, scores and the rest. */
  workspace: number;
  /**
   * The largest unpacked matrix, with the room that packing needs besides it; it takes the later place of the
   * KV cache.
   */
  staging: number;
}

/** The matrices of products, which are packed; other matrices are tables. */
export function productWeights(plan: NetworkPlan): PlanWeight[] {
  const names = multipliedWeights(plan);
  return plan.weights.filter(({ name }) => names.has(name));
}

export function tableWeights({ ops, weights }: NetworkPlan): PlanWeight[] {
  const names = new Set(ops.flatMap((op) => (isLookup(op) ? [op.weight] : [])));
  return weights.filter(({ name }) => names.has(name));
}

function isLookup(op: PlanOp): op is Extract<PlanOp, { op: 'embedding' | 'addEmbedding' | 'distanceRows' }> {
  return op.op === 'embedding' || op.op === 'addEmbedding' || op.op === 'distanceRows';
}

export function vectorWeights({ weights }: NetworkPlan): PlanWeight[] {
  return weights.filter(({ kind }) => kind === 'vector');
}

/** Memory that such a runner takes. */
export function memoryLayout(plan: NetworkPlan, options: ExecutorOptions): MemoryLayout {
  const { numBlocks, numSecondaryBlocks = 0, numStateSlots = 0, tokensPerBlock } = options;
  const products = productWeights(plan);
  const vectorBytes = vectorWeights(plan).reduce((sum, { columns }) => sum + rounded(columns), 0);
  return {
    packedWeights: products.reduce((sum, weight) => sum + packedBytes(weight), vectorBytes),
    tables: tableWeights(plan).reduce((sum, { rows, columns }) => sum + 4 * rows * columns, 0),
    kvCache: (numBlocks + numSecondaryBlocks) * kvBytesPerBlock(plan.caches, tokensPerBlock, 'f32'),
    states: numStateSlots * stateBytesPerSlot(plan.states ?? []) + logBytes(plan, options),
    workspace: workspaceParts(plan, options).total,
    staging: products.reduce((most, weight) => Math.max(most, stagingBytes(weight)), 0),
  };
}

/** Size of a packed matrix: columns in panels of 8, each with its bias. */
function packedBytes({ rows, columns }: PlanWeight): number {
  return rounded(8 * Math.ceil(rows / 8) * (columns + 1));
}

function stagingBytes({ rows, columns }: PlanWeight): number {
  return 4 * (rows * columns + 2 * rows + columns);
}

/** Bytes of `numbers` numbers and of the gap after them. */
function rounded(numbers: number): number {
  return 64 * Math.ceil((4 * numbers) / 64);
}

/** Bytes of each part of the workspace. */
export interface WorkspaceParts {
  /** Begin of each slot of the plan. */
  slots: number[];
  /** Results of ROWS_AT_ONCE rows for the ops that products leave to do: activations, gates, residuals. */
  product: number;
  /** Size of the cosines, and of the sines, for one table of frequencies. */
  angles: number;
  /** Queries rotated to their places in the cache, of a layer at a time; 0 without sinks. */
  sinkQueries: number;
  scores: number;
  slotsOfRows: number;
  experts: ExpertParts;
  delta: DeltaParts;
  /** The tables of all sequences. */
  blockTables: number;
  /** Tables of what distances add to scores. */
  relative: number;
  total: number;
}

/** Bytes for ROWS_AT_ONCE rows of the widest mixture of experts; 0 in a network without one. */
export interface ExpertParts {
  /** The rows that go to one expert, side by side. */
  inputs: number;
  gated: number;
  /** Sum of each row over its experts. */
  sums: number;
}

/** Bytes for what a step computes besides the states of its sequences; 0 in a network without states. */
export interface DeltaParts {
  /** What each head of each row keeps of its state and takes over: two numbers. */
  factors: number;
  /** A query and a key. */
  keys: number;
  /** The largest state, of rows that keep none: those of drafts, and of sequences without a slot. */
  lostState: number;
  /** Inputs of a convolution before the first row, where rows of a draft come before it. */
  history: number;
  /** The output of a row that is computed again. */
  output: number;
}

export function workspaceParts(plan: NetworkPlan, options: ExecutorOptions): WorkspaceParts {
  const { maxNumTokens, maxNumSequences, maxLogitRows, maxSeqLen, tokensPerBlock } = options;
  const { numHeads, rotaryDim, ropeTables = [] } = plan.attention;
  const widestRope = Math.max(rotaryDim, ...ropeTables.map(({ length }) => 2 * length));
  const widestKey = Math.max(0, ...plan.caches.map(({ keyDim }) => keyDim));
  const rowsOf = {
    tokens: maxNumTokens,
    logits: maxLogitRows,
    distances: plan.attention.distances?.count ?? 0,
  };
  const slots = plan.slots.map(({ rows, width }) => rounded(rowsOf[rows] * width));
  const hasSinks = (options.sinkTokenLength ?? 0) > 0;
  const product = rounded(ROWS_AT_ONCE * Math.max(...productWeights(plan).map(({ rows }) => rows)));
  const angles = rounded((maxNumTokens * widestRope) / 2);
  const sinkQueries = hasSinks ? rounded(maxNumTokens * numHeads * widestKey) : 0;
  // Scores need the size that attentionScratchBytes gives.
  const scores = 4 * rounded(maxSeqLen + 8) + 256;
  const slotsOfRows = rounded(maxNumTokens);
  const experts = expertParts(plan);
  const delta = deltaParts(plan, maxNumTokens);
  const window = resolveWindow(options);
  const blockTables = rounded(maxNumSequences * longestTable(maxSeqLen, tokensPerBlock, window));
  const relative = rounded(relativeFloats(plan, options).reduce((sum, floats) => sum + floats, 0));
  const angleTables = 2 * (1 + ropeTables.length) * (hasSinks ? 2 : 1);
  const total =
    slots.reduce((sum, bytes) => sum + bytes, 0) +
    (product + angleTables * angles + sinkQueries + scores + slotsOfRows + blockTables + relative) +
    (experts.inputs + experts.gated + experts.sums) +
    (delta.factors + delta.keys + delta.lostState + delta.history + delta.output);
  return {
    ...{ slots, product, angles, sinkQueries, scores, slotsOfRows, experts, delta },
    ...{ blockTables, relative, total },
  };
}

function expertParts(plan: NetworkPlan): ExpertParts {
  const { ops, values } = plan;
  const mixtures = ops.filter((op) => op.op === 'experts');
  const bytesOf = (widths: number[]) => rounded(ROWS_AT_ONCE * Math.max(0, ...widths));
  return {
    inputs: bytesOf(mixtures.map(({ input }) => values[input]!.width)),
    gated: bytesOf(mixtures.map((op) => expertWidth(op, plan))),
    sums: bytesOf(mixtures.map(({ output }) => values[output]!.width)),
  };
}

function deltaParts({ ops, states = [] }: NetworkPlan, maxNumTokens: number): DeltaParts {
  const rules = ops.filter((op) => op.op === 'gatedDelta');
  const ofScans = ops.map((op) => (op.op === 'selectiveScan' ? op.heads * op.headDim : 0));
  return {
    factors: rounded(maxNumTokens * Math.max(0, ...rules.map(({ valueHeads }) => 2 * valueHeads))),
    keys: rounded(Math.max(0, ...rules.map(({ keyDim }) => 2 * keyDim))),
    lostState: rounded(Math.max(0, ...states.map(({ size }) => size))),
    history: rounded(Math.max(0, ...states.map(({ size }) => size))),
    output: rounded(
      Math.max(0, ...rules.map(({ valueHeads, valueDim }) => valueHeads * valueDim), ...ofScans),
    ),
  };
}

/** Bytes of the log of drafts: see StateLog. */
function logBytes(
  plan: NetworkPlan,
  { numDraftSlots = 0, stateDraftRows = 0 }: Pick<ExecutorOptions, 'numDraftSlots' | 'stateDraftRows'>,
): number {
  return numDraftSlots * stateDraftRows * stateInputBytes(plan);
}

/** Where the states lie in a slot, and how long it is, in bytes. */
export function stateOffsets({ states = [] }: NetworkPlan): { offsets: number[]; slotBytes: number } {
  const offsets = states.map((_, index) => stateBytesPerSlot(states.slice(0, index)));
  return { offsets, slotBytes: stateBytesPerSlot(states) };
}

/** Bytes that a layout takes in the heap. */
export function heapBytes({ packedWeights, kvCache, states, workspace, staging }: MemoryLayout): number {
  return packedWeights + Math.max(kvCache, staging) + states + workspace + BESIDES_BYTES;
}

/** Throws one sentence with the numbers if a layout is larger than a heap can be. */
export function checkHeap(layout: MemoryLayout): void {
  const bytes = heapBytes(layout);
  if (bytes <= MAX_HEAP_BYTES) return;
  const { packedWeights, kvCache, states, workspace } = layout;
  const ofStates = states === 0 ? '' : `states ${mebibytes(states)}, `;
  throw new Error(
    `The wasm executor would take ${mebibytes(bytes)} (weights as f32 ${mebibytes(packedWeights)}, KV cache ` +
      `${mebibytes(kvCache)}, ${ofStates}workspace ${mebibytes(workspace)}), but a heap of WebAssembly holds ` +
      `${mebibytes(MAX_HEAP_BYTES)} at most; take a smaller model, a smaller KV cache or the native executor.`,
  );
}

function mebibytes(bytes: number): string {
  return `${Math.ceil(bytes / 2 ** 20)} MiB`;
}

/** The layout's bytes in the form of Executor.memory. */
export function executorMemory(layout: MemoryLayout): RunnerMemory {
  return {
    weightBytes: layout.packedWeights + layout.tables,
    kvCacheBytes: layout.kvCache,
    stateBytes: layout.states,
    workspaceBytes: layout.workspace + Math.max(0, layout.staging - layout.kvCache),
  };
}
