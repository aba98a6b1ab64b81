import { onAbort } from '../../../base/on-abort.js';
import { bytesOf } from '../../../callbacks/infer/answer-limits.js';
import type { InferError } from '../../../callbacks/infer/infer-error.js';
import type {
  InferListener,
  InferOrigin,
  InferRequest,
  InferResponse,
  InferTensor,
} from '../../../callbacks/infer/infer-types.js';
import type { BatchTimes } from '../../../callbacks/infer/instance-messages.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';
import type { EnsemblePlan } from '../../../scheduler/tensors/ensemble-plan.js';
import {
  EnsembleState,
  type Start,
  type WantedParts,
  wantedParts,
} from '../../../scheduler/tensors/ensemble-state.js';
import { asInferError, requestCancelled } from '../infer-failure.js';
import type { InferModel } from '../infer-model.js';
import { inEnsemble, noAnswer, ofMember, tooMuchHeld, unmetError } from './ensemble-errors.js';
import { EnsembleValues, type Value } from './ensemble-values.js';
import { type Lease, Leases } from './lease.js';
import { parametersOf, placeIn, type SequencePlace, sequenceAt } from './sequence-parameters.js';
import type { StepLimit } from './step-limit.js';
import { type Released, type StepRun, StepRuns } from './step-run.js';
import { asInput, asOutput, reshaped, rowsOf } from './step-tensors.js';

/** What all requests of an ensemble have in common. */
export interface EnsembleParts {
  readonly config: ModelConfig;
  readonly plan: EnsemblePlan;
  /** By step. */
  readonly limits: readonly StepLimit[];
  /** A member, as it is now. @throws InferError where it is not ready */
  find(name: string, version: string): InferModel;
}

/** Called once, when the request is over. @param error null: it was answered */
export type OnOver = (error: InferError | null, times: BatchTimes) => void;

/**
 * One request of an ensemble on its way through the members. What has come decides what begins; a step that
 * is not needed does not run. Tensors go from member to member as they are.
 *
 *   begin -> ready steps -> InferModel.infer -> responses -> tensors -> ready steps -> ...
 *                                                              '-> outputs, when all of them are there -> the client
 */
export class EnsembleRun {
  readonly #parts: EnsembleParts;
  readonly #request: InferRequest;
  readonly #origins: readonly InferOrigin[];
  readonly #on: InferListener;
  readonly #onOver: OnOver;
  readonly #wanted: WantedParts;
  readonly #state: EnsembleState;
  readonly #values: EnsembleValues;
  readonly #runs: readonly StepRuns[];
  readonly #leases: Leases;
  /** Aborted when the request is over before its members are. */
  readonly #cancelled = new AbortController();
  readonly #leave: () => void;
  /** Takes back steps that wait for their limit. */
  readonly #waiting = new Set<() => void>();
  readonly #times: BatchTimes = { inputNs: 0, inferNs: 0, outputNs: 0 };
  #running = 0;
  /**
   * Resolves when the receiver of the answers has room again: members with many answers wait that long. Null:
   * there is room.
   */
  #room: Promise<void> | null = null;
  #isOver = false;
  /** While it begins, a failure goes to its caller and not to the listener. */
  #isBeginning = true;
  #refusal: InferError | null = null;

  /** @param origins the steps, for this request */
  constructor(
    parts: EnsembleParts,
    request: InferRequest,
    origins: readonly InferOrigin[],
    on: InferListener,
    onOver: OnOver,
  ) {
    const { plan } = parts;
    this.#parts = parts;
    this.#request = request;
    this.#origins = origins;
    this.#on = on;
    this.#onOver = onOver;
    this.#wanted = wantedParts(plan, request.outputs);
    this.#state = new EnsembleState(plan, this.#wanted);
    this.#leases = new Leases(request.terms);
    this.#values = new EnsembleValues(plan.tensors.length);
    this.#runs = plan.steps.map(() => new StepRuns());
    const { signal, terms } = request;
    const leaves = [
      signal && onAbort(signal, () => this.cancel(signal.reason)),
      terms?.stop && onAbort(terms.stop, () => this.#stop()),
    ];
    this.#leave = () => {
      for (const leave of leaves) leave?.();
    };
  }

