import { InferError } from '../../../../callbacks/infer/infer-error.js';
import type { InferResponse } from '../../../../callbacks/infer/infer-types.js';
import type { InferModel } from '../../../serving/infer-model.js';
import { HeldRequest } from '../../inferring/held-request.js';
import { bytesOf, InferStream } from '../../inferring/infer-stream.js';
import type { AnswerForm, StreamedInfer } from '../../inferring/streamed-infer.js';
import { REQUEST_BYTES } from '../../web/memory/memory-estimates.js';
import { type AnswerHead, streamErrorParts, streamResponseParts } from '../infer/infer-answer.js';
import type { ReadRequest } from '../infer/read-request.js';
import type { MethodTypes } from '../schema/message-types.js';
import { statusOf } from '../status-of.js';
import type { CallMessage } from '../wire/grpc-call.js';
import { GrpcError, OK } from '../wire/status.js';
import { AskedInfer, headOf } from './infer-method.js';
import type { InferenceServices } from './inference-methods.js';
import { type LetIn, type Method, method } from './method.js';

/** ModelStreamInfer: any number of requests on one stream, each with any number of answers. */
export function streamInferMethod(types: MethodTypes, services: InferenceServices): Method {
  return {
    ...method(types, { isWork: true }),
    answer: (letIn) => new StreamCall(letIn, services).run(),
  };
}

/** A call whose messages are requests of an InferStream. */
class StreamCall {
  readonly #letIn: LetIn;
  readonly #services: InferenceServices;
  readonly #stream: InferStream<ReadRequest, readonly Uint8Array[], StreamedRequest>;
  /** The first error ends the stream with its code, as a client may ask. */
  readonly #endsAtError: boolean;

  constructor(letIn: LetIn, services: InferenceServices) {
    this.#letIn = letIn;
    this.#services = services;
    this.#endsAtError = letIn.call.headers.triton_grpc_error === 'true';
    this.#stream = new InferStream(
      {
        send: (parts) => this.#send(parts),
        fail: (error, request, isRefused) =>
          this.#fail(error, isRefused ? request.refusalHead : request.endHead),
      },
      services.state,
    );
  }

  /** Answers all requests. @throws GrpcError, ApiError for what ends the stream */
  async run(): Promise<void> {
    const { call } = this.#letIn;
    for (;;) {
      await this.#stream.room(call.signal);
      this.#checkOpen();
      const message = await call.next();
      if (message === null) break;
      await this.#begin(message);
    }
    await this.#stream.allOver(call.signal);
    this.#checkOpen();
    call.end(OK);
  }

  /** @throws GrpcError where the call is over before its stream is */
  #checkOpen(): void {
    if (this.#letIn.call.isOver) throw new GrpcError('CANCELLED', 'The call is over.');
  }

  /**
   * Passes a request to its model. @throws GrpcError for an invalid message, after which nothing can be read
   */
  async #begin(message: CallMessage): Promise<void> {
    let request: StreamedRequest;
    try {
      request = new StreamedRequest(message, this.#letIn, this.#services, () => this.#stream.noteOver());
    } catch (error) {
      if (!(error instanceof InferError)) throw error;
      await this.#fail(error, { model: '', version: '', id: '', parameters: {} });
      return;
    }
    await this.#stream.begin(request);
  }

  async #fail(error: unknown, head: AnswerHead): Promise<void> {
    const { call } = this.#letIn;
    if (call.isOver) return;
    this.#letIn.noteFailure(error);
    const status = statusOf(error);
    if (this.#endsAtError) call.end(status);
    else await this.#send(streamErrorParts(status.message, head));
  }

  /** Sends an answer, unless the client has left. */
  async #send(parts: readonly Uint8Array[]): Promise<void> {
    try {
      await this.#letIn.call.send(parts);
    } catch (error) {
      if (!(error instanceof GrpcError)) throw error;
    }
  }
}

/** A request of a stream, with all that is held for it until its last answer is out. */
class StreamedRequest extends HeldRequest implements StreamedInfer<ReadRequest, readonly Uint8Array[]> {
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

  /** It failed: its span records that. */
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

  /** The head of an error before a model has the request: its id alone. */
  get refusalHead(): AnswerHead {
    return { model: '', version: '', id: this.#asked.message.id, parameters: {} };
  }

  /** The head of an end without tensors. */
  get endHead(): AnswerHead {
    const { model, version, id } = this.#asked.message;
    return { model, version, id, parameters: { triton_final_response: true } };
  }

  protected override release(): void {
    this.#asked.release();
  }
}
