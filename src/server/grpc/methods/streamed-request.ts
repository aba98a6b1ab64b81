import type { InferResponse } from '../../../../callbacks/infer/infer-types.js';
import type { InferModel } from '../../../serving/infer-model.js';
import { HeldRequest } from '../../inferring/held-request.js';
import { bytesOf } from '../../inferring/infer-stream.js';
import type { AnswerForm, StreamedInfer } from '../../inferring/streamed-infer.js';
import { REQUEST_BYTES } from '../../web/memory/memory-estimates.js';
import { type AnswerHead, streamResponseParts } from '../infer/infer-answer.js';
import type { ReadRequest } from '../infer/read-request.js';
import type { CallMessage } from '../wire/grpc-call.js';
import { AskedInfer, headOf } from './infer-method.js';
import type { InferenceServices } from './inference-methods.js';
import type { LetIn } from './method.js';

/** A request of a stream, with all that is held for it until its last answer is out. */
export class StreamedRequest
  extends HeldRequest
  implements StreamedInfer<ReadRequest, readonly Uint8Array[]>
{
  readonly #sent: CallMessage;
  readonly #asked: AskedInfer;

  /** @throws GrpcError, InferError for a message that is no request: nothing is held for it then */
  constructor(sent: CallMessage, letIn: LetIn, services: InferenceServices, onOver: () => void) {
    const asked = new AskedInfer(sent, { ...letIn, startMs: performance.now() }, services);
    const { memory } = sent;
    super({ memory, signal: letIn.call.signal, beginWork: () => letIn.beginWork(), onOver });
    this.#sent = sent;
    this.#asked = asked;
  }

  find(): InferModel {
    return this.#asked.find();
  }

  async read(model: InferModel): Promise<ReadRequest> {
    const read = await this.#asked.read(model, this.cancelled.signal);
    const { memory, bytes } = this.#sent;
    memory.holdBody(Math.max(REQUEST_BYTES + bytes.length, memory.bytes));
    return read;
  }

  /** It has failed: its span is told so. */
  noteFailure(error: unknown): void {
    this.#asked.noteFailure(error);
  }

  async answer(
    model: InferModel,
    read: ReadRequest,
    response: InferResponse,
    { isFinal, isHeld }: AnswerForm,
  ): Promise<readonly Uint8Array[]> {
    const tensors = await this.#asked.outputs(model, read, response);
    if (!isHeld) this.holdAnswer(bytesOf(tensors));
    const head = headOf(model, read, response);
    const parameters = { ...head.parameters, triton_final_response: isFinal };
    return streamResponseParts({ ...head, parameters }, tensors);
  }

  emptyFinal(): readonly Uint8Array[] {
    return streamResponseParts(this.endHead, []);
  }

  /** What is told of an error before a model has the request: its id alone. */
  get refusalHead(): AnswerHead {
    return { model: '', version: '', id: this.#asked.message.id, parameters: {} };
  }

  /** What is told of an end without tensors. */
  get endHead(): AnswerHead {
    const { model, version, id } = this.#asked.message;
    return { model, version, id, parameters: { triton_final_response: true } };
  }

  protected override release(): void {
    this.#asked.release();
  }
}
