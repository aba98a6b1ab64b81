import type { InferRequest, InferResponse } from '../../../callbacks/infer/infer-types.js';
import type { InferModel } from '../../serving/infer-model.js';

/** A request of a stream, read. */
export interface StreamedRead {
  request: InferRequest;
  /** A decoupled model's end is also sent where its last response came without that mark. */
  wantsEmptyFinal: boolean;
}

/** How an answer of a stream is to be written. */
export interface AnswerForm {
  /** No other answer to the request follows. */
  isFinal: boolean;
  /** The memory of its tensors is held already. */
  isHeld: boolean;
}

/** A request on a stream, in the form of one protocol. @template Message an answer, ready to be sent */
export interface StreamedInfer<Read extends StreamedRead, Message> {
  /** Work on its answers, which is done in order. */
  tail: Promise<void>;
  /** Its last answer is out, or its client has left. */
  readonly isOver: boolean;
  /** @throws InferError where there is no such model, or the request names none */
  find(): InferModel | Promise<InferModel>;
  /** @throws InferError, ApiError where it cannot be read */
  read(model: InferModel): Promise<Read>;
  /** @throws InferError for outputs that cannot be as they are wished, ApiError where there is no memory for them */
  answer(model: InferModel, read: Read, response: InferResponse, form: AnswerForm): Promise<Message>;
  /** States that no other answer follows. */
  emptyFinal(model: InferModel): Message;
  noteFailure(error: unknown): void;
  /** An answer waits to be sent. @throws ApiError where there is no memory for it */
  holdAnswer(bytes: number): void;
  /** That answer is out. */
  freeAnswer(bytes: number): void;
  /** Its model need not continue. */
  cancel(): void;
  /** Its last answer is out: what is held for it is given back. */
  end(): void;
}

/** The client's end of a stream. */
export interface StreamClient<Request, Message> {
  /** Sends an answer; resolves when the client has room for another one, or has left. */
  send(message: Message): Promise<void>;
  /** Sends an error. @param isRefused no model has had the request */
  fail(error: unknown, request: Request, isRefused: boolean): Promise<void>;
}
