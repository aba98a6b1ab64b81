import { option, says } from '../../../base/named-text.js';
import { availableMemory } from '../../../kvcache/available-memory.js';
import { resolveWindow } from '../../../kvcache/kv-cache-options.js';
import { attendsBothWays, takesWholeSequences } from '../../../network/attention-mask.js';
import type { NetworkPlan } from '../../../network/plan.js';
import type { EngineTensor } from '../../directory/engine-directory.js';
import { type UniformPlan, uniformPlan } from '../cache-layers.js';
import type { ExecutorOptions } from '../executor.js';
import type { NetworkRunner, OpenRunner, RunnableEngine } from '../portable/network-runner.js';
import { WeightReader } from '../portable/weights/weight-reader.js';
import { type PoolShape, unitPlaces } from './attention-units.js';
import { mixtureWidths } from './experts-graph.js';
import { ForwardGraph, hiddenValue, type NetworkParts } from './forward-graph.js';
import { findGpu, type Gpu } from './gpu.js';
import { DType, Graph } from './graph/graph.js';
import { Ops } from './graph/ops.js';
import { Variable } from './graph/variable.js';
import { writeHead } from './head-graph.js';
import { KvPool, POOL } from './kv-pool.js';
import { loadTensorFlow, TensorFlowError } from './load-tensorflow.js';
import { NetworkWeights } from './network-weights.js';
import { cpuRowDevice, type RowRule, rowRuleOf } from './row-rule.js';
import { writeSampling } from './sampling-graph.js';
import { type Feed, Session } from './session.js';
import { STEP_UNIT_BYTES, TensorFlowRunner } from './tensorflow-runner.js';

type UniformEngine = RunnableEngine & { plan: UniformPlan };

/**
 * Opens the NetworkRunner on TensorFlow. Throws a TensorFlowError if it is not installed, or the device has too little memory.
 */
export const openTensorFlowRunner: OpenRunner = async (given, options): Promise<NetworkRunner> => {
  checkCache(options);
  const engine = uniform(given);
  const tensorflow = loadTensorFlow(options.threads);
  const window = resolveWindow(options);
  const { isUsingGpuDevice } = tensorflow.backend();
  const rule = ruleOf(engine, options, isUsingGpuDevice);
  const products = productType(engine, isUsingGpuDevice ? findGpu() : null);
  const { graph, weights, pool, shape } = writeNetwork(engine, options, rule, products);
  const memory = memoryOf(engine, options, weights, pool);
  if (!isUsingGpuDevice) checkRoom(memory);
  const session = new Session(tensorflow, graph);
  try {
    loadWeights(engine, weights, session);
    session.run({}, [POOL.clear]);
  } catch (error) {
    session.close();
    throw error;
  }
  return new TensorFlowRunner(session, {
    plan: engine.plan,
    options,
    window,
    pool: shape,
    rule,
    device: `${isUsingGpuDevice ? 'GPU' : 'CPU'}${products === 'f32' ? '' : `, products in ${products}`}`,
    memory,
  });
};

function checkCache({ kvDtype }: ExecutorOptions): void {
  if (kvDtype === 'f32' || kvDtype === 'bf16') return;
  throw new TensorFlowError(
    says`The tensorflow executor keeps the KV cache as f32 or bf16, but ${option('kvDtype')} is ${kvDtype}.`,
  );
}

function uniform(engine: RunnableEngine): UniformEngine {
  return { ...engine, plan: uniformPlan(engine.plan, 'tensorflow') };
}

/** Checks that there is enough memory. Linux would grant more than there is, and end the process that then uses it. */
function checkRoom({ weightBytes, kvCacheBytes, workspaceBytes }: ReturnType<NetworkRunner['memory']>): void {
  const needed = weightBytes + kvCacheBytes + workspaceBytes;
  const { bytes, from } = availableMemory();
  if (needed <= bytes) return;
  throw new TensorFlowError(
    `The device has no memory left for it: ${needed} bytes are needed (${weightBytes} of weights, ${kvCacheBytes} of KV cache, ${workspaceBytes} to work in), and there are ${bytes} by ${from}; lower the KV cache (--kv-cache-tokens, --memory-fraction), --max-batch-tokens or --max-active-requests.`,
  );
}

