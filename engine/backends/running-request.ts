import { cutText } from '../../base/error-text.js';
import type { InferParameters, InferTensor } from '../../callbacks/infer/infer-types.js';
import type { PackedRequest, PackedSequence } from '../../callbacks/infer/instance-messages.js';
import { LONGEST_MESSAGE, whyNotParameters } from '../../callbacks/infer/request-limits.js';
import type { ModelConfig } from '../../models/repository/model-config.js';
import type { InstanceRequest } from './backend.js';
import type { AnswerSink } from './batch-answers.js';
import { whyNotOutput, whyNotWhole } from './check-outputs.js';
import { unpackInputs } from './packed-batch.js';
import type { SequenceRunner } from './sequences/sequence-runner.js';

/** Most characters of an error sent to a client: a message of the model's code, and the text around it. */
const LONGEST_SENTENCE = LONGEST_MESSAGE + 1024;

/** A request of the batch that runs: what the instance says of it is checked and noted. */
export class RunningRequest implements InstanceRequest {
  readonly id: string;
  readonly inputs: readonly InferTensor[];
  readonly outputs: readonly string[] | null;
  readonly parameters: InferParameters;
  readonly batchSize: number;
  readonly traceparent: string | null;
  readonly sequence: PackedSequence | null;
  readonly #sequences: SequenceRunner | null;
  readonly #index: number;
  readonly #config: ModelConfig;
  readonly #answers: AnswerSink;
  #numSent = 0;
  #isOver = false;
  #isCancelled = false;
  #isAgain = false;

  /** @param index the request's place in the batch @param sequences of the instance; null: the model has none */
  constructor(
    packed: PackedRequest,
    index: number,
    bytes: Uint8Array,
    {
      config,
      sequences,
      answers,
    }: { config: ModelConfig; sequences: SequenceRunner | null; answers: AnswerSink },
  ) {
    const { id, outputs, parameters, batchSize, sequence, traceparent = null } = packed;
    this.id = id;
    this.sequence = sequence;
    this.#sequences = sequences;
    const inputs = unpackInputs(packed, bytes);
    this.inputs =
      sequence === null || sequences === null ? inputs : [...inputs, ...sequences.inputsOf(sequence)];
    this.outputs = outputs;
    this.parameters = parameters;
    this.batchSize = batchSize;
    this.traceparent = traceparent;
    this.#index = index;
    this.#config = config;
    this.#answers = answers;
  }

  send(given: readonly InferTensor[], parameters?: InferParameters): void {
    // A sequence goes on although no client waits for this answer any more.
    if (this.#isOver && !this.#isCancelled) return;
    const { name, model_transaction_policy: policy } = this.#config;
    if (this.#numSent > 0 && !policy.decoupled) {
      this.fail(`the model '${name}' gave a second answer to a request, which only a decoupled model may`);
      return;
    }
    const outputs = this.#withoutStates(given);
    const wrong =
      outputs
        .map((output) => whyNotOutput(this.#config, output, this.batchSize))
        .find((why) => why !== null) ??
      whyNotWhole(this.#config, outputs, this.outputs) ??
      whyNotParameters(parameters) ??
      this.#keepStates(given);
    if (wrong !== null) {
      this.fail(`the model '${name}' gave a wrong answer: ${wrong}`);
      return;
    }
    if (this.#isOver) return;
    const full = this.#answers.whyFull(this.#index);
    if (full !== null) {
      this.fail(`the model '${name}' gave too many answers: ${full}`);
      return;
    }
    this.#numSent++;
    this.#answers.respond(this.#index, outputs, parameters ?? null);
  }

  /** Outputs for the client. */
  #withoutStates(given: readonly InferTensor[]): readonly InferTensor[] {
    const states = this.#sequences?.states;
    if (states === undefined) return given;
    const isWanted = (name: string) =>
      this.#config.output.some((one) => one.name === name) && (this.outputs?.includes(name) ?? true);
    return given.filter(({ name }) => !states.hasOutput(name) || isWanted(name));
  }

  #keepStates(given: readonly InferTensor[]): string | null {
    const states = this.#sequences?.states;
    if (states === undefined || this.sequence === null) return null;
    const kept = given.filter(({ name }) => states.hasOutput(name));
    return kept.length === 0 ? null : states.keep(this.sequence.number, kept, this.sequence.end);
  }

  reschedule(): void {
    if (this.#isOver) return;
    const { name, sequence_batching: batching } = this.#config;
    if (batching?.iterative_sequence) this.#isAgain = true;
    else this.fail(`the model '${name}' put a request back, which only one with iterative_sequence may`);
  }

  /** It is to run once more, and is neither over nor failed. */
  get isAgain(): boolean {
    return this.#isAgain && !this.#isOver;
  }

  end(): void {
    if (this.#isOver) return;
    if (this.#isAgain) {
      if (this.#numSent > 0 && !this.#config.model_transaction_policy.decoupled)
        this.fail(
          `the model '${this.#config.name}' answered and put back a request, which only a decoupled model may`,
        );
      return;
    }
    if (this.#numSent === 0 && !this.#config.model_transaction_policy.decoupled) {
      this.fail(`the model '${this.#config.name}' gave no answer to a request`);
      return;
    }
    this.#isOver = true;
    this.#answers.end(this.#index);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  get isCancelled(): boolean {
    return this.#isCancelled;
  }

  /** The client has left: further output is dropped. */
  cancel(): void {
    this.#isOver = true;
    this.#isCancelled = true;
  }

  get room(): Promise<void> {
    return this.#answers.room;
  }

  fail(message: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#answers.fail(this.#index, cutText(message, LONGEST_SENTENCE));
  }
}
