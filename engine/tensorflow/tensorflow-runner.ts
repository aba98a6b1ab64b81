import type { AttentionWindow } from '../../kvcache/attention-window.js';
import type { SamplingBatch, SamplingOutput } from '../decoding/sampling-batch.js';
import type { ExecutorOptions } from '../executor.js';
import type { NetworkPlan } from '../network/plan.js';
import type { PackedBatch } from '../packed-batch.js';
import type { NetworkRunner } from '../portable/network-runner.js';
import {
  blocksPerUnit,
  countUnits,
  type Piece,
  type PoolShape,
  packStep,
  TILE_ROWS,
} from './attention-units.js';
import { DeviceSampler } from './device-sampler.js';
import { headStart } from './forward-graph.js';
import { HEAD } from './head-graph.js';
import { POOL } from './kv-pool.js';
import type { Session } from './session.js';
import { anglesOf, type StepContext, slicesOf, stepFeeds } from './step-feeds.js';

/** What the units of attention of one step may take; a batch that needs more is run as several steps. */
export const STEP_UNIT_BYTES = 256 << 20;
/**
 * Rows of a product, filled up: fewer are multiplied by other kernels, whose sums are rounded otherwise, so that a row alone
 * would not give the bits that it gives in a crowd.
 */
const LEAST_ROWS = 4;

export interface RunnerContext {
  plan: NetworkPlan;
  options: ExecutorOptions;
  window: AttentionWindow | null;
  pool: PoolShape;
  device: string;
  memory: ReturnType<NetworkRunner['memory']>;
}

/** Feeds a loaded graph: a batch is one or several steps of it, each one call. */
export class TensorFlowRunner implements NetworkRunner {
  readonly name = 'tensorflow';
  readonly device: string;
  readonly #session: Session;
  readonly #context: RunnerContext;
  readonly #stepContext: StepContext;
  readonly #sampler: DeviceSampler;
  readonly #means: boolean;
  #batch: PackedBatch | null = null;
  #numRows = 0;

  constructor(session: Session, context: RunnerContext) {
    this.#session = session;
    this.#context = context;
    this.device = context.device;
    const { plan, pool, window, options } = context;
    this.#stepContext = { plan, pool, window, wasteRow: options.maxNumTokens };
    this.#sampler = new DeviceSampler(session, plan.vocabSize);
    this.#means = plan.ops[headStart(plan)]!.op === 'meanPool';
  }

