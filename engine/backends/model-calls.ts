import { bytesOf } from '../../callbacks/infer/answer-limits.js';
import type {
  InstanceCommand,
  InstanceMessage,
  ModelCall,
  ModelCallResponse,
} from '../../callbacks/infer/instance-messages.js';
import {
  LONGEST_NAME,
  MAX_DIMS,
  MAX_TENSORS,
  whyNotParameters,
} from '../../callbacks/infer/request-limits.js';
import { sentTensors } from '../../callbacks/infer/sent-tensors.js';
import { BackendError } from './backend.js';
import type { LoopWatch } from './loop-watch.js';

/** Calls of an instance that may wait for their answers, and bytes of what they bring; one alone may be longer. */
export const MAX_CALLS = 1000;
export const MAX_CALL_BYTES = 64 * 2 ** 20;

interface Waiting {
  bytes: number;
  resolve(responses: readonly ModelCallResponse[]): void;
  reject(error: Error): void;
}

/** What code of a model asks of other models: each call is a message to the host, which answers it in one, too. */
export class ModelCalls {
  readonly #post: (message: InstanceMessage) => void;
  readonly #watch: Pick<LoopWatch, 'hold' | 'release'>;
  readonly #waiting = new Map<number, Waiting>();
  #numCalls = 0;
  #bytes = 0;

  constructor(post: (message: InstanceMessage) => void, watch: Pick<LoopWatch, 'hold' | 'release'>) {
    this.#post = post;
    this.#watch = watch;
  }

  /** Rejects where the other model cannot answer, with a BackendError for a call that is too large or one too many. */
  async ask(asked: ModelCall): Promise<readonly ModelCallResponse[]> {
    const wrong = whyNotCall(asked);
    if (wrong !== null) throw new BackendError(`a call of another model is refused: ${wrong}`);
    const bytes = bytesOf(asked.inputs, asked.parameters);
    const isFull = this.#waiting.size >= MAX_CALLS || this.#bytes + bytes > MAX_CALL_BYTES;
    if (isFull && this.#waiting.size > 0) {
      const most = `${MAX_CALLS} calls or ${MAX_CALL_BYTES / 2 ** 20} MiB of inputs`;
      throw new BackendError(
        `more than ${most} of one instance wait for their answers; await some of them before the next`,
      );
    }
    const call = this.#numCalls++;
    this.#post({ type: 'call', call, asked: { ...asked, inputs: sentTensors(asked.inputs) } });
    this.#bytes += bytes;
    this.#watch.hold();
    return new Promise((resolve, reject) => {
      this.#waiting.set(call, { bytes, resolve, reject });
    });
  }

  settle({ call, responses, error }: Extract<InstanceCommand, { type: 'called' }>): void {
    const waiting = this.#waiting.get(call);
    if (waiting === undefined) return;
    this.#waiting.delete(call);
    this.#bytes -= waiting.bytes;
    this.#watch.release();
    if (responses !== null) waiting.resolve(responses);
    else waiting.reject(new Error(error ?? ''));
  }
}

/** What of a call is more than a client may send; null: nothing. */
function whyNotCall({ model, version, inputs, outputs, parameters }: ModelCall): string | null {
  if (typeof model !== 'string' || model.length > LONGEST_NAME)
    return `its model is no text of at most ${LONGEST_NAME} characters`;
  if (typeof version !== 'string' || version.length > LONGEST_NAME)
    return `its version is no text of at most ${LONGEST_NAME} characters`;
  if (inputs.length > MAX_TENSORS) return `it has ${inputs.length} inputs; at most ${MAX_TENSORS} are taken`;
  if (outputs !== null && (!Array.isArray(outputs) || outputs.length > MAX_TENSORS))
    return `its outputs are no list of at most ${MAX_TENSORS} names`;
  if (outputs?.some((name) => typeof name !== 'string' || name.length > LONGEST_NAME))
    return `a name of its outputs is no text of at most ${LONGEST_NAME} characters`;
  if (inputs.some(({ name }) => name.length > LONGEST_NAME))
    return `the name of an input has more than ${LONGEST_NAME} characters`;
  const shapeless = inputs.find(({ shape }) => !Array.isArray(shape) || shape.length > MAX_DIMS);
  if (shapeless !== undefined)
    return `the shape of input '${shapeless.name}' is no list of at most ${MAX_DIMS} sizes`;
  return whyNotParameters(parameters);
}