  /**
   * Begins with the tensors of the request. @param inputs those of the configuration, without what was left out
   * @throws InferError where it fails at once
   */
  begin(inputs: readonly InferTensor[], batchSize: number): void {
    const { input, max_batch_size } = this.#parts.config;
    const rows = max_batch_size > 0 ? batchSize : 0;
    for (const [number, { name, reshape }] of input.entries()) {
      const given = inputs.find((one) => one.name === name);
      const tensor = given && reshaped(given, reshape?.shape, rows);
      this.#arrive(number, tensor && { tensor, batchSize: rows, sequence: null, lease: null });
    }
    // An answer comes later, also one that is made of the request alone.
    if (this.#wanted.steps.includes(true)) this.#advance();
    else queueMicrotask(() => this.#advance());
    this.#isBeginning = false;
    if (this.#refusal !== null) throw this.#refusal;
  }

  /** The answer is no longer wanted, or can no longer be given. */
  cancel(reason: unknown): void {
    this.#fail(asInferError(reason));
  }

  /** A member that ends by itself when stopped is left to do so, and its responses are passed on. */
  #stop(): void {
    const endsByItself = this.#runs.some((runs) => runs.has(({ model }) => model.endsWhenStopped === true));
    if (!endsByItself) this.cancel(requestCancelled());
  }

  /** @param value undefined: it was left out */
  #arrive(tensor: number, value: Value | undefined): void {
    const number = this.#state.arrive(tensor);
    this.#values.put(tensor, number, value, this.#wanted.uses[tensor]!);
  }

  /** Begins what may begin, and answers what is complete. */
  #advance(): void {
    for (const start of this.#state.ready()) if (!this.#isOver) this.#enter(start);
    for (const number of this.#state.answers()) if (!this.#isOver) this.#answer(number);
    if (!this.#isOver && this.#running === 0 && this.#waiting.size === 0) this.#end();
  }

  #enter(start: Start): void {
    const limit = this.#parts.limits[start.step]!;
    const place: { leave: () => void } = { leave: () => {} };
    let hasBegun = false;
    const begin = () => {
      hasBegun = true;
      this.#waiting.delete(place.leave);
      try {
        this.#start(start);
      } catch (error) {
        limit.end();
        this.#failIn(error);
      }
    };
    place.leave = limit.enter(begin);
    if (!hasBegun) this.#waiting.add(place.leave);
  }

  /** Asks a member. @throws whatever it refuses at once */
  #start({ step, iteration }: Start): void {
    const { model: name, version, inputs, outputs } = this.#parts.plan.steps[step]!;
    const { id, parameters, priority, timeoutUs, owner, caller, terms, trace } = this.#request;
    const values = inputs.map(([, tensor]) => this.#values.use(tensor, iteration));
    const model = this.#asked(name, () => this.#parts.find(name, version));
    const { config } = model;
    const given = inputs.flatMap(([input], i) => {
      const value = values[i]!;
      return value === null ? [] : [asInput(config, input, value)];
    });
    const sequence = values.find((value) => value?.sequence)?.sequence ?? this.#ownSequence;
    const leases = values.flatMap((value) => value?.lease ?? []);
    const batchSize = rowsOf(config, given);
    const begun = { numResponses: 0, held: [], hasEnded: false };
    const run: StepRun = { step, iteration, model, leases, batchSize, sequence, ...begun };
    const request: InferRequest = {
      id,
      inputs: given,
      outputs: outputs.flatMap(([output, tensor]) => (this.#wanted.uses[tensor]! > 0 ? [output] : [])),
      parameters,
      sequence: sequenceAt(sequence),
      priority,
      timeoutUs,
      signal: this.#cancelled.signal,
      owner,
      caller,
      terms,
      trace,
      // What it takes of a member that has one response is one.
      takesOne: config.model_transaction_policy.decoupled ? undefined : true,
      origin: this.#origins[step],
      onTimes: (times) => this.#noteTimes(times),
    };
    const on: InferListener = {
      response: (response) => {
        this.#respond(run, response);
        return this.#room ?? undefined;
      },
      end: () => this.#endRun(run),
      fail: (error) => this.#failRun(run, error),
    };
    this.#running++;
    this.#runs[step]!.begin(run);
    this.#asked(name, () => model.infer(request, on));
  }

  /** Asks something of a member; what it throws names it. */
  #asked<T>(name: string, ask: () => T): T {
    try {
      return ask();
    } catch (error) {
      throw ofMember(name, error);
    }
  }

  get #ownSequence(): SequencePlace {
    return this.#request.sequence ?? { id: 0n, start: false, end: false };
  }

  #respond(run: StepRun, response: InferResponse): void {
    if (this.#isOver) return;
    const { outputs, parameters, release } = response;
    const isFirst = run.iteration === 0 && run.numResponses === 0;
    try {
      const lease = this.#leases.open(bytesOf(outputs, parameters), isFirst, release);
      this.#go(this.#runs[run.step]!.respond(run, { response, lease }));
    } catch (error) {
      this.#failIn(error);
    }
  }

  #endRun(run: StepRun): void {
    this.#parts.limits[run.step]!.end();
    if (this.#isOver) return;
    this.#running--;
    for (const lease of run.leases) lease.drop();
    const { name, model_transaction_policy: policy } = run.model.config;
    if (run.numResponses === 0 && !policy.decoupled) this.#failIn(noAnswer(name));
    else this.#go(this.#runs[run.step]!.end(run));
  }

  #failRun(run: StepRun, error: unknown): void {
    this.#parts.limits[run.step]!.end();
    if (this.#isOver) return;
    this.#failIn(ofMember(run.model.config.name, error));
  }

  /** Responses whose turn it is. */
  #go(released: readonly Released[]): void {
    try {
      for (const one of released) this.#put(one);
      if (this.#leases.isTooMuch) throw tooMuchHeld();
    } catch (error) {
      this.#failIn(error);
    }
    if (!this.#isOver) this.#advance();
  }

  #put({
    run: { step, batchSize, sequence: asked },
    response: { outputs, parameters },
    lease,
  }: Released): void {
    const sequence = placeIn(parameters, asked);
    for (const [name, number] of this.#parts.plan.steps[step]!.outputs) {
      const tensor = outputs.find((output) => output.name === name);
      this.#arrive(number, tensor && { tensor, batchSize, sequence, lease });
    }
    lease.drop();
  }

  #answer(number: number): void {
    const { config, plan } = this.#parts;
    const outputs: InferTensor[] = [];
    const leases: Lease[] = [];
    let sequence: SequencePlace | null = null;
    for (const tensor of this.#wanted.outputs) {
      const value = this.#values.use(tensor, number);
      if (value === null) continue;
      outputs.push(asOutput(config, plan.outputs.indexOf(tensor), value));
      sequence = value.sequence ?? sequence;
      if (value.lease === null) continue;
      value.lease.lend();
      value.lease.drop();
      leases.push(value.lease);
    }
    const parameters = sequence === null ? {} : { parameters: parametersOf(sequence) };
    const release = () => {
      for (const lease of leases.splice(0)) lease.giveBack();
    };
    const room = this.#on.response({ outputs, ...parameters, release });
    if (room === undefined) return;
    this.#room = room;
    void room.then(() => {
      if (this.#room === room) this.#room = null;
    });
  }

  #noteTimes({ inputNs, inferNs, outputNs }: BatchTimes): void {
    this.#times.inputNs += inputNs;
    this.#times.inferNs += inferNs;
    this.#times.outputNs += outputNs;
  }

  /** Every step that could begin has ended. */
  #end(): void {
    const problem = unmetError(this.#state, this.#request, this.#parts.plan.isDecoupled);
    if (problem !== null) {
      this.#failIn(problem);
      return;
    }
    this.#finish();
    this.#onOver(null, this.#times);
    this.#on.end();
  }

  #failIn(error: unknown): void {
    this.#fail(inEnsemble(this.#parts.config.name, error));
  }

  #fail(error: InferError): void {
    if (this.#isOver) return;
    this.#finish();
    this.#cancelled.abort();
    this.#onOver(error, this.#times);
    if (this.#isBeginning) this.#refusal = error;
    else this.#on.fail(error);
  }

  #finish(): void {
    this.#isOver = true;
    this.#leave();
    for (const leave of this.#waiting) leave();
    this.#waiting.clear();
    this.#values.clear();
    this.#leases.close();
  }
}
