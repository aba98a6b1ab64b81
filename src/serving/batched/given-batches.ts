import { performance } from 'node:perf_hooks';
import { BufferPool } from '../../../base/buffer-pool.js';
import type { BatchTimes, InstanceCommand } from '../../../callbacks/infer/instance-messages.js';
import { packBatch } from '../../../engine/backends/packed-batch.js';
import type { PackedBatch } from '../../../host/batch/batch-duties.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';
import { ReplyOrder } from '../../../scheduler/tensors/reply-order.js';
import { BatchTrace } from './batch-trace.js';
import type { BatchedEntry } from './batched-entry.js';
import type { Batch } from './batched-former.js';
import { type CalledParts, callWaits } from './called-parts.js';
import type { LentAnswers } from './lent-answers.js';
import { BATCHES_AHEAD } from './model-host.js';
import type { SequenceFormer } from './sequence-former.js';

/** A batch that an instance has. */
export interface GivenBatch {
  number: number;
  /** Aborted with the end of the batch: what its code has asked of other models is not waited for any more. Null: it has asked nothing. */
  calls: AbortController | null;
  /** null: it has not begun, or none of its requests is traced. */
  trace: BatchTrace | null;
}

export interface GivenBatchesParts {
  config: ModelConfig;
  /** The memory of batches goes to the instance's thread and back. */
  isLent: boolean;
  answers: LentAnswers;
  called: CalledParts;
  /** null: the model has no sequences. */
  sequences: SequenceFormer | null;
  numInstances: number;
}

/** Batches of all models of this process, counted. */
let numBatches = 0;

/** The batches of a model that its instances have, from their packing to their end. */
export class GivenBatches {
  readonly #parts: GivenBatchesParts;
  readonly #memory: BufferPool;
  readonly #given = new WeakMap<Batch, GivenBatch>();

  constructor(parts: GivenBatchesParts) {
    this.#parts = parts;
    this.#memory = new BufferPool({ maxKept: BATCHES_AHEAD * parts.numInstances });
  }

  /** Sets the number of instances whose batches' memory is kept. */
  keep(numInstances: number): void {
    this.#memory.keep(BATCHES_AHEAD * numInstances);
  }

  /** undefined: no instance has had it. */
  find(batch: Batch): GivenBatch | undefined {
    return this.#given.get(batch);
  }

  /** @param slot as of BatchDuties.pack */
  pack(batch: Batch, slot: number | null): PackedBatch<InstanceCommand> {
    const { config, isLent, answers, called, sequences } = this.#parts;
    const { memory, bytes, requests } = packBatch(batch, this.#memory);
    this.end(batch); // it was with an instance that is lost, or had it taken back
    const number = numBatches++;
    this.#given.set(batch, { number, calls: null, trace: null });
    callWaits.begin(number, called.keptBy(sequences?.instanceOf(batch) ?? null), batch);
    if (config.sequence_batching?.oldest?.preserve_ordering) {
      const order = new ReplyOrder<BatchedEntry, () => void>();
      for (const entry of batch) entry.keepTo(order);
    }
    const answerMemory = answers.memoryFor(rowsOf(batch));
    const command: InstanceCommand = {
      type: 'batch',
      batch: number,
      bytes,
      isLent,
      answerMemory,
      slot,
      requests,
      rows: sequences?.rowsOf(batch) ?? null,
    };
    const transfer = [isLent ? memory : null, answerMemory].filter((buffer) => buffer !== null);
    return { command, transfer };
  }

  /** An instance begins with the batch. */
  begin(batch: Batch): void {
    const nowMs = performance.now();
    for (const entry of batch) entry.begunMs ??= nowMs;
    const given = this.#given.get(batch);
    if (given !== undefined) given.trace ??= BatchTrace.begin(this.#parts.config, batch, nowMs);
  }

  /** The batch is over. @param times that its instance reports; null: the batch was lost or given up */
  end(batch: Batch, times: BatchTimes | null = null): void {
    const given = this.#given.get(batch);
    if (given === undefined) return;
    callWaits.end(given.number);
    given.calls?.abort();
    given.trace?.end(times);
  }

  /** Memory of a batch that an instance has no use for any more. */
  take(memory: ArrayBuffer | null): void {
    if (memory !== null) this.#memory.give(memory);
  }
}

export function rowsOf(batch: Batch): number {
  return batch.reduce((sum, { rows }) => sum + rows, 0);
}
