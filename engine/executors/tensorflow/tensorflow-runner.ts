import type { AttentionWindow } from '../../../kvcache/attention-window.js';
import type { PackedBatch } from '../../packed-call/packed-batch.js';
import type { SamplingBatch, SamplingOutput } from '../../packed-call/sampling-batch.js';
import type { UniformPlan } from '../cache-layers.js';
import type { ExecutorOptions } from '../executor.js';
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
import { headStart, looksUpResults } from './forward-graph.js';
import { HEAD } from './head-graph.js';
import { POOL } from './kv-pool.js';
import { filledRows, type RowRule } from './row-rule.js';
import type { Session } from './session.js';
import { anglesOf, type StepContext, slicesOf, stepFeeds } from './step-feeds.js';

/** Most bytes that the units of attention of one step may take; a batch that needs more is run as several steps. */
export const STEP_UNIT_BYTES = 256 << 20;

export interface RunnerContext {
  plan: UniformPlan;
  options: ExecutorOptions;
  window: AttentionWindow | null;
  pool: PoolShape;
  rule: RowRule;
  device: string;
  memory: ReturnType<NetworkRunner['memory']>;
}

/** Runs batches on a loaded graph: a batch takes one or several steps, each one call. */
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
    const { plan, pool, window, options, rule } = context;
    this.#stepContext = {
      plan,
      pool,
      window,
      wasteRow: options.maxNumTokens,
      looksUpResults: looksUpResults(rule),
    };
    this.#sampler = new DeviceSampler(session, plan.vocabSize);
    this.#means = plan.ops[headStart(plan)]!.op === 'meanPool';
  }

  forward(batch: PackedBatch): void {
    this.#batch = batch;
    const angles = anglesOf(batch, this.#stepContext);
    let zeroed = [...batch.newBlocks.subarray(0, batch.numNewBlocks)];
    for (const pieces of this.#steps(batch)) {
      const step = packStep(batch, pieces, this.#context.pool, this.#context.rule);
      const scope = step.tiles.owner.length > 0 ? 'tiled' : 'single';
      this.#session.run(stepFeeds(scope, batch, step, zeroed, angles, this.#stepContext), [`${scope}/done`]);
      zeroed = [];
    }
  }

  head(rows: Int32Array): void {
    this.#numRows = rows.length;
    const most = Math.min(this.#context.rule.most, rows.length);
    for (let at = 0; at < rows.length; at += most) {
      const pass = rows.subarray(at, at + most);
      const filled = filledRows(pass.length, this.#context.rule);
      const feeds = this.#means
        ? this.#meanFeeds(at, pass.length, filled)
        : { [HEAD.rows]: filledUp(pass, filled) };
      this.#session.run(feeds, [at === 0 ? HEAD.first : HEAD.more]);
    }
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

  /**
   * Cuts the sequences' rows, in the order of the batch, into steps whose units do not take more memory than allowed.
   */
  *#steps(batch: PackedBatch): Generator<Piece[]> {
    const { pool, plan, rule } = this.#context;
    const most = Math.max(1, Math.floor(STEP_UNIT_BYTES / unitBytes(plan, pool)));
    let pieces: Piece[] = [];
    let [units, rows] = [0, 0];
    for (let sequence = 0; sequence < batch.numSequences; sequence++) {
      const first = batch.queryStart[sequence]!;
      const end = batch.queryStart[sequence + 1]!;
      const length = batch.contextLength[sequence]!;
      for (let at = first; at < end; ) {
        const place = length - (end - at);
        const fits = (count: number) =>
          rows + count <= rule.most &&
          units + countUnits({ sequence, first: at, count, place }, length, pool) <= most;
        let count = end - at;
        if (!pool.takesWhole && !fits(count)) {
          // Use the room that is left, if it is worth a tile; else all that a separate step holds.
          const room = rule.most - rows;
          count = Math.min(count, room >= TILE_ROWS ? room : rule.most);
          while (count > TILE_ROWS && !fits(count)) count = Math.ceil(count / 2 / TILE_ROWS) * TILE_ROWS;
        }
        if (pieces.length > 0 && !fits(count)) {
          yield pieces;
          pieces = [];
          [units, rows] = [0, 0];
          continue;
        }
        const piece = { sequence, first: at, count, place };
        pieces.push(piece);
        units += countUnits(piece, length, pool);
        rows += count;
        at += count;
        // The rest of the sequence reads what this piece writes, so it needs a later step.
        if (at < end) {
          yield pieces;
          pieces = [];
          [units, rows] = [0, 0];
        }
      }
    }
    if (pieces.length > 0) yield pieces;
  }

  /** Feeds for means of whole sequences, in their order; rows that only fill up are the mean of one row each. */
  #meanFeeds(first: number, count: number, filled: number) {
    const { queryStart } = this.#batch!;
    const [begin, end] = [queryStart[first]!, queryStart[first + count]!];
    const size = end - begin + filled - count;
    const rows = Int32Array.from({ length: size }, (_, i) => Math.min(begin + i, end - 1));
    const segments = Int32Array.from({ length: size }, (_, i) => count + i - (end - begin));
    for (let sequence = 0; sequence < count; sequence++) {
      const at = (place: number) => queryStart[first + place]! - begin;
      segments.fill(sequence, at(sequence), at(sequence + 1));
    }
    const shape = [size];
    return { [HEAD.rows]: { values: rows, shape }, [HEAD.segments]: { values: segments, shape } };
  }
}

/** Bytes of a tile's unit, which is larger than a row's: scores and weights, and its keys and values. */
function unitBytes({ attention }: UniformPlan, { tokensPerBlock }: PoolShape): number {
  const { numHeads, numKvHeads, headDim } = attention;
  const places = blocksPerUnit(tokensPerBlock) * tokensPerBlock;
  return 4 * places * (2 * TILE_ROWS * numHeads + 2 * numKvHeads * headDim);
}

function filledUp(rows: Int32Array, count: number) {
  const values = new Int32Array(count);
  values.set(rows);
  return { values, shape: [values.length] };
}

/**
 * Cuts copies into as few calls as possible with the effect of one after the other: no call copies from a block that it writes.
 */
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
