import { InferError } from '../../../callbacks/infer/infer-error.js';
import type { InferSequence } from '../../../callbacks/infer/infer-types.js';
import type { BatchFormer, Formed } from '../../../host/batch/batch-former.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';
import { sequenceBatcher } from '../../../scheduler/tensors/batcher-presets.js';
import {
  type SequenceBatch,
  SequenceBatcher,
  type SequenceReason,
  type SequenceRefusal,
} from '../../../scheduler/tensors/sequence-batcher.js';
import type { SequenceKey } from '../../../scheduler/tensors/sequences/sequence-line.js';
import type { BatchedEntry } from './batched-entry.js';
import type { Batch } from './batched-former.js';

/** A sequence as the batcher knows it. */
export interface KeyedSequence extends InferSequence {
  /** Made of its owner and its id: a sequence of another owner cannot be found. */
  readonly key: SequenceKey;
}

/** An entry of a model with sequences. */
type SequenceEntry = BatchedEntry & { readonly sequence: KeyedSequence };

/** @param owner name of an API key; '': there are none */
export function keyedSequence(sequence: InferSequence, owner = ''): KeyedSequence {
  const { id } = sequence;
  if (owner === '' && typeof id === 'bigint') return { ...sequence, key: id };
  return { ...sequence, key: `${owner}\0${typeof id === 'bigint' ? 'number' : 'text'} ${id}` };
}

/** Sequences of a model, as GET /stats/models/stream and the metrics report them. */
export interface SequenceCounts {
  /** Those that an instance has a place for. */
  live: number;
  /** Those that wait for one. */
  backlog: number;
}

/** The sequence batcher as a batch host asks it. */
export class SequenceFormer implements BatchFormer<BatchedEntry, Batch> {
  readonly #config: ModelConfig;
  readonly #batcher: SequenceBatcher<SequenceEntry>;
  readonly #onEnded: (instance: number, sequences: readonly number[]) => void;
  readonly #batches = new WeakMap<Batch, SequenceBatch<SequenceEntry>>();
  #onOver: (() => void)[] = [];
  /** The latest id that was made for a request without one. */
  #ownId = 0n;

  /**
   * @param onEnded called for sequences that are over without their END, before the next batch of their
   * instance
   */
  constructor(
    config: ModelConfig,
    instances: number,
    onEnded: (instance: number, sequences: readonly number[]) => void,
  ) {
    this.#config = config;
    this.#batcher = new SequenceBatcher(
      sequenceBatcher({ ...config, sequence_batching: config.sequence_batching! }, instances),
    );
    this.#onEnded = onEnded;
  }

  /** A sequence of this key is under way. */
  has(key: SequenceKey): boolean {
    return this.#batcher.has(key);
  }

  /** Resolves as soon as no sequence is under way, or after `giveUp`. */
  whenOver(): Promise<void> {
    return new Promise((resolve) => {
      this.#onOver.push(resolve);
      this.#noteOver();
    });
  }

  /** The sequences are not waited for any more. */
  giveUp(): void {
    for (const resolve of this.#onOver.splice(0)) resolve();
  }

  #noteOver(): void {
    if (this.#onOver.length > 0 && this.#batcher.size === 0) this.giveUp();
  }

  get counts(): SequenceCounts {
    return { live: this.#batcher.live, backlog: this.#batcher.backlog };
  }

  /** See SequenceBatcher. */
  instanceFor(sequence: KeyedSequence): number | null {
    return this.#batcher.instanceFor(sequence);
  }

  /** A sequence for a request of an iterative model that belongs to none. */
  ownSequence(): KeyedSequence {
    do this.#ownId++;
    while (this.#batcher.has(this.#ownId));
    return keyedSequence({ id: this.#ownId, start: true, end: false });
  }

  add(entry: BatchedEntry, nowUs: number): void {
    const refusal = this.#batcher.add(entry as SequenceEntry, nowUs);
    if (refusal !== null) throw this.#refused(entry as SequenceEntry, refusal);
  }

  remove(entry: BatchedEntry, nowUs: number): void {
    this.#batcher.remove(entry as SequenceEntry, nowUs);
    this.#noteOver();
  }

  /** The model has put requests of a batch back, which is reported before the batch is settled. */
  putAgain(entry: BatchedEntry): void {
    this.#batcher.putAgain(entry as SequenceEntry);
  }

  goesAtUs(nowUs: number, instance: number, isDraining: boolean): number {
    return this.#batcher.goesAtUs(nowUs, instance, isDraining);
  }

  form(nowUs: number, free: readonly number[], isDraining: boolean): Formed<BatchedEntry, Batch> {
    const { batch, refused, ended, wakeAtUs } = this.#batcher.next(nowUs, free, isDraining);
    for (const { instance, sequence } of ended) this.#onEnded(instance, [sequence]);
    this.#noteOver();
    const refusals = refused.map(({ request, reason }) => ({
      entry: request,
      error: this.#unrun(request, reason),
    }));
    if (batch === null) return { batch: null, refused: refusals, wakeAtUs };
    const entries = batch.rows.map(({ request, slot, sequence: number, start, end }) => {
      request.packedSequence = { id: request.sequence.id, start, end, number, slot };
      return request;
    });
    this.#batches.set(entries, batch);
    return { batch: entries, instance: batch.instance, refused: refusals, wakeAtUs };
  }

  /** Rows of a batch, empty ones among them. */
  rowsOf(batch: Batch): number {
    return this.#batches.get(batch)!.slots;
  }

  /** The instance that runs a batch. */
  instanceOf(batch: Batch): number {
    return this.#batches.get(batch)!.instance;
  }

  settle(batch: Batch, nowUs: number): void {
    const isLast = this.#config.sequence_batching!.iterative_sequence;
    this.#batcher.settle(this.#batches.get(batch)!, nowUs, { isLast });
    this.#noteOver();
  }

  addInstance(instance: number): void {
    this.#batcher.addInstance(instance);
  }

  retireInstance(instance: number): void {
    this.#batcher.retireInstance(instance);
  }

  needsInstance(instance: number): boolean {
    return this.#batcher.sequencesOf(instance) > 0;
  }

  noteInstance(instance: number, isRunning: boolean, nowUs: number): void {
    this.#batcher.noteInstance(instance, isRunning, nowUs);
    this.#noteOver();
  }

  #refused({ sequence: { id } }: SequenceEntry, refusal: SequenceRefusal): InferError {
    const { name } = this.#config;
    const why =
      refusal === 'lost' ? ': the instance that ran the sequence was lost, and its state with it' : '';
    return new InferError(
      `inference request for sequence ${id} to model '${name}' must specify the START flag on the first request of the sequence${why}`,
      'invalid',
    );
  }

  #unrun({ sequence: { id } }: SequenceEntry, reason: SequenceReason): InferError {
    // Triton's words, which its clients know.
    if (reason === 'expired')
      return new InferError('timeout of the corresponding sequence has been expired', 'unavailable');
    const why =
      reason === 'cancelled'
        ? 'a request before it was cancelled'
        : 'the instance that ran it was lost, and its state with it';
    return new InferError(
      `sequence ${id} of the model '${this.#config.name}' has ended before this request was run: ${why}`,
      'unavailable',
    );
  }
}
