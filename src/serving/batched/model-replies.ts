import { InferError } from '../../../callbacks/infer/infer-error.js';
import type { InstanceMessage } from '../../../callbacks/infer/instance-messages.js';
import { unpackTensor } from '../../../engine/backends/packed-batch.js';
import { reasonOf } from '../infer-failure.js';
import { type InferenceCounters, nsSince } from '../inference-counters.js';
import { endModelSpan } from '../model-span.js';
import type { BatchedEntry } from './batched-entry.js';
import type { Batch } from './batched-former.js';
import { callWaits } from './called-parts.js';
import { rowsOf } from './given-batches.js';
import type { LentAnswers } from './lent-answers.js';
import type { ModelHost, ModelInstance } from './model-host.js';
import type { SequenceFormer } from './sequence-former.js';

export interface ModelRepliesParts {
  modelName: string;
  host: ModelHost;
  answers: LentAnswers;
  counters: InferenceCounters;
  /** null: the model has no sequences. */
  sequences: SequenceFormer | null;
  /** A request may have many responses, of which the first is counted apart. */
  isDecoupled: boolean;
}

/** Hands the answers of a model's instances to its requests, in their order where the model preserves it, and counts them. */
export class ModelReplies {
  readonly #parts: ModelRepliesParts;

  constructor(parts: ModelRepliesParts) {
    this.#parts = parts;
  }

  deliver(
    message: Extract<InstanceMessage, { type: 'answers' | 'done' }>,
    batch: Batch,
    instance: ModelInstance,
  ): void {
    const { host } = this.#parts;
    const { answers } = message;
    if (message.type === 'done') this.#noteExecution(message, batch);
    const rooms = this.#respond(answers, batch);
    if (message.type === 'answers') askForMore(instance, rooms);
    for (const index of answers.ended) this.#settle(batch[index]);
    for (const [index, reason] of answers.failed) {
      const entry = batch[index];
      if (entry !== undefined) host.fail(entry, new InferError(reason, 'internal'));
    }
  }

  /** The request has its last answer, or has failed. */
  noteOver(entry: BatchedEntry, error: InferError | null): void {
    const { counters } = this.#parts;
    callWaits.answered(entry);
    endModelSpan(entry.span, error);
    const totalNs = nsSince(entry.startMs);
    if (error === null) {
      const queueNs = 1e6 * ((entry.begunMs ?? entry.startMs) - entry.startMs);
      counters.noteSuccess(entry.rows, totalNs, queueNs, entry.times);
      entry.onTimes?.(entry.times);
    } else counters.noteFailure(reasonOf(error), totalNs);
    const tell = () => {
      for (const response of entry.held) entry.on.response(response);
      if (error === null) entry.on.end();
      else entry.on.fail(error);
    };
    if (entry.order === null) tell();
    else for (const { answer } of entry.order.settle(entry, tell)) answer();
  }

  #noteExecution({ times, answers }: Extract<InstanceMessage, { type: 'done' }>, batch: Batch): void {
    const { counters, sequences } = this.#parts;
    for (const entry of batch) entry.times = times;
    counters.noteExecution(sequences?.rowsOf(batch) ?? rowsOf(batch), times);
    this.#parts.answers.noteSize(answers.bytes.length, rowsOf(batch));
  }

  /** @returns resolve when those who read the answers have room for more */
  #respond(
    { bytes, responses }: Extract<InstanceMessage, { type: 'answers' }>['answers'],
    batch: Batch,
  ): Promise<void>[] {
    const { host, modelName } = this.#parts;
    const rooms: Promise<void>[] = [];
    const { lease, end } = this.#parts.answers.share(bytes);
    for (const { request, outputs, parameters } of responses) {
      const entry = batch[request];
      if (entry === undefined || !host.has(entry)) continue;
      const tensors = outputs.map((output) => unpackTensor(output, bytes));
      this.#noteResponse(entry);
      const response = { outputs: tensors, ...(parameters === null ? {} : { parameters }), release: lease() };
      if (entry.order === null) {
        const room = entry.on.response(response);
        if (room !== undefined) rooms.push(room);
      } else if (!entry.hold(response)) host.fail(entry, tooManyHeld(modelName));
    }
    end();
    return rooms;
  }

  #noteResponse(entry: BatchedEntry): void {
    if (entry.hasResponded) return;
    entry.hasResponded = true;
    if (this.#parts.isDecoupled) this.#parts.counters.noteFirstResponse(nsSince(entry.startMs));
  }

  #settle(entry: BatchedEntry | undefined): void {
    if (entry === undefined || !this.#parts.host.has(entry)) return;
    this.#parts.host.settle(entry);
    entry.end();
  }
}

/**
 * Asks in another turn, so that other work of this process runs between the answers of a model that has many,
 * and not before their reader has room for more. @param rooms resolve when there is
 */
function askForMore(instance: ModelInstance, rooms: readonly Promise<void>[]): void {
  const { restarts } = instance;
  const ask = () => {
    setImmediate(() => {
      if (restarts === instance.restarts) instance.send({ type: 'taken' });
    });
  };
  if (rooms.length === 0) ask();
  else void Promise.all(rooms).then(ask);
}

function tooManyHeld(name: string): InferError {
  const what = 'its answers would take too much memory while they wait for those of earlier requests';
  return new InferError(`the model '${name}' preserves the order of its requests: ${what}`, 'internal');
}
