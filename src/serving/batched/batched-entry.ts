import { performance } from 'node:perf_hooks';
import { bytesOf, MAX_ANSWER_BYTES, MAX_ANSWERS } from '../../../callbacks/infer/answer-limits.js';
import type { InferError } from '../../../callbacks/infer/infer-error.js';
import type {
  InferListener,
  InferRequest,
  InferResponse,
  InferTensor,
} from '../../../callbacks/infer/infer-types.js';
import type { BatchTimes, PackedSequence } from '../../../callbacks/infer/instance-messages.js';
import type { TraceSpan } from '../../../callbacks/infer/trace-span.js';
import type { BatchEntry } from '../../../host/batch/batch-duties.js';
import type { QueuedRequest } from '../../../scheduler/tensors/dynamic-batcher.js';
import type { ReplyOrder } from '../../../scheduler/tensors/reply-order.js';
import { asInferError } from '../infer-failure.js';
import type { KeyedSequence } from './sequence-former.js';

/** Called once, when a request has its last answer or has failed. */
export type OnOver = (entry: BatchedEntry, error: InferError | null) => void;

/** A request for tensors on its way through the batcher and an instance. */
export class BatchedEntry implements BatchEntry, QueuedRequest {
  readonly id: string;
  readonly inputs: readonly InferTensor[];
  readonly outputs: readonly string[] | null;
  readonly parameters: InferRequest['parameters'];
  readonly rows: number;
  readonly fit: string;
  readonly priority: number;
  readonly timeoutUs: number;
  /** null: the model has no sequences. */
  readonly sequence: KeyedSequence | null;
  readonly on: InferListener;
  readonly onTimes: InferRequest['onTimes'];
  readonly startMs = performance.now();
  hasStarted = false;
  hasResponded = false;
  release: (() => void) | null = null;
  /** When it began to wait, on the batcher's clock. */
  queuedUs = 0;
  /** When an instance began with it, on performance.now's clock; null: it waits. */
  begunMs: number | null = null;
  /** Its place in the batch that it is in, or was in last; null: in none, or the model has no sequences. */
  packedSequence: PackedSequence | null = null;
  /** Holds its answers until it is their turn; null: they go as they come. */
  order: ReplyOrder<BatchedEntry, () => void> | null = null;
  /** Responses that wait until those of all earlier requests are out; empty where order is not preserved. */
  readonly held: InferResponse[] = [];
  /** Of the outputs of those. */
  heldBytes = 0;
  /** Of the request at this model; null: it is not traced. */
  span: TraceSpan | null = null;
  times: BatchTimes = { inputNs: 0, inferNs: 0, outputNs: 0 };
  readonly #onOver: OnOver;

  constructor(
    { id, outputs, parameters, priority, timeoutUs, onTimes }: InferRequest,
    {
      inputs,
      batchSize,
      sequence,
    }: { inputs: readonly InferTensor[]; batchSize: number; sequence: KeyedSequence | null },
    fit: string,
    on: InferListener,
    onOver: OnOver,
  ) {
    this.id = id;
    this.inputs = inputs;
    this.outputs = outputs;
    this.parameters = parameters;
    this.rows = batchSize;
    this.fit = fit;
    this.sequence = sequence;
    this.priority = priority;
    this.timeoutUs = timeoutUs;
    this.on = on;
    this.onTimes = onTimes;
    this.#onOver = onOver;
  }

  get batchSize(): number {
    return this.rows;
  }

  get traceparent(): string | undefined {
    return this.span?.traceparent;
  }

  /** Its answers wait for those of the requests before it. */
  keepTo(order: ReplyOrder<BatchedEntry, () => void>): void {
    this.order = order;
    order.begin(this);
  }

  /** Keeps a response until its turn comes. False: that are too many, or too many bytes. */
  hold(response: InferResponse): boolean {
    if (this.held.length >= MAX_ANSWERS || this.heldBytes >= MAX_ANSWER_BYTES) return false;
    this.held.push(response);
    this.heldBytes += bytesOf(response.outputs, response.parameters);
    return true;
  }

  /** It has its last answer. */
  end(): void {
    this.#onOver(this, null);
  }

  fail(error: unknown): void {
    this.#onOver(this, asInferError(error));
  }
}
