import { isDeepStrictEqual } from 'node:util';
import { errorOf } from '../../../base/error-record.js';
import { InferError } from '../../../callbacks/infer/infer-error.js';
import type { InferListener, InferRequest } from '../../../callbacks/infer/infer-types.js';
import type { InstanceInfo, InstanceMessage } from '../../../callbacks/infer/instance-messages.js';
import type { Backend, InstanceSetup } from '../../../engine/backends/backend.js';
import { BatchHost } from '../../../host/batch/batch-host.js';
import type { CloseOptions } from '../../../host/in-process-host.js';
import { WorkerStuckError } from '../../../host/worker-supervisor.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';
import type { OwnParameters } from '../../../models/repository/model-parameters.js';
import { type FitTensor, fitOf } from '../../../scheduler/tensors/batch-fit.js';
import { ReplyOrder } from '../../../scheduler/tensors/reply-order.js';
import type { OnCall } from '../answer-call.js';
import { checkedRequest } from '../check-request.js';
import { asInferError, reasonOf } from '../infer-failure.js';
import type { FailureReason, InferModel, ModelActivity, SequencePlace, TimeCounts } from '../infer-model.js';
import { InferenceCounters, nsSince } from '../inference-counters.js';
import { endModelSpan, modelSpan } from '../model-span.js';
import type { RateLimits } from '../rate-limits.js';
import { BatchedEntry } from './batched-entry.js';
import { type Batch, BatchedFormer } from './batched-former.js';
import { CalledParts, callWaits } from './called-parts.js';
import { checkedSequence } from './check-sequence.js';
import { GivenBatches } from './given-batches.js';
import { LentAnswers } from './lent-answers.js';
import { ModelCalls } from './model-calls.js';
import {
  BATCHES_AHEAD,
  hostOptions,
  type ModelDuties,
  type ModelHost,
  type ModelInstance,
} from './model-host.js';
import { ModelInstances } from './model-instances.js';
import { ModelReplies } from './model-replies.js';
import { ModelTurns } from './model-turns.js';
import { type KeyedSequence, keyedSequence, SequenceFormer } from './sequence-former.js';
import { keyOf, VersionBefore } from './version-before.js';

export interface BatchedModelOptions {
  backend: Backend;
  files: InstanceSetup['files'];
  config: ModelConfig;
  own: OwnParameters;
  /** What instances of all models share; null: nothing. */
  limits: RateLimits | null;
  /** Answers what the model's code asks of other models. */
  onCall: OnCall;
  onError: (error: Error) => void;
}

/**
 * A model of a repository that takes tensors: requests are held against its configuration, put together to batches, and run by its
 * instances, each in a worker.
 *
 *   infer -> checkedRequest -> DynamicBatcher or SequenceBatcher -> BatchHost -> instance -> answers -> each request's listener
 */
export class BatchedModel implements InferModel {
  readonly kind = 'tensors';
  config: ModelConfig;
  readonly version: string;
  readonly modelDirectory: string;
  readonly ignoresParameters: boolean;
  readonly firstResponses?: () => TimeCounts;
  readonly #options: BatchedModelOptions;
  readonly #host: ModelHost;
  readonly #instances: ModelInstances;
  readonly #given: GivenBatches;
  readonly #answers: LentAnswers;
  readonly #replies: ModelReplies;
  readonly #calls: ModelCalls;
  readonly #counters = new InferenceCounters();
  /** null: the model has no sequences. */
  readonly #sequences: SequenceFormer | null;
  readonly #before = new VersionBefore();
  /** Where the model preserves the order of its requests; null: answers go as they come. */
  readonly #order: ReplyOrder<BatchedEntry, () => void> | null;
  readonly #called: CalledParts;
  /** Requests of equal text may be rows of one batch. */
  readonly #fit: (inputs: readonly FitTensor[]) => string;

