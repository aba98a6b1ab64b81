import { performance } from 'node:perf_hooks';
import { isDeepStrictEqual } from 'node:util';
import { BufferPool } from '../../../base/buffer-pool.js';
import { cutText } from '../../../base/cut-text.js';
import { errorOf } from '../../../base/error-record.js';
import { InferError } from '../../../callbacks/infer/infer-error.js';
import type { InferListener, InferRequest } from '../../../callbacks/infer/infer-types.js';
import type {
  InstanceCommand,
  InstanceInfo,
  InstanceMessage,
  ModelCallResponse,
} from '../../../callbacks/infer/instance-messages.js';
import { LONGEST_MESSAGE } from '../../../callbacks/infer/request-limits.js';
import { sentTensors } from '../../../callbacks/infer/sent-tensors.js';
import type { Backend, InstanceSetup } from '../../../engine/backends/backend.js';
import type { InstanceWorkerData } from '../../../engine/backends/instance-worker.js';
import { packBatch, unpackTensor } from '../../../engine/backends/packed-batch.js';
import { instanceWorkerScript } from '../../../engine/backends/worker-script.js';
import type { BatchDuties } from '../../../host/batch/batch-duties.js';
import { BatchHost } from '../../../host/batch/batch-host.js';
import type { BatchInstance } from '../../../host/batch/batch-instance.js';
import type { CloseOptions } from '../../../host/in-process-host.js';
import { WorkerStuckError } from '../../../host/worker-supervisor.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';
import type { OwnParameters } from '../../../models/repository/model-parameters.js';
import { type FitTensor, fitOf } from '../../../scheduler/tensors/batch-fit.js';
import { ReplyOrder } from '../../../scheduler/tensors/reply-order.js';
import type { SequenceKey } from '../../../scheduler/tensors/sequences/sequence-line.js';
import type { OnCall } from '../answer-call.js';
import { checkedRequest } from '../check-request.js';
import { asInferError, reasonOf } from '../infer-failure.js';
import type { FailureReason, InferModel, ModelActivity, TimeCounts } from '../infer-model.js';
import { InferenceCounters } from '../inference-counters.js';
import { endModelSpan, modelSpan } from '../model-span.js';
import type { RateLimits } from '../rate-limits.js';
import type { SequencePlace } from '../sequence-place.js';
import { BatchTrace } from './batch-trace.js';
import { BatchedEntry } from './batched-entry.js';
import { type Batch, BatchedFormer } from './batched-former.js';
import { CalledParts, callWaits } from './called-parts.js';
import { checkedSequence } from './check-sequence.js';
import { LentAnswers } from './lent-answers.js';
import { ModelTurns } from './model-turns.js';
import { changeOf, instancesOf, type NamedInstance } from './named-instances.js';
import { type KeyedSequence, keyedSequence, SequenceFormer } from './sequence-former.js';

/** Batches that an instance may have: one that it runs and one that waits, so that it never waits for this thread. */
const BATCHES_AHEAD = 2;
/**
 * One that waits saves the way to this thread and back, some tenths of a millisecond: behind batches that take longer than this, it is taken
 * back, and the batcher decides anew.
 */
const RECALL_AFTER_MS = 5;
/** Requests that wait or run, where the configuration sets no limit. */
const MAX_ENTRIES = 65_536;

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

type Host = BatchHost<BatchedEntry, Batch, InstanceInfo, InstanceMessage, InstanceCommand>;
type Duties = BatchDuties<BatchedEntry, Batch, InstanceInfo, InstanceMessage, InstanceCommand>;
type OwnInstance = BatchInstance<Batch, InstanceInfo, InstanceMessage, InstanceCommand>;

/** A batch that an instance has. */
interface GivenBatch {
  number: number;
  /** Aborted with the end of the batch: what its code has asked of other models is not waited for any more. Null: it has asked nothing. */
  calls: AbortController | null;
  /** null: it has not begun, or none of its requests is traced. */
  trace: BatchTrace | null;
}