/**
 * Shape of the pool, with blocks after those of the cache: for zeros, for unused rows, and for chunks held
 * separately while they run.
 */
function poolShape({ plan }: UniformEngine, options: ExecutorOptions): { shape: PoolShape; blocks: number } {
  const { numBlocks, numSecondaryBlocks = 0, tokensPerBlock, maxNumTokens, maxNumSequences } = options;
  const window = resolveWindow(options);
  const zeroBlock = numBlocks + numSecondaryBlocks;
  const fresh = window === null ? 0 : Math.ceil(maxNumTokens / tokensPerBlock) + 2 * maxNumSequences;
  const shape: PoolShape = {
    tokensPerBlock,
    numKvHeads: plan.attention.numKvHeads,
    window,
    bothWays: attendsBothWays(plan),
    takesWhole: takesWholeSequences(plan),
    zeroBlock,
    wasteBlock: zeroBlock + 1,
    firstFreshBlock: zeroBlock + 2,
  };
  return { shape, blocks: zeroBlock + 2 + fresh };
}

/** Rule for this device. TensorFlow has the threads that the first model of the process asked for. */
function ruleOf({ plan }: UniformEngine, options: ExecutorOptions, isGpu: boolean): RowRule {
  const threads = Number(process.env.TF_NUM_INTRAOP_THREADS) || options.threads;
  return rowRuleOf(plan, isGpu ? 'any' : cpuRowDevice(), {
    threads,
    unitPlaces: unitPlaces(options.tokensPerBlock),
  });
}

function writeNetwork(engine: UniformEngine, options: ExecutorOptions, rule: RowRule, products: ProductType) {
  const { plan } = engine;
  const graph = new Graph();
  const ops = new Ops(graph);
  const weights = new NetworkWeights(ops, plan, PRODUCT_DTYPES[products]);
  const { shape, blocks } = poolShape(engine, options);
  const { tokensPerBlock } = options;
  const dtype = options.kvDtype === 'bf16' ? DType.bfloat16 : DType.float;
  const pool = new KvPool(ops, plan.attention, { blocks, tokensPerBlock, dtype });
  const width = plan.values[hiddenValue(plan)]!.width;
  const hidden = new Variable(graph, 'hidden', {
    dtype: DType.float,
    shape: [options.maxNumTokens + 1, width],
  });
  const logits = new Variable(graph, 'logits', { dtype: DType.float, shape: [-1, plan.outputWidth] });
  const parts: NetworkParts = {
    ops,
    plan,
    weights,
    pool,
    hidden,
    tokensPerBlock,
    window: shape.window,
    rule,
  };
  ForwardGraph.write(parts, 'single', false);
  ForwardGraph.write(parts, 'tiled', true);
  writeHead(parts, logits);
  if (plan.outputWidth === plan.vocabSize) writeSampling(ops, logits, plan.vocabSize);
  writePool(ops, pool, hidden, [options.maxNumTokens + 1, width]);
  return { graph, weights, pool, shape };
}

function writePool(ops: Ops, pool: KvPool, hidden: Variable, hiddenShape: number[]): void {
  const { graph } = ops;
  graph.within('pool', () => {
    const attributes = { T: { type: DType.float }, index_type: { type: DType.int32 } };
    const zeros = graph.node('Fill', { inputs: [ops.ints(hiddenShape), ops.float(0)], attributes });
    ops.group([...pool.clear(), hidden.assign(zeros)], POOL.clear);
    const from = graph.placeholder(POOL.from, DType.int32, [-1]);
    const to = graph.placeholder(POOL.to, DType.int32, [-1]);
    ops.group(pool.copy(from, to), POOL.copy);
    ops.identity(pool.areFinite(from), DType.float, POOL.areFinite);
  });
}

