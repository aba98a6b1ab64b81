import { onAbort } from '../../../base/on-abort.js';
import { InferError } from '../../../callbacks/infer/infer-error.js';
import type { InferListener, InferResponse, InferTensor } from '../../../callbacks/infer/infer-types.js';
import { ReplyOrder } from '../../../scheduler/tensors/reply-order.js';
import type { InferModel } from '../../serving/infer-model.js';
import { textInputOf } from '../../serving/texts/text-inputs.js';
import type { ServerState } from '../web/server-state.js';
import type { StreamClient, StreamedInfer, StreamedRead } from './streamed-infer.js';

/** Requests of one stream that may be under way; with more its client waits. */
const MAX_UNDER_WAY = 256;

/** What goes out for a request when it is its turn. */
type Tell = () => void;

/**
 * Requests that one client sends over one connection, whatever the protocol. Their models receive them in the
 * order in which they come, and they run concurrently. Answers go in the order of their requests, except
 * those of decoupled models, which go as they come. An error is an answer like another: the stream continues.
 *
 *   requests  A (decoupled)   B    C
 *   answers   A1   B   A2   C   A3          C waits where it is ready before B
 */
export class InferStream<Read extends StreamedRead, Message, Request extends StreamedInfer<Read, Message>> {
  readonly #client: StreamClient<Request, Message>;
  readonly #state: Pick<ServerState, 'isDraining'>;
  readonly #order = new ReplyOrder<Request, Tell>();
  #underWay = 0;
  #onOver: (() => void) | null = null;

  constructor(client: StreamClient<Request, Message>, state: Pick<ServerState, 'isDraining'>) {
    this.#client = client;
    this.#state = state;
  }

  /** Requests whose last answer is not out. */
  get underWay(): number {
    return this.#underWay;
  }

  /** Resolves when another request may begin, or the client has left. */
  async room(signal: AbortSignal): Promise<void> {
    while (this.#underWay >= MAX_UNDER_WAY && !signal.aborted) await this.#oneOver(signal);
  }

  /** Resolves when all requests are over, or the client has left. */
  async allOver(signal: AbortSignal): Promise<void> {
    while (this.#underWay > 0 && !signal.aborted) await this.#oneOver(signal);
  }

  async #oneOver(signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      const release = onAbort(signal, resolve);
      this.#onOver = () => {
        release();
        resolve();
      };
    });
    this.#onOver = null;
  }

  /** To be called once for each request that was begun, when it is over. */
  noteOver(): void {
    this.#underWay--;
    this.#onOver?.();
  }

  /** Gives a request to its model. Resolves when that has it: the answers come later. */
  async begin(request: Request): Promise<void> {
    this.#underWay++;
    this.#order.begin(request);
    try {
      const model = await request.find();
      // By now the request's id is known.
      if (this.#state.isDraining) throw shuttingDown();
      const read = await request.read(model);
      const decoupled = model.config.model_transaction_policy.decoupled || isStreamed(model, read);
      if (decoupled) this.#tell(this.#order.end(request));
      model.infer(
        read.request,
        decoupled ? this.#several(request, model, read) : this.#one(request, model, read),
      );
    } catch (error) {
      request.noteFailure(error);
      const fail = () => void this.#client.fail(error, request, true).then(() => request.end());
      const released = this.#order.settle(request, fail);
      // It has left the order where its model is decoupled.
      if (released.length === 0 && !this.#order.has(request)) fail();
      else this.#tell(released);
    }
  }

  #tell(released: readonly { answer: Tell }[]): void {
    for (const { answer } of released) answer();
  }

  /** Of a model that gives one response. */
  #one(request: Request, model: InferModel, read: Read): InferListener {
    let message: Message | null = null;
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
      settle(() => this.#client.fail(error, request, false));
    };
    return {
      response: (given) => {
        if (response !== null) return;
        response = given;
        const form = { isFinal: true, isHeld: false };
        request.tail = request.answer(model, read, given, form).then((made) => {
          message = made;
        });
      },
      end: () => {
        request.tail.then(() => {
          if (message === null) fail(noAnswer(model));
          else settle(() => this.#client.send(message!));
        }, fail);
      },
      fail: (error) => {
        request.tail.catch(() => {}); // it has failed anyway
        fail(error);
      },
    };
  }

  /** Of a model that gives any number of responses to the request: it waits with the next ones until the client has room for them. */
  #several(request: Request, model: InferModel, read: Read): InferListener {
    const then = (work: () => Promise<void>) => {
      request.tail = request.tail.then(work);
      return request.tail;
    };
    let isFinalTold = false;
    const fail = (error: unknown) =>
      then(async () => {
        if (!request.isOver) {
          request.noteFailure(error);
          await this.#client.fail(error, request, false);
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
            const isFinal = response.isLast === true;
            await this.#client.send(await request.answer(model, read, response, { isFinal, isHeld: true }));
            isFinalTold = isFinal;
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
            await this.#client.send(request.emptyFinal(model));
          request.end();
        });
      },
      fail: (error) => void fail(error),
    };
  }
}

export function bytesOf(tensors: readonly InferTensor[]): number {
  return tensors.reduce((sum, { data }) => sum + data.length, 0);
}

/** A model of texts is asked to give its answer in pieces, though its configuration promises one response. */
function isStreamed({ kind }: InferModel, { request: { inputs, parameters } }: StreamedRead): boolean {
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