  constructor(options: BatchedModelOptions) {
    const { backend, files, config, own, limits, onCall, onError } = options;
    this.#options = options;
    this.config = config;
    this.version = files.version;
    this.modelDirectory = files.directory;
    this.ignoresParameters = backend.readsParameters !== true;
    const isDecoupled = config.model_transaction_policy.decoupled;
    if (isDecoupled) this.firstResponses = () => this.#counters.firstResponses();
    this.#instances = new ModelInstances(config, limits);
    const { numInstances } = this;
    const isThread = own.instanceKind !== 'process';
    const answers = new LentAnswers(BATCHES_AHEAD * numInstances, isThread && !isDecoupled);
    this.#answers = answers;
    this.#fit = fitOf(config.input, config.max_batch_size > 0);
    this.#order = config.dynamic_batching?.preserve_ordering ? new ReplyOrder() : null;
    const called = new CalledParts(config.name, this, config.sequence_batching !== undefined);
    this.#called = called;
    const sequences =
      config.sequence_batching === undefined
        ? null
        : new SequenceFormer(config, numInstances, (instance, ended) =>
            this.#host.send(instance, { type: 'ended', sequences: ended }),
          );
    this.#sequences = sequences;
    this.#given = new GivenBatches({ config, isLent: isThread, answers, called, sequences, numInstances });
    const host = new BatchHost(
      hostOptions({
        ...{ backend, files, own, numInstances, onError },
        config: () => this.config,
        nameOf: (index) => this.#instances.nameOf(index),
        isBound: sequences !== null || this.#instances.haveTurns,
      }),
      this.#duties(),
    );
    this.#host = host;
    const { name: modelName } = config;
    this.#replies = new ModelReplies({
      modelName,
      host,
      answers,
      counters: this.#counters,
      sequences,
      isDecoupled,
    });
    this.#calls = new ModelCalls(host, this.#instances, onCall);
  }

  #duties(): ModelDuties {
    const { config } = this;
    const { turns } = this.#instances;
    return {
      former: this.#sequences ?? new BatchedFormer(config),
      ...(turns === undefined ? {} : { turns }),
      noteReady: () => {},
      noteRemoved: (index) => this.#instances.noteRemoved(index),
      entriesOf: (batch) => batch,
      pack: (batch, slot) => this.#given.pack(batch, slot),
      noteBegun: (batch) => this.#given.begin(batch),
      ...(config.model_transaction_policy.decoupled
        ? { noteGone: (entry, batch, instance) => this.#cancel(entry, batch, instance) }
        : {}),
      drop: (batch) => this.#given.end(batch),
      endsBatch: (message, batch) => {
        if (message.type !== 'done') return false;
        this.#given.end(batch, message.times);
        this.#putAgain(batch, message.again);
        this.#given.take(message.memory);
        return true;
      },
      deliver: (message, batch, instance) => this.#deliver(message, batch ?? [], instance),
      lostError: (error) => new InferError(`the model '${config.name}' failed: ${error.message}`, 'internal'),
    };
  }

  /** Instances that are not to go. */
  get numInstances(): number {
    return this.#instances.size;
  }

  /** Instances can come and go while the others run: all that this configuration changes is `instance_group`. */
  canBecome(config: ModelConfig): boolean {
    const hasTurns = this.#options.limits !== null && ModelTurns.areNeeded(config.instance_group);
    if (hasTurns !== this.#instances.haveTurns) return false;
    return isDeepStrictEqual({ ...this.config, instance_group: [] }, { ...config, instance_group: [] });
  }

  /**
   * Has the instances of another configuration, which `canBecome` takes. Those that are in both stay; those that go end what they have, and the
   * sequences that they have, after this resolves.
   * @param within settles with the promise, or rejects where that takes too long @throws where one cannot be loaded: nothing has changed then
   */
  async become(
    config: ModelConfig,
    within: (ready: Promise<unknown>, limitMs: number) => Promise<void>,
  ): Promise<void> {
    const before = this.config;
    this.config = config;
    const limitMs = this.#options.own.initializeTimeoutMs;
    try {
      await this.#instances.become(config, this.#host, (ready) => within(ready, limitMs));
    } catch (error) {
      this.config = before;
      throw error;
    }
    this.#given.keep(this.numInstances);
    this.#answers.keep(BATCHES_AHEAD * this.numInstances);
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
    const activity = { waiting: size - running, running, instances, restarts, lastInference };
    return this.#sequences === null ? activity : { ...activity, sequences: this.#sequences.counts };
  }

  failures(): Readonly<Record<FailureReason, number>> {
    return this.#counters.failures();
  }

  isStuck(): boolean {
    return this.#host.failure instanceof WorkerStuckError;
  }

  close(options?: CloseOptions): Promise<void> {
    this.#sequences?.giveUp();
    return this.#host.close(options).finally(() => this.#instances.close());
  }

  /** See SequencePlace: of a model with sequences. */
  goOnFrom(before: SequencePlace): void {
    this.#before.follow(before);
  }

  whenOver(): Promise<void> {
    return this.#sequences?.whenOver() ?? Promise.resolve();
  }

  holds(request: InferRequest): boolean {
    const key = keyOf(request);
    if (key === null) return false;
    return this.#sequences?.has(key) === true || this.#before.holds(request, key);
  }

  infer(request: InferRequest, on: InferListener): void {
    const before = this.#before.placeOf(request);
    if (before !== null) {
      before.infer(request, on);
      return;
    }
    const fitting = checkedRequest(this.config, request);
    const checked = { ...fitting, sequence: this.#sequenceOf(request, fitting.batchSize) };
    const { caller } = request;
    const { sequence } = checked;
    const called = this.#called.of(sequence === null ? null : this.#sequences!.instanceFor(sequence));
    if (caller !== undefined) this.#called.check(caller, called);
    const fit = this.#fit(checked.inputs);
    const entry = new BatchedEntry(request, checked, fit, on, (one, error) =>
      this.#replies.noteOver(one, error),
    );
    if (caller !== undefined) callWaits.ask(entry, caller, called);
    entry.span = modelSpan(request.trace, this.config, this.version, request.id, entry.startMs);
    try {
      this.#host.submit(entry, request.signal);
    } catch (error) {
      callWaits.answered(entry);
      const told = asInferError(error);
      endModelSpan(entry.span, told);
      // One that no sequence takes is wrong, as one of a wrong shape is: neither is counted.
      if (told.kind !== 'invalid') this.#counters.noteFailure(reasonOf(told), nsSince(entry.startMs));
      throw told;
    }
    if (this.#order !== null) entry.keepTo(this.#order);
  }

  #sequenceOf(request: InferRequest, batchSize: number): KeyedSequence | null {
    if (this.#sequences === null) return null;
    const sequence = checkedSequence(this.config, request, batchSize);
    if (sequence === null) return this.#sequences.ownSequence();
    const keyed = keyedSequence(sequence, request.owner);
    // An iterative one ends when the model lets its request go, whatever its client says of it.
    return this.config.sequence_batching!.iterative_sequence ? { ...keyed, end: false } : keyed;
  }

  /** Requests of an iterative model that are to run once more. */
  #putAgain(batch: Batch, again: readonly number[]): void {
    for (const index of again) {
      const entry = batch[index];
      if (entry !== undefined && this.#host.has(entry)) this.#sequences?.putAgain(entry);
    }
  }

  /** The request is no longer awaited: its model, which may have many answers left, is notified. */
  #cancel(entry: BatchedEntry, batch: Batch, instance: ModelInstance): void {
    const given = this.#given.find(batch);
    if (given === undefined) return;
    instance.send({ type: 'cancelled', batch: given.number, request: batch.indexOf(entry) });
  }

  #deliver(message: InstanceMessage, batch: Batch, instance: ModelInstance): void {
    if (message.type === 'call') void this.#calls.answer(message, this.#given.find(batch), instance);
    else if (message.type === 'dropped') {
      this.#given.take(message.memory);
      this.#answers.giveBack(message.answerMemory);
      instance.noteDropped(message.slot);
    } else if (message.type === 'error') this.#host.report(errorOf(message.error));
    else this.#replies.deliver(message, batch, instance);
  }
}