function loadWeights(engine: RunnableEngine, weights: NetworkWeights, session: Session): void {
  const reader = new WeightReader(engine);
  try {
    for (const load of weights.loads) {
      const feeds: Record<string, Feed> = {};
      for (const { weight, feed } of load.weights) {
        const { name, kind, rows, columns } = weight;
        feeds[feed] = { values: reader.read(name), shape: kind === 'vector' ? [columns] : [rows, columns] };
      }
      session.run(feeds, [load.run]);
    }
  } finally {
    reader.close();
  }
}

/** Bytes that such a runner takes on this GPU, or on the CPU if it is null. Takes no memory. */
export function measureTensorFlow(
  given: RunnableEngine,
  options: ExecutorOptions,
  gpu: Gpu | null,
): ReturnType<NetworkRunner['memory']> {
  const engine = uniform(given);
  const rule = ruleOf(engine, options, gpu !== null);
  const { weights, pool } = writeNetwork(engine, options, rule, productType(engine, gpu));
  return memoryOf(engine, options, weights, pool);
}

/** All memory that is taken on the device: none of it grows with requests. */
function memoryOf(engine: UniformEngine, options: ExecutorOptions, weights: NetworkWeights, pool: KvPool) {
  const { shape, blocks } = poolShape(engine, options);
  return {
    weightBytes: weights.bytes,
    kvCacheBytes: shape.zeroBlock * pool.bytesPerBlock,
    workspaceBytes: workspaceBytes(engine, options) + (blocks - shape.zeroBlock) * pool.bytesPerBlock,
  };
}

/** Most bytes that a step takes besides weights and cache: its rows, its units of attention, its logits. */
function workspaceBytes({ plan }: UniformEngine, options: ExecutorOptions): number {
  const widthOf = (rows: 'tokens' | 'logits') =>
    Math.max(
      0,
      ...plan.values.filter((value) => value.rows === rows).map(({ width }) => width),
      ...plan.ops.flatMap((op) => (op.op === 'experts' ? mixtureWidths(op, plan) : [])),
    );
  // A gated product is twice as wide as its value, and an op holds its inputs and its output at the same time.
  const perRow = 4 * 2 * widthOf('tokens');
  const perLogitRow = 4 * Math.max(widthOf('logits'), plan.outputWidth);
  return 3 * (options.maxNumTokens * perRow + options.maxLogitRows * perLogitRow) + STEP_UNIT_BYTES;
}

/**
 * Type in which matrices are held and multiplied; sums, and everything that is not a product with a weight matrix, are
 * float32.
 */
export type ProductType = 'f32' | 'bf16' | 'f16';

const PRODUCT_DTYPES: Readonly<Record<ProductType, DType>> = {
  f32: DType.float,
  bf16: DType.bfloat16,
  f16: DType.half,
};

/**
 * bf16 on a GPU that multiplies it (compute capability 8.0 and more), f16 on one that multiplies that (7.x), else f32: on a
 * CPU, and if the driver reports nothing. An engine whose matrices are stored as f32 (`--weights f32`) is multiplied in f32
 * everywhere. SKEIN_TENSORFLOW_PRODUCTS overrides this.
 *
 * @param gpu null: a CPU computes, or nothing is known of the GPU
 * @throws TensorFlowError
 */
export function productType(
  { plan, tensors }: { plan: NetworkPlan; tensors: readonly EngineTensor[] },
  gpu: Gpu | null,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): ProductType {
  const named = environment.SKEIN_TENSORFLOW_PRODUCTS;
  if (named) {
    if (named in PRODUCT_DTYPES) return named as ProductType;
    throw new TensorFlowError(
      `SKEIN_TENSORFLOW_PRODUCTS is "${named}"; it must be ${Object.keys(PRODUCT_DTYPES).join(', ')} or absent.`,
    );
  }
  const matrices = new Set(plan.weights.filter(({ kind }) => kind === 'matrix').map(({ name }) => name));
  const isExact = tensors.every(({ name, dtype }) => !matrices.has(name) || dtype === 'f32');
  if (gpu === null || isExact || gpu.computeCapability < 7) return 'f32';
  return gpu.computeCapability >= 8 ? 'bf16' : 'f16';
}
