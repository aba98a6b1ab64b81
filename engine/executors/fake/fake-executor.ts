import type { ExecutorMemory } from '../../../callbacks/worker-messages.js';
import type { AttentionWindow } from '../../../kvcache/attention-window.js';
import { resolveWindow } from '../../../kvcache/kv-cache-options.js';
import type { PictureRule } from '../../../network/attention-mask.js';
import type { PackedBatch, ReturnedRows } from '../../packed-call/packed-batch.js';
import {
  ROW_NO_TOKEN_LEFT,
  ROW_NOT_FINITE,
  ROW_OK,
  type SamplingBatch,
  type SamplingOutput,
} from '../../packed-call/sampling-batch.js';
import type { BlockAccess, Executor, ExecutorOptions } from '../executor.js';
import { BegunStep } from './begun-step.js';
import { FakeAdapters } from './fake-adapters.js';
import { allowedBy, contentOf, hashChanges, logitsOf, mix, POISONED, placeOf } from './fake-rows.js';
import { drawnAgainst, hashParameters, listCandidates, writeLogProbs } from './fake-sampling.js';

export interface FakeExecutorOptions extends ExecutorOptions {
  vocabSize: number;
  /** Width of the rows that a prompt may bring; default 4. */
  promptRowWidth?: number;
  /** Positions in the grids of pictures count too; default: they do not. */
  turnsByGrid?: boolean;
  /** What tokens of a picture attend to; default: causal. */
  pictureRule?: PictureRule;
  /**
   * First padding block: from here on blocks belong to no request and are written over and over. A sequence whose table
   * begins in front of it must not read them.
   */
  firstPaddingBlock?: number;
  /** A sequence that holds this token has logits that are not finite. */
  poisonToken?: number;
  /** A step that is given this token throws. */
  throwToken?: number;
  /** A step that is given this token ends its thread, as a crash would. */
  dieToken?: number;
  /** Milliseconds for which every step blocks its thread, as a real forward does. */
  stepMs?: number;
  /**
   * When a begun step computes; default at its end. Tests run both, since a real thread may compute at any time in
   * between.
   */
  begunStepsRun?: 'at-begin' | 'at-finish';
  /** With block reuse a slot may be written over, since its block was copied or taken over with its content. */
  allowsOverwriting?: boolean;
}

/**
 * An executor without a model. Its KV pool holds token ids, and the token it draws is a hash of all tokens of the
 * sequence, read back through the block table, and of the row's sampling parameters. So a wrong slot, a stale or shared
 * block, a missed zeroing or a wrong position changes the output or throws. For tests of everything above an executor,
 * and for writing callbacks before a model is at hand.
 *
 *   slot     0   1   2  ...        a slot holds 0 after zeroing, token + 1 once written
 *   pool    12   7   1   0   0     writing a slot that is not 0 throws: its block was not announced as new. With
 *                                  allowsOverwriting only what memory held before is refused.
 *
 * With an adapter, or for an embedding of the request's own, a slot holds a hash of it, above all token ids. The hash of a sequence also
 * covers the positions that its tokens were given, if these are not their places.
 *
 * With an attention window the hash covers the tokens in the window, and a slot may also be written over by the token
 * whose turn it is there. A slot of a draft token may be written over by a token of the same place, and any slot by its
 * present content: a row whose draw did not count runs again.
 */
export class FakeExecutor implements Executor {
  readonly name = 'fake';
  readonly instructionSet = 'none';
  readonly options: Readonly<FakeExecutorOptions>;
  readonly vocabSize: number;
  readonly promptRowWidth: number;
  readonly turnsByGrid: boolean;
  readonly pictureRule: PictureRule;
  readonly adapters?: FakeAdapters;
  readonly blockAccess: BlockAccess;
  /** Number of calls of `step` and `forward` so far. */
  numSteps = 0;
  readonly #firstPaddingSlot: number;
  /** First slot of the secondary blocks. */
  readonly #firstSecondarySlot: number;
  readonly #window: AttentionWindow | null;
  readonly #pool: Int32Array;
  /** Position of the token in each slot. */
  readonly #positions: Int32Array;
  /** 1 if the token in a slot was a draft when it was written. */
  readonly #isDraft: Uint8Array;
  /** Hash of each row of logits, or POISONED. */
  readonly #hashes: Float64Array;
  readonly #logits: Float32Array;
  /** True if `forward` ran the last batch: its logits may have been written to since. */
  #areLogitsOut = false;
  #begun: BegunStep | null = null;

