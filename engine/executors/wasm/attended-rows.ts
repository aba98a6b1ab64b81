import { MAX_INT32 } from '../../../base/int32.js';
import type { AttentionWindow } from '../../../kvcache/attention-window.js';
import { longestTable, resolveWindow } from '../../../kvcache/kv-cache-options.js';
import { headsOf, rotaryDimOf } from '../../../network/cache-layers.js';
import type { NetworkPlan, PlanOp } from '../../../network/plan.js';
import type { PackedBatch } from '../../packed-call/packed-batch.js';
import { type CachedHeads, cachedHeads } from '../cache-layers.js';
import type { ExecutorOptions } from '../executor.js';
import { writeRopeAngles } from '../portable/rope-angles.js';
import type { WasmHeap } from './heap.js';
import type { RelativeTable, RelativeTables } from './relative-tables.js';
import type { RunnerParts } from './runner-parts.js';
import type { Workspace } from './workspace.js';

const ALL = MAX_INT32;
const NO_TABLE: RelativeTable = { biases: 0, queries: 0, keys: 0 };

type Rope = Extract<PlanOp, { op: 'ropeAndCache' }>;
type Attention = Extract<PlanOp, { op: 'attention' }>;

/** Heads that lie side by side in rows; stride: floats between rows. */
interface Heads {
  count: number;
  headDim: number;
  stride: number;
}

/**
 * RoPE, the paged cache and attention over the rows of a step. A chunk that would write over keys which its own earlier
 * rows still attend to (its blocks take turns: kvcache/attention-window.ts) is cut into pieces that do not:
 *
 *   ring of 8 slots, window 7    a piece is as long as what the ring has over the window, and one: 2 rows
 *
 *   all other rows   store .......... attend ..........
 *   such a chunk                      store 2, attend 2, store 2, attend 2 ...
 */
export class AttendedRows {
  readonly #heap: WasmHeap;
  readonly #workspace: Workspace;
  readonly #plan: NetworkPlan;
  /** Pointers to vectors. */
  readonly #vectors: ReadonlyMap<string, number>;
  /** Heads that each layer keeps. */
  readonly #heads: readonly CachedHeads[];
  readonly #options: ExecutorOptions;
  readonly #window: AttentionWindow | null;
  readonly #tableEntries: number;
  /** Rows of a piece: Infinity if blocks never take turns. */
  readonly #pieceRows: number;
  /** Tables of frequencies that ops name, 0 being the batch's. */
  readonly #tables: readonly number[];
  readonly #relative: RelativeTables;
  #batch!: PackedBatch;
  /** 1 for each sequence of the batch whose chunk is cut. */
  readonly #isCut: Uint8Array;
  #anyCut = false;

  constructor({ heap, workspace, plan, weights, options, relative }: RunnerParts) {
    this.#relative = relative;
    this.#heap = heap;
    this.#vectors = weights.vectors;
    this.#workspace = workspace;
    this.#plan = plan;
    this.#heads = plan.caches.map((_, layer) => cachedHeads(plan, layer, 'wasm'));
    this.#options = options;
    this.#window = resolveWindow(options);
    this.#tableEntries = longestTable(options.maxSeqLen, options.tokensPerBlock, this.#window);
    this.#pieceRows = Infinity;
    if (this.#window !== null) {
      const { maxAttentionWindow, sinkTokenLength, ringBlocks } = this.#window;
      this.#pieceRows = ringBlocks * options.tokensPerBlock - (maxAttentionWindow - sinkTokenLength) + 1;
    }
    const ropes = plan.ops.filter((op): op is Rope => op.op === 'ropeAndCache');
    this.#tables = [...new Set(ropes.map(tableOf))];
    this.#isCut = new Uint8Array(options.maxNumSequences);
  }

