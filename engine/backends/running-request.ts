import type { InferParameters, InferTensor } from '../../callbacks/infer/infer-types.js';
import type { PackedRequest } from '../../callbacks/infer/instance-messages.js';
import type { ModelConfig } from '../../models/repository/model-config.js';
import type { InstanceRequest } from './backend.js';
import { whyNotOutput, whyNotWhole } from './check-outputs.js';
import type { AnswerWriter } from './packed-answers.js';
import { unpackInputs } from './packed-batch.js';

/** A request of the batch that runs: what the instance says of it is checked and noted. */
export class RunningRequest implements InstanceRequest {
  readonly id: string;
  readonly inputs: readonly InferTensor[];
  readonly outputs: readonly string[] | null;
  readonly parameters: InferParameters;
  readonly batchSize: number;
  readonly #index: number;
  readonly #config: ModelConfig;
  readonly #writer: AnswerWriter;
  readonly #onAnswer: () => void;
  #numSent = 0;
  #isOver = false;

  /**
   * @param index the request's place in the batch @param onAnswer called after each answer, which may be sent on at once
   */
  constructor(
    packed: PackedRequest,
    index: number,
    bytes: Uint8Array,
    config: ModelConfig,
    writer: AnswerWriter,
    onAnswer: () => void,
  ) {
    const { id, outputs, parameters, batchSize } = packed;
    this.id = id;
    this.inputs = unpackInputs(packed, bytes);
    this.outputs = outputs;
    this.parameters = parameters;
    this.batchSize = batchSize;
    this.#index = index;
    this.#config = config;
    this.#writer = writer;
    this.#onAnswer = onAnswer;
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
    this.#numSent++;
    this.#writer.respond(this.#index, outputs, parameters ?? null);
    this.#onAnswer();
  }

  end(): void {
    if (this.#isOver) return;
    if (this.#numSent === 0 && !this.#config.model_transaction_policy.decoupled) {
      this.fail(`the model '${this.#config.name}' gave no answer to a request`);
      return;
    }
    this.#isOver = true;
    this.#writer.end(this.#index);
  }

  fail(message: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#writer.fail(this.#index, message);
  }
}

/** What is wrong with the parameters of an answer: something else than a value would not cross to the host. */
function whyNotParameters(parameters: InferParameters | undefined): string | null {
  if (parameters === undefined || parameters === null) return null;
  const wrong = Object.entries(parameters).find(
    ([, value]) => !['string', 'number', 'bigint', 'boolean'].includes(typeof value),
  );
  if (wrong === undefined) return null;
  return `the parameter '${wrong[0]}' is of type ${typeof wrong[1]}; a text, a number or a boolean is expected`;
}
