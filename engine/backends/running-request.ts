import { cutText } from '../../base/cut-text.js';
import type { InferParameters, InferTensor } from '../../callbacks/infer/infer-types.js';
import type { PackedRequest } from '../../callbacks/infer/instance-messages.js';
import { LONGEST_MESSAGE, whyNotParameters } from '../../callbacks/infer/request-limits.js';
import type { ModelConfig } from '../../models/repository/model-config.js';
import type { InstanceRequest } from './backend.js';
import type { AnswerSink } from './batch-answers.js';
import { whyNotOutput, whyNotWhole } from './check-outputs.js';
import { unpackInputs } from './packed-batch.js';

/** Characters of what a client is told: a message of the model's code, and what is said around it. */
const LONGEST_SENTENCE = LONGEST_MESSAGE + 1024;

/** A request of the batch that runs: what the instance says of it is checked and noted. */
export class RunningRequest implements InstanceRequest {
  readonly id: string;
  readonly inputs: readonly InferTensor[];
  readonly outputs: readonly string[] | null;
  readonly parameters: InferParameters;
  readonly batchSize: number;
  readonly #index: number;
  readonly #config: ModelConfig;
  readonly #answers: AnswerSink;
  #numSent = 0;
  #isOver = false;
  #isCancelled = false;

  /** @param index the request's place in the batch */
  constructor(
    packed: PackedRequest,
    index: number,
    bytes: Uint8Array,
    config: ModelConfig,
    answers: AnswerSink,
  ) {
    const { id, outputs, parameters, batchSize } = packed;
    this.id = id;
    this.inputs = unpackInputs(packed, bytes);
    this.outputs = outputs;
    this.parameters = parameters;
    this.batchSize = batchSize;
    this.#index = index;
    this.#config = config;
    this.#answers = answers;
  }

  send(outputs: readonly InferTensor[], parameters?: InferParameters): void {
    if (this.#isOver) return;
    const { name, model_transaction_policy: policy } = this.#config;
    if (this.#numSent > 0 && !policy.decoupled) {
      this.fail(`the model '${name}' gave a second answer to a request, which only a decoupled model may`);
      return;
    }
    const wrong =
      outputs
        .map((output) => whyNotOutput(this.#config, output, this.batchSize))
        .find((why) => why !== null) ??
      whyNotWhole(this.#config, outputs, this.outputs) ??
      whyNotParameters(parameters);
    if (wrong !== null) {
      this.fail(`the model '${name}' gave a wrong answer: ${wrong}`);
      return;
    }
    const full = this.#answers.whyFull(this.#index);
    if (full !== null) {
      this.fail(`the model '${name}' gave too many answers: ${full}`);
      return;
    }
    this.#numSent++;
    this.#answers.respond(this.#index, outputs, parameters ?? null);
  }

  end(): void {
    if (this.#isOver) return;
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

  /** Whoever asked has left: nobody waits for what it is still answered. */
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