  /**
   * Prepares what all layers of a step share: zeroes its new blocks, computes the angles, brings slots and tables into
   * the heap.
   */
  begin(batch: PackedBatch): void {
    this.#batch = batch;
    const { numNewBlocks, newBlocks, numTokens, slots } = batch;
    const { floats, ints } = this.#heap;
    for (const [layer, pool] of this.#workspace.pools.entries()) {
      const floatsOfBlock = this.#floatsPerBlock(layer);
      const base = pool / 4;
      for (let i = 0; i < numNewBlocks; i++) {
        const begin = base + newBlocks[i]! * floatsOfBlock;
        floats.fill(0, begin, begin + floatsOfBlock);
      }
    }
    ints.set(slots.subarray(0, numTokens), this.#workspace.slots / 4);
    this.#anyCut = false;
    for (let sequence = 0; sequence < batch.numSequences; sequence++) this.#beginSequence(sequence);
    this.#makeAngles(batch);
  }

  ropeAndCache(op: Rope): void {
    const numHeads = headsOf(this.#plan.attention, op.layer);
    const { numKvHeads, headDim } = this.#heads[op.layer]!;
    const qkv = this.#workspace.values[op.qkv]!;
    const { numTokens, numSequences, queryStart } = this.#batch;
    if (this.#workspace.sinkAngles.length > 0) this.#turnForSinks(op);
    const keyHeads = op.queriesOnly ? 0 : numKvHeads;
    const heads = { count: numHeads + keyHeads, headDim, stride: this.#stride(op.qkv) };
    this.#turn(qkv, heads, op, this.#workspace.angles);
    if (op.norms !== undefined)
      this.#normTurned(qkv, { ...heads, count: numHeads }, op.norms.query, op.norms.epsilon);
    if (op.queriesOnly) return;
    if (op.norms !== undefined) {
      const keys = qkv + 4 * numHeads * headDim;
      this.#normTurned(keys, { ...heads, count: numKvHeads }, op.norms.key, op.norms.epsilon);
    }
    if (!this.#anyCut) {
      this.#store(op.qkv, op.layer, 0, numTokens);
      return;
    }
    for (let s = 0; s < numSequences; s++) {
      if (!this.#isCut[s]) this.#store(op.qkv, op.layer, queryStart[s]!, queryStart[s + 1]!);
    }
  }

  attend(op: Attention): void {
    if (op.mask?.segments) {
      this.#attendSegments(op);
      return;
    }
    const { numSequences, queryStart, contextLength, pictures } = this.#batch;
    const { bothWays, withinPictures } = op.mask ?? {};
    let next = 0;
    for (let s = 0; s < numSequences; s++) {
      const end = queryStart[s + 1]!;
      let row = queryStart[s]!;
      for (; withinPictures && pictures && pictures[next]! < end; next += 2) {
        const [first, count] = [pictures[next]!, pictures[next + 1]!];
        this.#attendPieces(op, s, row, first);
        row = first + count;
        this.#attendRows(op, s, { begin: first, end: row, seen: contextLength[s]! - (end - row) });
      }
      if (bothWays) this.#attendRows(op, s, { begin: row, end, seen: contextLength[s]! });
      else this.#attendPieces(op, s, row, end);
    }
  }

  /** Attends from rows of which each sees up to itself, and stores them where that is done piece by piece. */
  #attendPieces(op: Attention, sequence: number, begin: number, end: number): void {
    const isCut = this.#isCut[sequence] === 1;
    const rowsAtOnce = isCut ? this.#pieceRows : end - begin;
    for (let row = begin; row < end; row += rowsAtOnce) {
      const pieceEnd = Math.min(end, row + rowsAtOnce);
      if (isCut) this.#store(op.qkv, op.layer, row, pieceEnd);
      this.#attendRows(op, sequence, { begin: row, end: pieceEnd, seen: 0 });
    }
  }

  #attendSegments(op: Attention): void {
    const { numSequences, queryStart, segments } = this.#batch;
    for (let s = 0; s < numSequences; s++) {
      const first = queryStart[s]!;
      for (let row = first; row < queryStart[s + 1]!; ) {
        const [start, end] = [segments![2 * row]!, segments![2 * row + 1]!];
        this.#attendRows(op, s, { begin: row, end: first + end, seen: end, start });
        row = first + end;
      }
    }
  }

  /** Copies blocks: see Executor.copyBlocks. */
  copyBlocks(source: Int32Array, target: Int32Array): void {
    for (const [layer, base] of this.#workspace.pools.entries()) {
      const bytes = 4 * this.#floatsPerBlock(layer);
      for (let i = 0; i < source.length; i++) {
        this.#heap.copy(base + target[i]! * bytes, base + source[i]! * bytes, bytes);
      }
    }
  }

  /** Bytes of a block in all layers. */
  get bytesPerBlock(): number {
    return this.#heads.reduce((sum, _, layer) => sum + 4 * this.#floatsPerBlock(layer), 0);
  }

  /** Copies the content of blocks out of the pools: see BlockAccess. */
  readBlocks(blocks: Int32Array, target: Uint8Array): void {
    for (const { inPool, offset } of this.#placesOf(blocks)) target.set(inPool, offset);
  }

  writeBlocks(blocks: Int32Array, source: Uint8Array): void {
    for (const { inPool, offset } of this.#placesOf(blocks))
      inPool.set(source.subarray(offset, offset + inPool.length));
  }

  /** Where blocks lie, layer by layer, and where their bytes do in front of one another. */
  *#placesOf(blocks: Int32Array): Generator<{ inPool: Uint8Array; offset: number }> {
    const { buffer } = this.#heap.floats;
    let offset = 0;
    for (const block of blocks) {
      for (const [layer, base] of this.#workspace.pools.entries()) {
        const bytes = 4 * this.#floatsPerBlock(layer);
        yield { inPool: new Uint8Array(buffer, base + block * bytes, bytes), offset };
        offset += bytes;
      }
    }
  }

  areFinite(blocks: Int32Array): boolean {
    for (const [layer, base] of this.#workspace.pools.entries()) {
      const floats = this.#floatsPerBlock(layer);
      for (const block of blocks) {
        if (!this.#heap.kernels.allFinite(base + 4 * block * floats, floats)) return false;
      }
    }
    return true;
  }

  #beginSequence(sequence: number): void {
    const { blockTables, maxBlocks, contextLength, queryStart } = this.#batch;
    const { tokensPerBlock } = this.#options;
    const length = contextLength[sequence]!;
    const entries = Math.min(Math.ceil(length / tokensPerBlock), this.#tableEntries, maxBlocks);
    const begin = sequence * maxBlocks;
    const target = this.#workspace.blockTables / 4 + sequence * this.#tableEntries;
    this.#heap.ints.set(blockTables.subarray(begin, begin + entries), target);
    const rows = queryStart[sequence + 1]! - queryStart[sequence]!;
    const cut = length > this.#tableEntriesThatTurn() * tokensPerBlock && rows > this.#pieceRows;
    this.#isCut[sequence] = cut ? 1 : 0;
    this.#anyCut ||= cut;
  }

  #tableEntriesThatTurn(): number {
    return this.#window === null ? Infinity : this.#window.maxBlocks;
  }

  #makeAngles(batch: PackedBatch): void {
    const { attention } = this.#plan;
    const { angles, sinkAngles } = this.#workspace;
    for (const index of this.#tables) {
      const own = index === 0 ? undefined : index - 1;
      const table = own === undefined ? undefined : attention.ropeTables?.[own];
      const rotaryDim = rotaryDimOf(attention, own);
      if (rotaryDim === 0) continue;
      const axes = table === undefined ? attention.ropeAxes : undefined;
      this.#anglesTo(batch, { rotaryDim, table, axes }, angles[index]!);
      if (sinkAngles.length === 0) continue;
      const lastPosition = this.#window!.maxAttentionWindow - 1;
      this.#anglesTo(batch, { rotaryDim, table, lastPosition }, sinkAngles[index]!);
    }
  }

  #anglesTo(
    batch: PackedBatch,
    choice: Parameters<typeof writeRopeAngles>[1],
    { cosines, sines }: { cosines: number; sines: number },
  ): void {
    const count = (batch.numTokens * choice.rotaryDim) / 2;
    const cosine = this.#heap.floatsAt(cosines, count);
    writeRopeAngles(batch, choice, { cosine, sine: this.#heap.floatsAt(sines, count) });
  }

  #turnForSinks(op: Rope): void {
    const numHeads = headsOf(this.#plan.attention, op.layer);
    const { headDim } = this.#heads[op.layer]!;
    const { values, sinkQueries, sinkAngles } = this.#workspace;
    const width = numHeads * headDim;
    const { numTokens } = this.#batch;
    this.#heap.kernels.copyColumns(values[op.qkv]!, this.#stride(op.qkv), width, numTokens, sinkQueries);
    const heads = { count: numHeads, headDim, stride: width };
    this.#turn(sinkQueries, heads, op, sinkAngles);
    if (op.norms !== undefined) this.#normTurned(sinkQueries, heads, op.norms.query, op.norms.epsilon);
  }

  /** Norms heads of all rows after they have turned. */
  #normTurned(x: number, { count, headDim, stride }: Heads, weight: string, epsilon: number): void {
    const scales = this.#vectors.get(weight)!;
    this.#heap.kernels.normHeads(x, stride, count, headDim, scales, epsilon, this.#batch.numTokens);
  }

  #turn(
    x: number,
    { count, headDim, stride }: Heads,
    op: Rope,
    angles: readonly { cosines: number; sines: number }[],
  ): void {
    const rotaryDim = rotaryDimOf(this.#plan.attention, op.table);
    if (rotaryDim === 0) return;
    const { cosines, sines } = angles[tableOf(op)]!;
    const { numTokens } = this.#batch;
    this.#heap.kernels.rope(x, stride, count, headDim, rotaryDim / 2, numTokens, cosines, sines);
  }

  #store(qkv: number, layer: number, begin: number, end: number): void {
    const numHeads = headsOf(this.#plan.attention, layer);
    const { numKvHeads, headDim } = this.#heads[layer]!;
    const { values, slots, pools } = this.#workspace;
    const stride = this.#stride(qkv);
    const keys = values[qkv]! + 4 * (begin * stride + numHeads * headDim);
    this.#heap.kernels.storeKv(
      pools[layer]!,
      this.#options.tokensPerBlock,
      numKvHeads,
      headDim,
      keys,
      stride,
      end - begin,
      slots + 4 * begin,
    );
  }

  /** @param seen positions of the sequence that all these rows see, 0: each sees up to its own; start: the first of them */
  #attendRows(
    op: Attention,
    sequence: number,
    { begin, end, seen, start = 0 }: { begin: number; end: number; seen: number; start?: number },
  ): void {
    const numHeads = headsOf(this.#plan.attention, op.layer);
    const { mask = {} } = op;
    const { numKvHeads, headDim } = this.#heads[op.layer]!;
    const { values, blockTables, sinkQueries, scores, pools } = this.#workspace;
    const { kernels } = this.#heap;
    const relative = this.#relative.of(op.relative) ?? NO_TABLE;
    const window = this.#window;
    const stride = this.#stride(op.qkv);
    const width = numHeads * headDim;
    const length = this.#batch.contextLength[sequence]!;
    const firstRow = this.#batch.queryStart[sequence + 1]! - length;
    const table = blockTables + 4 * sequence * this.#tableEntries;
    const recent = window === null ? ALL : window.maxAttentionWindow - window.sinkTokenLength;
    kernels.setCache(
      pools[op.layer]!,
      this.#options.tokensPerBlock,
      numKvHeads,
      headDim,
      table,
      window?.sinkBlocks ?? 0,
      window?.ringBlocks ?? ALL,
    );
    kernels.setSinkLogits(op.sinkLogits === undefined ? 0 : this.#vectors.get(op.sinkLogits)!);
    const { biases, queries, keys } = relative;
    kernels.setRelative(biases, queries, keys, this.#relative.columns, this.#options.maxSeqLen - 1);
    kernels.attention(
      values[op.qkv]! + 4 * begin * stride,
      stride,
      sinkQueries + 4 * begin * width,
      numHeads / numKvHeads,
      end - begin,
      begin - firstRow,
      start,
      seen,
      Math.min(recent, mask.window ?? ALL),
      mask.withinPictures ? ALL : (mask.window ?? ALL),
      window?.sinkTokenLength ?? 0,
      op.scale,
      op.softCap ?? 0,
      scores,
      this.#options.maxSeqLen,
      values[op.output]! + 4 * begin * width,
    );
  }

  #floatsPerBlock(layer: number): number {
    const { numKvHeads, headDim } = this.#heads[layer]!;
    return 2 * numKvHeads * headDim * this.#options.tokensPerBlock;
  }

  #stride(value: number): number {
    return this.#plan.values[value]!.width;
  }
}

/** Index into this.#tables. */
function tableOf({ table }: Rope): number {
  return table === undefined ? 0 : table + 1;
}