/** Batches of all models of this process, counted. */
let numBatches = 0;

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
  readonly #host: Host;
  readonly #memory: BufferPool;
  readonly #answers: LentAnswers;
  readonly #counters = new InferenceCounters();
  /** By their numbers at the host; those that are to go are not among them. */
  readonly #instances = new Map<number, NamedInstance>();
  /** Those that are to go too, until they are gone. */
  readonly #names = new Map<number, string>();
  /** What instances have. */
  readonly #given = new WeakMap<Batch, GivenBatch>();
  /** null: an instance executes as soon as it is free. */
  #turns: ModelTurns | null = null;
  /** null: the model has no sequences. */
  readonly #sequences: SequenceFormer | null;
  /** What this one has taken the place of, while sequences are under way there; null: nothing. */
  #before: SequencePlace | null = null;
  /** Sequences of the version before that have begun again in this one. */
  readonly #restarted = new Set<SequenceKey>();
  /** Where the model preserves the order of its requests; null: answers go as they come. */
  readonly #order: ReplyOrder<BatchedEntry, () => void> | null;
  readonly #called: CalledParts;
  /** Requests of equal text may be rows of one batch. */
  readonly #fit: (inputs: readonly FitTensor[]) => string;

  constructor(options: BatchedModelOptions) {
    const { backend, files, config, own, limits, onError } = options;
    this.#options = options;
    this.config = config;
    this.version = files.version;
    this.modelDirectory = files.directory;
    this.ignoresParameters = backend.readsParameters !== true;
    if (config.model_transaction_policy.decoupled)
      this.firstResponses = () => this.#counters.firstResponses();
    const instances = instancesOf(config.instance_group);
    const isProcess = own.instanceKind === 'process';
    const maxKept = BATCHES_AHEAD * instances.length;
    this.#memory = new BufferPool({ maxKept });
    this.#answers = new LentAnswers(maxKept, !isProcess && this.firstResponses === undefined);
    this.#fit = fitOf(config.input, config.max_batch_size > 0);
    this.#order = config.dynamic_batching?.preserve_ordering ? new ReplyOrder() : null;
    this.#called = new CalledParts(config.name, this, config.sequence_batching !== undefined);
    this.#sequences =
      config.sequence_batching === undefined
        ? null
        : new SequenceFormer(config, instances.length, (instance, sequences) =>
            this.#host.send(instance, { type: 'ended', sequences }),
          );
    const hasTurns = limits !== null && ModelTurns.areNeeded(config.instance_group);
    // A batch of sequences is formed when those before it are done, and one that needs a turn when it has it: none is sent ahead of a busy instance.
    const ahead =
      this.#sequences === null && !hasTurns
        ? { batchesAhead: BATCHES_AHEAD, recallAfterMs: RECALL_AFTER_MS }
        : { batchesAhead: 1 };
    const data = (i: number, claims: SharedArrayBuffer | null): InstanceWorkerData => ({
      entry: backend.entry.href,
      setup: {
        files,
        config: this.config,
        instanceName: this.#names.get(i)!,
        maxStateBytes: own.maxStateBytes,
      },
      claims,
    });
    for (const [i, instance] of instances.entries()) this.#note(i, instance);
    this.#host = new BatchHost(
      {
        subject: `The model '${config.name}'`,
        script: instanceWorkerScript(),
        data,
        ownerName: (i) => `Instance ${this.#names.get(i)}`,
        instances: instances.length,
        ...ahead,
        maxEntries: MAX_ENTRIES,
        timeLimitMs: own.executeTimeoutMs,
        startLimitMs: own.initializeTimeoutMs,
        isolate: isProcess,
        onError,
      },
      this.#duties(isProcess, hasTurns ? limits : null),
    );
  }

  #duties(isProcess: boolean, limits: RateLimits | null): Duties {
    const { config } = this;
    return {
      former: this.#sequences ?? new BatchedFormer(config),
      ...(limits === null
        ? {}
        : {
            turns: (run) => {
              this.#turns = new ModelTurns(limits, run);
              for (const [i, { group }] of this.#instances) this.#turns.add(i, group);
              return this.#turns;
            },
          }),
      noteReady: () => {},
      noteRemoved: (index) => {
        this.#names.delete(index);
        this.#turns?.remove(index);
      },
      entriesOf: (batch) => batch,
      pack: (batch, slot) => this.#pack(batch, slot, !isProcess),
      noteBegun: (batch) => this.#begin(batch),
      ...(config.model_transaction_policy.decoupled
        ? { noteGone: (entry, batch, instance) => this.#cancel(entry, batch, instance) }
        : {}),
      drop: (batch) => this.#noteEnd(batch),
      endsBatch: (message, batch) => {
        if (message.type !== 'done') return false;
        this.#given.get(batch)?.trace?.end(message.times);
        this.#noteEnd(batch);
        this.#putAgain(batch, message.again);
        this.#take(message.memory);
        return true;
      },
      deliver: (message, batch, instance) => this.#deliver(message, batch ?? [], instance),
      lostError: (error) => new InferError(`the model '${config.name}' failed: ${error.message}`, 'internal'),
    };
  }

  #note(index: number, instance: NamedInstance): void {
    this.#instances.set(index, instance);
    this.#names.set(index, instance.name);
    this.#turns?.add(index, instance.group);
  }

  /** Instances that are not to go. */
  get numInstances(): number {
    return this.#instances.size;
  }

  /** Instances can come and go while the others run: all that this configuration changes is `instance_group`. */
  canBecome(config: ModelConfig): boolean {
    const hasTurns = this.#options.limits !== null && ModelTurns.areNeeded(config.instance_group);
    if (hasTurns !== (this.#turns !== null)) return false;
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
    const { added, removed } = changeOf(this.#instances, config.instance_group);
    this.config = config;
    const coming = added.map((one) => this.#host.addInstance((index) => this.#note(index, one)));
    try {
      await within(Promise.all(coming.map(({ ready }) => ready)), this.#options.own.initializeTimeoutMs);
    } catch (error) {
      this.config = before;
      for (const { index } of coming) this.#remove(index);
      throw error;
    }
    for (const index of removed) this.#remove(index);
    this.#memory.keep(BATCHES_AHEAD * this.numInstances);
    this.#answers.keep(BATCHES_AHEAD * this.numInstances);
  }

  #remove(index: number): void {
    this.#instances.delete(index);
    // It may be gone already: it could not be loaded.
    if (this.#names.has(index)) void this.#host.removeInstance(index);
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
    return this.#host.close(options).finally(() => this.#turns?.close());
  }

  /** See SequencePlace: of a model with sequences. */
  goOnFrom(before: SequencePlace): void {
    this.#before = before;
    void before.whenOver().then(() => {
      this.#before = null;
      this.#restarted.clear();
    });
  }

  whenOver(): Promise<void> {
    return this.#sequences?.whenOver() ?? Promise.resolve();
  }

  holds(request: InferRequest): boolean {
    const key = keyOf(request);
    if (key === null) return false;
    return this.#sequences?.has(key) === true || this.#isOfBefore(request, key);
  }

  /** The sequence of the request is under way in the version before, and has not begun again in this one. */
  #isOfBefore(request: InferRequest, key: SequenceKey): boolean {
    return this.#before !== null && !this.#restarted.has(key) && this.#before.holds(request);
  }

  /** Whether a request is answered by the version before, which has its sequence. One that begins a sequence is not. */
  #goesBefore(request: InferRequest): boolean {
    const key = this.#before === null ? null : keyOf(request);
    if (key === null || !this.#isOfBefore(request, key)) return false;
    if (request.sequence!.start) this.#restarted.add(key);
    return !request.sequence!.start;
  }

  infer(request: InferRequest, on: InferListener): void {
    if (this.#goesBefore(request)) {
      this.#before!.infer(request, on);
      return;
    }
    const fitting = checkedRequest(this.config, request);
    const checked = { ...fitting, sequence: this.#sequenceOf(request, fitting.batchSize) };
    const { caller } = request;
    const { sequence } = checked;
    const called = this.#called.of(sequence === null ? null : this.#sequences!.instanceFor(sequence));
    if (caller !== undefined) this.#called.check(caller, called);
    const fit = this.#fit(checked.inputs);
    const entry = new BatchedEntry(request, checked, fit, on, (one, error) => this.#over(one, error));
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
    if (this.#order !== null) this.#hold(entry, this.#order);
  }

  #sequenceOf(request: InferRequest, batchSize: number): KeyedSequence | null {
    if (this.#sequences === null) return null;
    const sequence = checkedSequence(this.config, request, batchSize);
    if (sequence === null) return this.#sequences.ownSequence();
    const keyed = keyedSequence(sequence, request.owner);
    // An iterative one ends when the model lets its request go, whatever its client says of it.
    return this.config.sequence_batching!.iterative_sequence ? { ...keyed, end: false } : keyed;
  }

  #hold(entry: BatchedEntry, order: ReplyOrder<BatchedEntry, () => void>): void {
    entry.order = order;
    order.begin(entry);
  }

  /** Requests of an iterative model that are to run once more. */
  #putAgain(batch: Batch, again: readonly number[]): void {
    for (const index of again) {
      const entry = batch[index];
      if (entry !== undefined && this.#host.has(entry)) this.#sequences?.putAgain(entry);
    }
  }

  #noteEnd(batch: Batch): void {
    const given = this.#given.get(batch);
    if (given === undefined) return;
    callWaits.end(given.number);
    given.calls?.abort();
    given.trace?.end(null);
  }

  /** An instance begins with the batch. */
  #begin(batch: Batch): void {
    const nowMs = performance.now();
    for (const entry of batch) entry.begunMs ??= nowMs;
    const given = this.#given.get(batch);
    if (given !== undefined) given.trace ??= BatchTrace.begin(this.config, batch, nowMs);
  }

  /** Nobody waits for the request any more: its model, which may have many answers left, is told. */
  #cancel(entry: BatchedEntry, batch: Batch, instance: OwnInstance): void {
    const given = this.#given.get(batch);
    if (given === undefined) return;
    instance.send({ type: 'cancelled', batch: given.number, request: batch.indexOf(entry) });
  }

  #pack(batch: Batch, slot: number | null, isLent: boolean) {
    const { memory, bytes, requests } = packBatch(batch, this.#memory);
    this.#noteEnd(batch); // it was with an instance that is lost, or had it taken back
    const number = numBatches++;
    this.#given.set(batch, { number, calls: null, trace: null });
    callWaits.begin(number, this.#called.keptBy(this.#sequences?.instanceOf(batch) ?? null), batch);
    if (this.config.sequence_batching?.oldest?.preserve_ordering) {
      const order = new ReplyOrder<BatchedEntry, () => void>();
      for (const entry of batch) this.#hold(entry, order);
    }
    const answerMemory = this.#answers.memoryFor(rowsOf(batch));
    const command: InstanceCommand = {
      type: 'batch',
      batch: number,
      bytes,
      isLent,
      answerMemory,
      slot,
      requests,
      rows: this.#sequences?.rowsOf(batch) ?? null,
    };
    const transfer = [isLent ? memory : null, answerMemory].filter((buffer) => buffer !== null);
    return { command, transfer };
  }

  #deliver(message: InstanceMessage, batch: Batch, instance: OwnInstance): void {
    if (message.type === 'call') {
      void this.#call(message, this.#given.get(batch), instance);
      return;
    }
    if (message.type === 'dropped') {
      this.#take(message.memory);
      this.#answers.giveBack(message.answerMemory);
      instance.noteDropped(message.slot);
      return;
    }
    if (message.type === 'error') {
      this.#host.report(errorOf(message.error));
      return;
    }
    const { answers } = message;
    const rooms: Promise<void>[] = [];
    if (message.type === 'done') {
      for (const entry of batch) entry.times = message.times;
      this.#counters.noteExecution(this.#sequences?.rowsOf(batch) ?? rowsOf(batch), message.times);
      this.#answers.noteSize(answers.bytes.length, rowsOf(batch));
    }
    const { lease, end } = this.#answers.share(answers.bytes);
    for (const { request, outputs, parameters } of answers.responses) {
      const entry = batch[request];
      if (entry === undefined || !this.#host.has(entry)) continue;
      const tensors = outputs.map((output) => unpackTensor(output, answers.bytes));
      this.#noteResponse(entry);
      const response = { outputs: tensors, ...(parameters === null ? {} : { parameters }), release: lease() };
      if (entry.order === null) {
        const room = entry.on.response(response);
        if (room !== undefined) rooms.push(room);
      } else if (!entry.hold(response)) this.#host.fail(entry, tooManyHeld(this.config.name));
    }
    end();
    if (message.type === 'answers') this.#askForMore(instance, rooms);
    for (const index of answers.ended) this.#settle(batch[index]);
    for (const [index, reason] of answers.failed) {
      const entry = batch[index];
      if (entry !== undefined) this.#host.fail(entry, new InferError(reason, 'internal'));
    }
  }

  /**
   * In another turn: what else there is to do in this process comes between the answers of a model that has many; and not before whoever
   * reads them has room for more. @param rooms resolve when there is
   */
  #askForMore(instance: OwnInstance, rooms: readonly Promise<void>[]): void {
    const { restarts } = instance;
    const ask = () => {
      setImmediate(() => {
        if (restarts === instance.restarts) instance.send({ type: 'taken' });
      });
    };
    if (rooms.length === 0) ask();
    else void Promise.all(rooms).then(ask);
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
    callWaits.answered(entry);
    endModelSpan(entry.span, error);
    const totalNs = nsSince(entry.startMs);
    if (error === null) {
      const queueNs = 1e6 * ((entry.begunMs ?? entry.startMs) - entry.startMs);
      this.#counters.noteSuccess(entry.rows, totalNs, queueNs, entry.times);
      entry.onTimes?.(entry.times);
    } else this.#counters.noteFailure(reasonOf(error), totalNs);
    const tell = () => {
      for (const response of entry.held) entry.on.response(response);
      if (error === null) entry.on.end();
      else entry.on.fail(error);
    };
    if (entry.order === null) tell();
    else for (const { answer } of entry.order.settle(entry, tell)) answer();
  }

  /** @param given the batch whose code asks; undefined: that one is over */
  async #call(
    { call, asked }: Extract<InstanceMessage, { type: 'call' }>,
    given: GivenBatch | undefined,
    instance: OwnInstance,
  ): Promise<void> {
    const { restarts } = instance;
    // A worker that is started anew numbers its calls anew: they are not those of the one before.
    const answer = (responses: readonly ModelCallResponse[] | null, error: string | null) => {
      if (restarts === instance.restarts) instance.send({ type: 'called', call, responses, error });
    };
    if (given === undefined) {
      answer(null, 'other models can be asked in execute, until its batch is done');
      return;
    }
    given.calls ??= new AbortController();
    const { signal } = given.calls;
    const release = instance.hold();
    const turnIsBack = this.#turns?.waitForCall(this.#host.indexOf(instance));
    try {
      const trace = given.trace?.parentOf(asked.request);
      const ask = async () => this.#options.onCall(asked, given.number, signal, trace);
      const responses = await ask().finally(turnIsBack);
      answer(
        responses.map((one) => ({ ...one, outputs: sentTensors(one.outputs) })),
        null,
      );
    } catch (error) {
      answer(null, cutText((error as Error).message, LONGEST_MESSAGE));
    } finally {
      release();
      this.#host.wake();
    }
  }
}

function tooManyHeld(name: string): InferError {
  const what = 'its answers would take too much memory while they wait for those of earlier requests';
  return new InferError(`the model '${name}' preserves the order of its requests: ${what}`, 'internal');
}

/** The key of a request's sequence; null: it has none. */
function keyOf({ sequence, owner }: InferRequest): SequenceKey | null {
  return sequence === null ? null : keyedSequence(sequence, owner).key;
}

function rowsOf(batch: Batch): number {
  return batch.reduce((sum, { rows }) => sum + rows, 0);
}

function nsSince(startMs: number): number {
  return 1e6 * (performance.now() - startMs);
}