  constructor(options: FakeExecutorOptions) {
    this.options = options;
    this.vocabSize = options.vocabSize;
    this.promptRowWidth = options.promptRowWidth ?? 4;
    this.pictureRule = options.pictureRule ?? 'causal';
    this.turnsByGrid = options.turnsByGrid ?? false;
    const { maxAdapters = 0, maxLoraRank = 0 } = options;
    if (maxAdapters > 0) {
      this.adapters = new FakeAdapters(maxAdapters, maxLoraRank, () => this.#refuseWhileBegun());
    }
    this.#firstPaddingSlot = (options.firstPaddingBlock ?? options.numBlocks) * options.tokensPerBlock;
    this.#firstSecondarySlot = options.numBlocks * options.tokensPerBlock;
    const numBlocks = options.numBlocks + (options.numSecondaryBlocks ?? 0);
    // Fresh memory is never 0, so that a block that was not zeroed is noticed.
    this.#pool = new Int32Array(numBlocks * options.tokensPerBlock).fill(-1);
    this.#positions = new Int32Array(this.#pool.length);
    this.#isDraft = new Uint8Array(this.#pool.length);
    this.#window = resolveWindow(options);
    this.blockAccess = {
      bytesPerBlock: 8 * options.tokensPerBlock,
      readBlocks: (blocks, target) => this.#moveBlocks(blocks, target, false),
      writeBlocks: (blocks, source) => this.#moveBlocks(blocks, source, true),
    };
    this.#hashes = new Float64Array(options.maxLogitRows);
    this.#logits = new Float32Array(options.maxLogitRows * options.vocabSize);
  }

  step(batch: PackedBatch, sampling: SamplingBatch, output: SamplingOutput): void {
    this.#refuseWhileBegun();
    pause(this.options.stepMs ?? 0);
    this.#run(batch);
    this.sample(sampling, output);
  }

  begin(batch: PackedBatch, sampling: SamplingBatch, output: SamplingOutput): void {
    this.#refuseWhileBegun();
    const begun = new BegunStep(batch, sampling, output);
    this.#begun = begun;
    if (this.options.begunStepsRun !== 'at-begin') return;
    try {
      this.#run(batch);
    } catch (error) {
      begun.error = error;
    }
  }

  finish(): void {
    const begun = this.#begun;
    if (begun === null) throw new Error('No step has been begun; begin() must come before finish().');
    pause((this.options.stepMs ?? 0) - (performance.now() - begun.startMs));
    this.#begun = null;
    const touched = begun.whatWasTouched();
    if (touched !== null) throw new Error(`${touched} was changed between begin() and finish()`);
    if (begun.error !== null) throw begun.error;
    if (this.options.begunStepsRun !== 'at-begin') this.#run(begun.batch);
    this.sample(begun.sampling, begun.output);
  }

  forward(batch: PackedBatch): Float32Array {
    this.#refuseWhileBegun();
    pause(this.options.stepMs ?? 0);
    this.#run(batch);
    for (let row = 0; row < batch.numLogitRows; row++)
      this.#logits.set(logitsOf(this.#hashes[row]!, this.vocabSize), row * this.vocabSize);
    this.#areLogitsOut = true;
    return this.#logits.subarray(0, batch.numLogitRows * this.vocabSize);
  }

  /** Like a real executor, reads the logits that `forward` handed out in their present state. */
  sample(sampling: SamplingBatch, output: SamplingOutput): void {
    this.#refuseWhileBegun();
    for (let row = 0; row < sampling.numRows; row++) {
      output.topStart[row + 1] = output.topStart[row]! + Math.max(0, sampling.numTopLogProbs[row]!);
      const logits = this.#logits.subarray(row * this.vocabSize, (row + 1) * this.vocabSize);
      const rowHash = this.#areLogitsOut ? hashChanges(this.#hashes[row]!, logits) : this.#hashes[row]!;
      output.status[row] = rowHash === POISONED ? ROW_NOT_FINITE : ROW_OK;
      output.tokens[row] = -1;
      if (output.status[row] === ROW_NOT_FINITE) continue;
      const hash = hashParameters(rowHash, sampling, row);
      let token = hash % this.vocabSize;
      const banned = sampling.banned.subarray(sampling.bannedStart[row]!, sampling.bannedStart[row + 1]!);
      if (sampling.listsCandidates?.[row] === 1) {
        const isBanned = (one: number) =>
          banned.includes(one) || (this.#areLogitsOut && logits[one] === -Infinity);
        listCandidates(hash, isBanned, { sampling, output, row, vocabSize: this.vocabSize });
        continue;
      }
      if (banned.length >= this.vocabSize) throw new Error(`row ${row} may draw no token at all`);
      const draft = sampling.draftRows?.find((one) => one.row === row);
      if (draft !== undefined && sampling.temperature[row] !== 0)
        token = drawnAgainst(draft, hash, this.vocabSize);
      const isAllowed = allowedBy(sampling.tokenMasks ?? null, row, this.vocabSize);
      const isOut = (one: number) => this.#areLogitsOut && logits[one] === -Infinity;
      let tries = 0;
      for (; tries < this.vocabSize && (banned.includes(token) || !isAllowed(token) || isOut(token)); tries++)
        token = (token + 1) % this.vocabSize;
      if (tries === this.vocabSize) output.status[row] = ROW_NO_TOKEN_LEFT;
      if (tries === this.vocabSize) continue;
      output.tokens[row] = token;
      output.logProbs[row] = -(hash >>> 8) / 2 ** 20;
      const [topStart, topEnd] = [output.topStart[row]!, output.topStart[row + 1]!];
      for (let i = topStart; i < topEnd; i++) {
        output.topTokens[i] = (token + i - topStart) % this.vocabSize;
        output.topLogProbs[i] = output.logProbs[row]! - (i - topStart);
      }
    }
  }

  copyBlocks(source: Int32Array, target: Int32Array): void {
    this.#refuseWhileBegun();
    const size = this.options.tokensPerBlock;
    for (const [i, block] of source.entries()) {
      this.#pool.copyWithin(target[i]! * size, block * size, (block + 1) * size);
      this.#positions.copyWithin(target[i]! * size, block * size, (block + 1) * size);
    }
  }

  /** Contents and positions of each block, in turn. */
  #moveBlocks(blocks: Int32Array, bytes: Uint8Array, isWriting: boolean): void {
    this.#refuseWhileBegun();
    const size = this.options.tokensPerBlock;
    const outside = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
    for (const [i, block] of blocks.entries()) {
      for (const [part, inside] of [this.#pool, this.#positions].entries()) {
        const here = inside.subarray(block * size, (block + 1) * size);
        const there = outside.subarray((2 * i + part) * size, (2 * i + part + 1) * size);
        if (isWriting) here.set(there);
        else there.set(here);
      }
    }
  }

  /** False also for a block that holds the token whose logits are not finite. */
  areFinite(blocks: Int32Array): boolean {
    this.#refuseWhileBegun();
    const { tokensPerBlock: size, poisonToken = -1 } = this.options;
    return blocks.every(
      (block) => !this.#pool.subarray(block * size, (block + 1) * size).includes(poisonToken + 1),
    );
  }

  memory(): ExecutorMemory {
    const kvCacheBytes = this.#firstSecondarySlot * this.#pool.BYTES_PER_ELEMENT;
    return {
      weightBytes: 0,
      kvCacheBytes,
      secondaryKvCacheBytes: this.#pool.byteLength - kvCacheBytes,
      workspaceBytes: this.#logits.byteLength + this.#hashes.byteLength,
    };
  }

  close(): void {
    this.#refuseWhileBegun();
  }

  #refuseWhileBegun(): void {
    if (this.#begun !== null) throw new Error('A begun step is running; finish() must come first.');
  }

  #run(batch: PackedBatch): void {
    this.numSteps++;
    this.#areLogitsOut = false;
    this.#zeroNewBlocks(batch);
    for (let sequence = 0; sequence < batch.numSequences; sequence++) this.#runSequence(batch, sequence);
    for (const rows of batch.returnedRows ?? []) {
      if (rows.of === 'logitRows') this.#returnRow(rows, 0, this.#hashes[rows.first]!);
    }
  }

  /** Computes the hash and the returned logits that are asked for row t of T, which has just been written. */
  #readRow(batch: PackedBatch, sequence: number, t: number): void {
    const logitRows = batch.logitRows.subarray(0, batch.numLogitRows);
    for (let row = logitRows.indexOf(t); row >= 0; row = logitRows.indexOf(t, row + 1)) {
      this.#hashes[row] = this.#hashOf(batch, sequence, t);
    }
    for (const rows of batch.returnedRows ?? []) {
      if (rows.of !== 'tokens' || t < rows.first || t >= rows.first + rows.count) continue;
      this.#returnRow(rows, t - rows.first, this.#hashOf(batch, sequence, t));
    }
  }

