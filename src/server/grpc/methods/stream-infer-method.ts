import { onAbort } from '../../../../base/on-abort.js';
import { InferError } from '../../../../callbacks/infer/infer-error.js';
import type { InferListener, InferResponse } from '../../../../callbacks/infer/infer-types.js';
import { ReplyOrder } from '../../../../scheduler/reply-order.js';
import type { InferModel } from '../../../serving/infer-model.js';
import { textInputOf } from '../../../serving/texts/text-inputs.js';
import { type AnswerHead, streamErrorParts, streamResponseParts } from '../infer/infer-answer.js';
import type { ReadRequest } from '../infer/read-request.js';
import type { MethodTypes } from '../schema/message-types.js';
import { statusOf } from '../status-of.js';
import type { CallMessage } from '../wire/grpc-call.js';
import { GrpcError, OK } from '../wire/status.js';
import { bytesOf, headOf } from './infer-method.js';
import type { InferenceServices } from './inference-methods.js';
import { type LetIn, type Method, method } from './method.js';
import { StreamedRequest } from './streamed-request.js';

/** Requests of one stream that may be under way; with more its client waits. */
const MOST_UNDER_WAY = 256;

/** ModelStreamInfer: any number of requests on one stream, each with any number of answers. */
export function streamInferMethod(types: MethodTypes, services: InferenceServices): Method {
  return {
    ...method(types, { isWork: true }),
    answer: (letIn) => new InferStream(letIn, services).run(),
  };
}

/** What goes out for a request when it is its turn. */
type Tell = () => void;

/**
 * A stream of requests. They are given to their models in the order in which they come, and run beside each other. Answers go in the order of
 * their requests, but for decoupled models, whose answers go as they come. An error is an answer like another: the stream goes on.
 *
 *   requests  A (decoupled)   B    C
 *   answers   A1   B   A2   C   A3          C waits where it is ready before B
 */
class InferStream {
  readonly #letIn: LetIn;
  readonly #services: InferenceServices;
  readonly #order = new ReplyOrder<StreamedRequest, Tell>();
  /** The first error ends the stream with its code, as a client may ask. */
  readonly #endsAtError: boolean;
  #underWay = 0;
  #onOver: (() => void) | null = null;

  constructor(letIn: LetIn, services: InferenceServices) {
    this.#letIn = letIn;
    this.#services = services;
    this.#endsAtError = letIn.call.headers.triton_grpc_error === 'true';
  }

  /** Answers all requests. @throws GrpcError, ApiError for what ends the stream */
  async run(): Promise<void> {
    const { call } = this.#letIn;
    for (;;) {
      while (this.#underWay >= MOST_UNDER_WAY) await this.#oneOver();
      const message = await call.next();
      if (message === null) break;
      await this.#begin(message);
    }
    while (this.#underWay > 0) await this.#oneOver();
    call.end(OK);
  }

  /** Resolves when a request is over. @throws GrpcError where the call is */
  async #oneOver(): Promise<void> {
    const { call } = this.#letIn;
    if (!call.isOver) {
      await new Promise<void>((resolve) => {
        const release = onAbort(call.signal, resolve);
        this.#onOver = () => {
          release();
          resolve();
        };
      });
    }
    this.#onOver = null;
    if (call.isOver) throw new GrpcError('CANCELLED', 'The call is over.');
  }

  /** Gives a request to its model. @throws GrpcError for a message that is none, behind which nothing can be read */
  async #begin(message: CallMessage): Promise<void> {
    let request: StreamedRequest;
    try {
      request = new StreamedRequest(message, this.#letIn, this.#services, () => this.#noteOver());
    } catch (error) {
      if (!(error instanceof InferError)) throw error;
      const refused: AnswerHead = { model: '', version: '', id: '', parameters: {} };
      await this.#fail(error, refused);
      return;
    }
    this.#underWay++;
    this.#order.begin(request);
    try {
      if (this.#services.state.isDraining) throw shuttingDown();
      const model = request.find();
      const read = await request.read(model);
      const decoupled = model.config.model_transaction_policy.decoupled || isStreamed(model, read);
      if (decoupled) this.#tell(this.#order.end(request));
      model.infer(
        read.request,
        decoupled ? this.#several(request, model, read) : this.#one(request, model, read),
      );
    } catch (error) {
      request.noteFailure(error);
      const fail = () => void this.#fail(error, request.refusalHead).then(() => request.end());
      const released = this.#order.settle(request, fail);
      // It has left the order where its model is decoupled.
      if (released.length === 0 && !this.#order.has(request)) fail();
      else this.#tell(released);
    }
  }

  #noteOver(): void {
    this.#underWay--;
    this.#onOver?.();
  }

  #tell(released: readonly { answer: Tell }[]): void {
    for (const { answer } of released) answer();
  }

