import { performance } from 'node:perf_hooks';
import { BufferPool } from '../../../base/buffer-pool.js';
import { InferError } from '../../../callbacks/infer/infer-error.js';
import type { InferCaller, InferListener, InferRequest } from '../../../callbacks/infer/infer-types.js';
import type {
  InstanceCommand,
  InstanceInfo,
  InstanceMessage,
  ModelCall,
  ModelCallResponse,
} from '../../../callbacks/infer/instance-messages.js';
import type { Backend, InstanceSetup } from '../../../engine/backends/backend.js';
import type { InstanceWorkerData } from '../../../engine/backends/instance-worker.js';
import { packBatch, unpackTensor } from '../../../engine/backends/packed-batch.js';
import { instanceWorkerScript } from '../../../engine/backends/worker-script.js';
import { BatchHost } from '../../../host/batch/batch-host.js';
import type { BatchInstance } from '../../../host/batch/batch-instance.js';
import type { CloseOptions } from '../../../host/in-process-host.js';
import { WorkerStuckError } from '../../../host/worker-supervisor.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';
import type { OwnParameters } from '../../../models/repository/model-parameters.js';
import { type FitTensor, fitOf } from '../../../scheduler/batch-fit.js';
import { ReplyOrder } from '../../../scheduler/reply-order.js';
import { checkedRequest } from '../check-request.js';
import { asInferError, reasonOf } from '../infer-failure.js';
import type { FailureReason, InferModel, ModelActivity, TimeCounts } from '../infer-model.js';
import { InferenceCounters } from '../inference-counters.js';
import { BatchedEntry } from './batched-entry.js';
import { type Batch, BatchedFormer } from './batched-former.js';
import { LentAnswers } from './lent-answers.js';

/** Batches that an instance may have: one that it runs and one that waits, so that it never waits for this thread. */
const BATCHES_AHEAD = 2;
/**
 * One that waits saves the way to this thread and back, some tenths of a millisecond: behind batches that take longer than this, it is taken
 * back, and the batcher decides anew.
 */
const RECALL_AFTER_MS = 5;
/** Requests that wait or run, where the configuration sets no limit. */
const MOST_ENTRIES = 65_536;

export interface BatchedModelOptions {
  backend: Backend;
  files: InstanceSetup['files'];
  config: ModelConfig;
  own: OwnParameters;
  /** Answers what the model's code asks of other models. */
  onCall: (call: ModelCall, callers: readonly InferCaller[]) => Promise<readonly ModelCallResponse[]>;
  onError: (error: Error) => void;
}

type Host = BatchHost<BatchedEntry, Batch, InstanceInfo, InstanceMessage, InstanceCommand>;
type OwnInstance = BatchInstance<Batch, InstanceInfo, InstanceMessage, InstanceCommand>;

/** Batches of all models of this process, counted. */
let numBatches = 0;

/**
 * A model of a repository that takes tensors: requests are held against its configuration, put together to batches, and run by its
 * instances, each in a worker.
 *
 *   infer -> checkedRequest -> DynamicBatcher -> BatchHost -> instance -> answers -> each request's listener
 */
export class BatchedModel implements InferModel {
  readonly kind = 'tensors';
  readonly config: ModelConfig;
  readonly version: string;
  readonly modelDirectory: string;
  readonly firstResponses?: () => TimeCounts;
  readonly #options: BatchedModelOptions;
  readonly #host: Host;
  readonly #memory: BufferPool;
  readonly #answers: LentAnswers;
  readonly #counters = new InferenceCounters();
  /** Batches of this model that wait for requests to it, with how many those are. */
  readonly #waitingBatches = new Map<number, number>();
  /** Where the model preserves the order of its requests; null: answers go as they come. */
  readonly #order: ReplyOrder<BatchedEntry, () => void> | null;
  /** Requests of equal text may be rows of one batch. */
  readonly #fit: (inputs: readonly FitTensor[]) => string;