  #returnRow({ logits, logProbs }: ReturnedRows, index: number, hash: number): void {
    const values = logitsOf(hash, this.vocabSize);
    logits?.set(values, index * this.vocabSize);
    if (logProbs !== null) writeLogProbs(logProbs, index, values);
  }

  #zeroNewBlocks(batch: PackedBatch): void {
    const size = this.options.tokensPerBlock;
    for (let i = 0; i < batch.numNewBlocks; i++) {
      const block = batch.newBlocks[i]!;
      this.#pool.fill(0, block * size, (block + 1) * size);
      this.#isDraft.fill(0, block * size, (block + 1) * size);
    }
  }

  /** Writes each row and then reads the tokens it attends to: in a window, later rows may take their slots. */
  #runSequence(batch: PackedBatch, sequence: number): void {
    const start = batch.queryStart[sequence]!;
    const end = batch.queryStart[sequence + 1]!;
    const logitRows = batch.logitRows.subarray(0, batch.numLogitRows);
    const adapter = this.adapters?.hashFor(batch, sequence) ?? null;
    // After a row that draws a token there are only drafts.
    let isDraft = false;
    for (let t = start; t < end; t++) {
      const token = batch.tokenIds[t]!;
      if (token === this.options.throwToken) throw new Error(`token ${token} makes the fake executor throw`);
      if (token === this.options.dieToken) process.exit(1);
      const slot = batch.slots[t]!;
      const place = placeOf(batch, sequence, t);
      const expected = this.#slotOf(batch, sequence, place);
      if (slot !== expected)
        throw new Error(`row ${t} is to be written to slot ${slot}, its table says ${expected}`);
      const held = this.#pool[slot]!;
      const content = contentOf(batch, t, place, this, adapter);
      const isWritable =
        (this.options.allowsOverwriting ? held >= 0 : held === 0) ||
        this.#isAgain(held, content, slot, place) ||
        this.#isItsTurn(slot, place) ||
        this.#isRejected(slot, place);
      if (!isWritable && slot < this.#firstPaddingSlot)
        throw new Error(`slot ${slot} of row ${t} holds ${held}, not 0`);
      this.#pool[slot] = content + 1;
      this.#positions[slot] = place;
      this.#isDraft[slot] = isDraft ? 1 : 0;
      isDraft ||= logitRows.includes(t);
      this.#readRow(batch, sequence, t);
    }
    const length = batch.contextLength[sequence]!;
    if (end === start || length < end - start) {
      throw new Error(`sequence ${sequence} has ${end - start} rows and the length ${length}`);
    }
  }

  #slotOf(batch: PackedBatch, sequence: number, position: number): number {
    const size = this.options.tokensPerBlock;
    const index = Math.floor(position / size);
    const entry = this.#window?.entryOf(index) ?? index;
    const block = batch.blockTables[sequence * batch.maxBlocks + entry]!;
    if (block * size >= this.#firstSecondarySlot)
      throw new Error(`position ${position} of sequence ${sequence} lies in the secondary block ${block}`);
    return block * size + (position % size);
  }

  /** True if the slot already holds this token of this place. */
  #isAgain(held: number, content: number, slot: number, place: number): boolean {
    return held === content + 1 && this.#positions[slot] === place;
  }

  #isItsTurn(slot: number, position: number): boolean {
    if (this.#window === null) return false;
    return this.#positions[slot] === position - this.#window.ringBlocks * this.options.tokensPerBlock;
  }

  /** True if the slot holds a draft token of this very place, which may have been rejected. */
  #isRejected(slot: number, position: number): boolean {
    return this.#isDraft[slot] === 1 && this.#positions[slot] === position;
  }

  #isSeen(position: number, from: number): boolean {
    if (this.#window === null) return true;
    const { maxAttentionWindow, sinkTokenLength } = this.#window;
    return position < sinkTokenLength || position > from - (maxAttentionWindow - sinkTokenLength);
  }

  /** Hash of the tokens that row t of T attends to; POISONED if it cannot be computed. */
  #hashOf(batch: PackedBatch, sequence: number, t: number): number {
    const last = placeOf(batch, sequence, t);
    let hash = 0x9e3779b9;
    let isPoisoned = false;
    const isPadding = this.#slotOf(batch, sequence, 0) >= this.#firstPaddingSlot;
    for (let position = 0; position <= last && !isPadding; position++) {
      if (!this.#isSeen(position, last)) continue;
      const slot = this.#slotOf(batch, sequence, position);
      if (slot >= this.#firstPaddingSlot)
        throw new Error(`position ${position} of sequence ${sequence} lies in a block for padding`);
      const token = this.#pool[slot]! - 1;
      if (token < 0) throw new Error(`position ${position} of sequence ${sequence} was never written`);
      if (this.#window !== null && this.#positions[slot] !== position)
        throw new Error(
          `position ${position} of sequence ${sequence} was written over by position ${this.#positions[slot]}`,
        );
      if (token === this.options.poisonToken) isPoisoned = true;
      hash = mix(mix(hash, position), token);
    }
    return isPoisoned ? POISONED : hash;
  }
}

/** Blocks the thread. */
function pause(milliseconds: number): void {
  if (milliseconds > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}