  /** Of a model that gives one response. */
  #one(request: StreamedRequest, model: InferModel, read: ReadRequest): InferListener {
    let parts: readonly Uint8Array[] | null = null;
    let response: InferResponse | null = null;
    const settle = (send: () => Promise<void>) => {
      const tell = () => {
        void send().then(() => {
          response?.release?.();
          request.end();
        });
      };
      this.#tell(this.#order.settle(request, tell));
    };
    const fail = (error: unknown) => {
      request.noteFailure(error);
      settle(() => this.#fail(error, request.endHead));
    };
    return {
      response: (given) => {
        if (response !== null) return;
        response = given;
        request.tail = this.#parts(request, model, read, given, true).then((made) => {
          parts = made;
        });
      },
      end: () => {
        request.tail.then(() => {
          if (parts === null) fail(noAnswer(model));
          else settle(() => this.#send(parts!));
        }, fail);
      },
      fail: (error) => {
        request.tail.catch(() => {}); // it has failed anyway
        fail(error);
      },
    };
  }

  /** Of a model that gives any number of responses to the request: it waits with the next ones until the client has room for them. */
  #several(request: StreamedRequest, model: InferModel, read: ReadRequest): InferListener {
    const then = (work: () => Promise<void>) => {
      request.tail = request.tail.then(work);
      return request.tail;
    };
    let isFinalTold = false;
    const fail = (error: unknown) =>
      then(async () => {
        if (!request.isOver) {
          request.noteFailure(error);
          await this.#fail(error, request.endHead);
        }
        request.cancel();
        request.end();
      });
    return {
      response: (response) => {
        const bytes = bytesOf(response.outputs);
        try {
          request.holdAnswer(bytes);
        } catch (error) {
          return fail(error);
        }
        return then(async () => {
          if (request.isOver) return;
          try {
            await this.#send(
              await this.#parts(request, model, read, response, response.isLast === true, true),
            );
            isFinalTold = response.isLast === true;
          } catch (error) {
            void fail(error);
          }
          response.release?.();
          request.freeAnswer(bytes);
        });
      },
      end: () => {
        void then(async () => {
          if (read.wantsEmptyFinal && !isFinalTold && !request.isOver)
            await this.#send(streamResponseParts(request.endHead, []));
          request.end();
        });
      },
      fail: (error) => void fail(error),
    };
  }

  /** @throws InferError for outputs that cannot be as they are wished, ApiError where there is no memory for them */
  async #parts(
    request: StreamedRequest,
    model: InferModel,
    read: ReadRequest,
    response: InferResponse,
    isFinal: boolean,
    isHeld = false,
  ): Promise<Uint8Array[]> {
    const tensors = await request.outputs(model, read, response);
    if (!isHeld) request.holdAnswer(bytesOf(tensors));
    const head = headOf(model, read, response);
    return streamResponseParts(
      { ...head, parameters: { ...head.parameters, triton_final_response: isFinal } },
      tensors,
    );
  }

  async #fail(error: unknown, head: AnswerHead): Promise<void> {
    const { call } = this.#letIn;
    if (call.isOver) return;
    this.#letIn.noteFailure(error);
    const status = statusOf(error);
    if (this.#endsAtError) call.end(status);
    else await this.#send(streamErrorParts(status.message, head));
  }

  /** Sends an answer. Where the client has left there is nobody to be told. */
  async #send(parts: readonly Uint8Array[]): Promise<void> {
    try {
      await this.#letIn.call.send(parts);
    } catch (error) {
      if (!(error instanceof GrpcError)) throw error;
    }
  }
}

/** A model of texts is asked to give its answer in pieces, though its configuration promises one response. */
function isStreamed({ kind }: InferModel, { request: { inputs, parameters } }: ReadRequest): boolean {
  if (kind !== 'generator') return false;
  const input = inputs.find(({ name }) => textInputOf(name) === 'streaming');
  if (input !== undefined) return (input.data[0] ?? 0) !== 0;
  return Object.entries(parameters).some(
    ([name, value]) => textInputOf(name) === 'streaming' && value === true,
  );
}

function shuttingDown(): InferError {
  return new InferError('The server is shutting down and takes no new requests.', 'unavailable');
}

function noAnswer({ config: { name } }: InferModel): InferError {
  return new InferError(`the model '${name}' ended the request without an answer`, 'internal');
}