  forward(batch: PackedBatch): void {
    this.#batch = batch;
    const angles = anglesOf(batch, this.#stepContext);
    let zeroed = [...batch.newBlocks.subarray(0, batch.numNewBlocks)];
    for (const pieces of this.#steps(batch)) {
      const step = packStep(batch, pieces, this.#context.pool, LEAST_ROWS);
      const scope = step.tiles.owner.length > 0 ? 'tiled' : 'single';
      this.#session.run(stepFeeds(scope, batch, step, zeroed, angles, this.#stepContext), [`${scope}/done`]);
      zeroed = [];
    }
  }

  head(rows: Int32Array): void {
    this.#numRows = rows.length;
    const feeds = this.#means ? this.#meanFeeds() : { [HEAD.rows]: filledUp(rows) };
    this.#session.run(feeds, [HEAD.run]);
  }

  logits(): Float32Array {
    const [logits] = this.#session.run({}, [HEAD.logits]);
    return (logits as Float32Array).subarray(0, this.#numRows * this.#context.plan.outputWidth);
  }

  sample(sampling: SamplingBatch, output: SamplingOutput): boolean {
    return this.#sampler.sample(sampling, output);
  }

  copyBlocks(source: Int32Array, target: Int32Array): void {
    for (const { from, to } of independentCopies(source, target)) {
      this.#session.run({ [POOL.from]: this.#slices(from), [POOL.to]: this.#slices(to) }, [POOL.copy]);
    }
  }

  areFinite(blocks: Int32Array): boolean {
    const [sum] = this.#session.run({ [POOL.from]: this.#slices(blocks) }, [POOL.areFinite]);
    return sum![0] === 0;
  }

  memory(): ReturnType<NetworkRunner['memory']> {
    return { ...this.#context.memory };
  }

  close(): void {
    this.#session.close();
  }

  #slices(blocks: ArrayLike<number>) {
    const values = slicesOf(blocks, this.#context.pool.numKvHeads);
    return { values, shape: [values.length] };
  }

  /** Each sequence's rows, in the order of the batch, parted so that no step's units take more than they may. */
  *#steps(batch: PackedBatch): Generator<Piece[]> {
    const { pool, plan } = this.#context;
    const most = Math.max(1, Math.floor(STEP_UNIT_BYTES / unitBytes(plan, pool)));
    let pieces: Piece[] = [];
    let units = 0;
    for (let sequence = 0; sequence < batch.numSequences; sequence++) {
      const first = batch.queryStart[sequence]!;
      const end = batch.queryStart[sequence + 1]!;
      const length = batch.contextLength[sequence]!;
      for (let at = first; at < end; ) {
        const place = length - (end - at);
        const fits = (count: number) =>
          units + countUnits({ sequence, first: at, count, place }, length, pool) <= most;
        let count = end - at;
        while (!pool.bothWays && count > TILE_ROWS && !fits(count))
          count = Math.ceil(count / 2 / TILE_ROWS) * TILE_ROWS;
        if (pieces.length > 0 && !fits(count)) {
          yield pieces;
          pieces = [];
          units = 0;
          continue;
        }
        const piece = { sequence, first: at, count, place };
        pieces.push(piece);
        units += countUnits(piece, length, pool);
        at += count;
        // The rest of a sequence reads what this piece writes.
        if (at < end) {
          yield pieces;
          pieces = [];
          units = 0;
        }
      }
    }
    if (pieces.length > 0) yield pieces;
  }

  /** Means are of whole sequences, in their order. */
  #meanFeeds() {
    const { numSequences, queryStart, numTokens } = this.#batch!;
    const rows = Int32Array.from({ length: numTokens }, (_, row) => row);
    const segments = new Int32Array(numTokens);
    for (let sequence = 0; sequence < numSequences; sequence++) {
      segments.fill(sequence, queryStart[sequence]!, queryStart[sequence + 1]!);
    }
    const shape = [numTokens];
    return { [HEAD.rows]: { values: rows, shape }, [HEAD.segments]: { values: segments, shape } };
  }
}

/** Of a tile's unit, which is larger than a row's: scores and weights, and its keys and values. */
function unitBytes({ attention }: NetworkPlan, { tokensPerBlock }: PoolShape): number {
  const { numHeads, numKvHeads, headDim } = attention;
  const places = blocksPerUnit(tokensPerBlock) * tokensPerBlock;
  return 4 * places * (2 * TILE_ROWS * numHeads + 2 * numKvHeads * headDim);
}

function filledUp(rows: Int32Array) {
  const values = new Int32Array(Math.max(LEAST_ROWS, rows.length));
  values.set(rows);
  return { values, shape: [values.length] };
}

/** Copies as if one came after the other, in as few calls as that takes: what is written is not copied from in the same call. */
function* independentCopies(
  source: Int32Array,
  target: Int32Array,
): Generator<{ from: number[]; to: number[] }> {
  let [from, to]: [number[], number[]] = [[], []];
  const written = new Set<number>();
  for (let i = 0; i < source.length; i++) {
    if (written.has(source[i]!) || written.has(target[i]!)) {
      yield { from, to };
      [from, to] = [[], []];
      written.clear();
    }
    from.push(source[i]!);
    to.push(target[i]!);
    written.add(target[i]!);
  }
  if (from.length > 0) yield { from, to };
}