  constructor(options: BatchedModelOptions) {
    const { backend, files, config, own, onError } = options;
    this.#options = options;
    this.config = config;
    this.version = files.version;
    this.modelDirectory = files.directory;
    if (config.model_transaction_policy.decoupled)
      this.firstResponses = () => this.#counters.firstResponses();
    const instances = config.instance_group.flatMap(({ name, count }) =>
      Array.from({ length: count }, (_, i) => `${name}_${i}`),
    );
    const isProcess = own.instanceKind === 'process';
    const maxKept = BATCHES_AHEAD * instances.length;
    this.#memory = new BufferPool({ maxKept });
    this.#answers = new LentAnswers(maxKept, !isProcess && this.firstResponses === undefined);
    this.#fit = fitOf(config.input, config.max_batch_size > 0);
    this.#order = config.dynamic_batching?.preserve_ordering ? new ReplyOrder() : null;
    const data = (i: number, claims: SharedArrayBuffer | null): InstanceWorkerData => ({
      entry: backend.entry.href,
      setup: { files, config, instanceName: instances[i]! },
      claims,
    });
    this.#host = new BatchHost(
      {
        subject: `The model '${config.name}'`,
        script: instanceWorkerScript(),
        data,
        ownerName: (i) => `Instance ${instances[i]}`,
        instances: instances.length,
        batchesAhead: BATCHES_AHEAD,
        recallAfterMs: RECALL_AFTER_MS,
        maxEntries: MOST_ENTRIES,
        timeLimitMs: own.executeTimeoutMs,
        isolate: isProcess,
        onError,
      },
      {
        former: new BatchedFormer(config),
        noteReady: () => {},
        entriesOf: (batch) => batch,
        pack: (batch, slot) => this.#pack(batch, slot, !isProcess),
        noteBegun: (batch) => noteBegun(batch),
        endsBatch: (message) => {
          if (message.type !== 'done') return false;
          this.#take(message.memory);
          return true;
        },
        deliver: (message, batch, instance) => this.#deliver(message, batch ?? [], instance),
        lostError: (error) =>
          new InferError(`the model '${config.name}' failed: ${error.message}`, 'internal'),
      },
    );
  }

  /** Settles when all instances run. */
  get ready(): Promise<InstanceInfo> {
    return this.#host.ready;
  }

  statistics() {
    return this.#counters.read();
  }

  activity(): ModelActivity {
    const { size, running, instanceStates: instances, restarts } = this.#host;
    const { lastInference } = this.#counters;
    return { waiting: size - running, running, instances, restarts, lastInference };
  }

  failures(): Readonly<Record<FailureReason, number>> {
    return this.#counters.failures();
  }

  isStuck(): boolean {
    return this.#host.failure instanceof WorkerStuckError;
  }

  close(options?: CloseOptions): Promise<void> {
    return this.#host.close(options);
  }

  infer(request: InferRequest, on: InferListener): void {
    const checked = checkedRequest(this.config, request);
    const { callers = [] } = request;
    this.#checkCallers(callers);
    const fit = this.#fit(checked.inputs);
    const entry = new BatchedEntry(request, checked, fit, on, (one, error) => this.#over(one, error));
    try {
      this.#host.submit(entry, request.signal);
    } catch (error) {
      const told = asInferError(error);
      this.#counters.noteFailure(reasonOf(told), nsSince(entry.startMs));
      throw told;
    }
    this.#countCallers(callers, 1);
    this.#order?.begin(entry);
  }

  /**
   * A batch whose code asks its own model keeps its instance until it is answered. Where all instances were kept so, whoever asks
   * would wait for ever: at least one stays for the answers.
   */
  #checkCallers(callers: readonly InferCaller[]): void {
    const own = this.#ownCallers(callers);
    if (own.length === 0) return;
    const { name, instance_group: groups } = this.config;
    const numInstances = groups.reduce((sum, { count }) => sum + count, 0);
    if (new Set([...this.#waitingBatches.keys(), ...own]).size < numInstances) return;
    throw new InferError(
      `the model '${name}' is asked by its own code while all of its ${numInstances} instances wait for the answer`,
      'invalid',
    );
  }

  #ownCallers(callers: readonly InferCaller[]): number[] {
    return callers.filter(({ model }) => model === this.config.name).map(({ batch }) => batch);
  }

  /** Counts a request that batches of this model wait for, or no longer do. */
  #countCallers(callers: readonly InferCaller[], change: 1 | -1): void {
    for (const batch of this.#ownCallers(callers)) {
      const count = (this.#waitingBatches.get(batch) ?? 0) + change;
      if (count === 0) this.#waitingBatches.delete(batch);
      else this.#waitingBatches.set(batch, count);
    }
  }

  #pack(batch: Batch, slot: number | null, isLent: boolean) {
    const { memory, bytes, requests } = packBatch(batch, this.#memory);
    const number = numBatches++;
    const own = { model: this.config.name, batch: number };
    const callers = [...batch.flatMap((entry) => entry.callers), own];
    const answerMemory = this.#answers.memoryFor(rowsOf(batch));
    const command: InstanceCommand = {
      type: 'batch',
      batch: number,
      bytes,
      isLent,
      answerMemory,
      slot,
      requests,
      callers,
    };
    const transfer = [isLent ? memory : null, answerMemory].filter((buffer) => buffer !== null);
    return { command, transfer };
  }

  #deliver(message: InstanceMessage, batch: Batch, instance: OwnInstance): void {
    if (message.type === 'call') {
      void this.#call(message, instance);
      return;
    }
    if (message.type === 'dropped') {
      this.#take(message.memory);
      this.#answers.giveBack(message.answerMemory);
      instance.noteDropped(message.slot);
      return;
    }
    const { answers } = message;
    if (message.type === 'done') {
      for (const entry of batch) entry.times = message.times;
      this.#counters.noteExecution(rowsOf(batch), message.times);
      this.#answers.noteSize(answers.bytes.length, rowsOf(batch));
    }
    const { lease, end } = this.#answers.share(answers.bytes);
    for (const { request, outputs, parameters } of answers.responses) {
      const entry = batch[request];
      if (entry === undefined || !this.#host.has(entry)) continue;
      const tensors = outputs.map((output) => unpackTensor(output, answers.bytes));
      this.#noteResponse(entry);
      const response = { outputs: tensors, ...(parameters === null ? {} : { parameters }), release: lease() };
      if (this.#order === null) entry.on.response(response);
      else entry.held.push(response);
    }
    end();
    for (const index of answers.ended) this.#settle(batch[index]);
    for (const [index, reason] of answers.failed) {
      const entry = batch[index];
      if (entry !== undefined) this.#host.fail(entry, new InferError(reason, 'internal'));
    }
  }

  /** Memory of a batch that an instance has no use for any more. */
  #take(memory: ArrayBuffer | null): void {
    if (memory !== null) this.#memory.give(memory);
  }

  #noteResponse(entry: BatchedEntry): void {
    if (entry.hasResponded) return;
    entry.hasResponded = true;
    if (this.firstResponses !== undefined) this.#counters.noteFirstResponse(nsSince(entry.startMs));
  }

  #settle(entry: BatchedEntry | undefined): void {
    if (entry === undefined || !this.#host.has(entry)) return;
    this.#host.settle(entry);
    entry.end();
  }

  #over(entry: BatchedEntry, error: InferError | null): void {
    this.#countCallers(entry.callers, -1);
    const totalNs = nsSince(entry.startMs);
    if (error === null) {
      const queueNs = 1e6 * ((entry.begunMs ?? entry.startMs) - entry.startMs);
      this.#counters.noteSuccess(entry.rows, totalNs, queueNs, entry.times);
    } else this.#counters.noteFailure(reasonOf(error), totalNs);
    const tell = () => {
      for (const response of entry.held) entry.on.response(response);
      if (error === null) entry.on.end();
      else entry.on.fail(error);
    };
    if (this.#order === null) tell();
    else for (const { answer } of this.#order.settle(entry, tell)) answer();
  }

  async #call(
    { call, asked, callers }: Extract<InstanceMessage, { type: 'call' }>,
    instance: OwnInstance,
  ): Promise<void> {
    const release = instance.hold();
    try {
      const responses = await this.#options.onCall(asked, callers);
      instance.send({ type: 'called', call, responses, error: null });
    } catch (error) {
      instance.send({ type: 'called', call, responses: null, error: (error as Error).message });
    } finally {
      release();
      this.#host.wake();
    }
  }
}

function rowsOf(batch: Batch): number {
  return batch.reduce((sum, { rows }) => sum + rows, 0);
}

function noteBegun(batch: Batch): void {
  const nowMs = performance.now();
  for (const entry of batch) entry.begunMs ??= nowMs;
}

function nsSince(startMs: number): number {
  return 1e6 * (performance.now() - startMs);
}
