import { onAbort } from '../../../base/on-abort.js';
import type { InferError } from '../../../callbacks/infer/infer-error.js';
import type {
  InferListener,
  InferRequest,
  InferResponse,
  InferTerms,
} from '../../../callbacks/infer/infer-types.js';
import { malformed, requestCancelled } from '../../serving/infer-failure.js';
import type { InferModel } from '../../serving/infer-model.js';
import { refuseEngine } from '../../serving/protocol/known-fields.js';
import { nextTurn } from '../../serving/protocol/turns.js';
import { STREAM_HEADERS } from '../answering/respond.js';
import { inferTerms } from '../inferring/infer-terms.js';
import { clientLeft } from '../web/errors.js';
import { EventStream, type EventStreamOptions } from '../web/event-stream.js';
import type { Exchange } from '../web/exchange.js';
import type { LiveRequest } from '../web/request-registry.js';
import { protocolError, statusOf } from './errors.js';
import { generateJson } from './generate-answer.js';
import type { GenerateRequest } from './generate-request.js';
import { GenerateStream } from './generate-stream.js';
import type { InferBody } from './infer-answer.js';
import { JsonText } from './json-text.js';

/** A request of the generate extension on its way to a model. */
export interface AskedGenerate {
  model: InferModel;
  read: GenerateRequest;
  exchange: Exchange;
  live: LiveRequest;
}

/** Ends a request: with what there is of its answer, or at once. */
class Ends {
  readonly #model: InferModel;
  readonly #stopped = new AbortController();
  readonly #left = new AbortController();

  constructor(model: InferModel) {
    this.#model = model;
  }

  /** For InferTerms.stop. */
  get stopped(): AbortSignal {
    return this.#stopped.signal;
  }

  /** For InferRequest.signal. */
  get left(): AbortSignal {
    return this.#left.signal;
  }

  /** Something other than the client ends it. */
  cancel(): void {
    if (this.#model.endsWhenStopped) this.#stopped.abort();
    else this.#left.abort(requestCancelled().cause);
  }

  /** The answer is no longer read. */
  leave(reason?: unknown): void {
    this.#left.abort(reason);
  }
}

/** @throws InferError where the model refuses it at once */
function ask(
  { model, read, exchange, live }: AskedGenerate,
  ends: Ends,
  own: { room?: InferTerms['room']; onBegun?: InferTerms['onBegun']; takesOne?: true },
  on: InferListener,
): void {
  const { id } = read;
  const { trace, ...terms } = exchange.terms;
  const { caller } = terms;
  const { room, onBegun, takesOne } = own;
  refuseEngine(model, terms.engine);
  if (id !== '') live.addId(id);
  const request: InferRequest = {
    ...read,
    outputs: null,
    signal: ends.left,
    owner: caller.name,
    trace,
    takesOne,
    terms: inferTerms({ ...terms, tally: terms.tally, stop: ends.stopped, onBegun, ...(room && { room }) }),
  };
  live.onCancel(() => ends.cancel());
  model.infer(request, on);
}

/** The one response of a model, as JSON. @throws InferError, ApiError */
export async function answerGenerate(asked: AskedGenerate): Promise<InferBody> {
  const { model, read, exchange, live } = asked;
  const { signal } = exchange;
  const ends = new Ends(model);
  const leave = onAbort(signal, () => ends.leave(signal.reason));
  try {
    const response = await oneResponse(asked, ends);
    const json = new JsonText((bytes) => exchange.terms.memory.addAnswer(bytes));
    for (const piece of generateJson(model, read.id, response)) if (json.add(piece)) await nextTurn(signal);
    const { release } = response;
    return { content: json.content(), headers: { 'content-type': 'application/json' }, release };
  } catch (error) {
    throw signal.aborted ? clientLeft() : error;
  } finally {
    leave();
    live.release();
  }
}

function oneResponse(asked: AskedGenerate, ends: Ends): Promise<InferResponse> {
  return new Promise((resolve, reject) => {
    let first: InferResponse | null = null;
    const on: InferListener = {
      response: (response) => {
        if (first === null) {
          first = response;
          return;
        }
        reject(notOne());
        ends.leave(notOne());
      },
      end: () => (first === null ? reject(notOne()) : resolve(first)),
      fail: reject,
    };
    ask(asked, ends, { takesOne: true }, on);
  });
}

function notOne(): InferError {
  return malformed(
    'generate expects model to produce exactly 1 response, use generate stream for model that generates various number of responses',
  );
}

/**
 * The responses of a model as server-sent events. Status and headers wait for the first of them, so that a refusal is still a proper HTTP
 * error; after a long silence they are sent with a comment, but not before an engine elsewhere has taken the request. @throws InferError, ApiError
 */
export async function streamGenerate(asked: AskedGenerate, options: EventStreamOptions): Promise<Response> {
  const { signal } = asked.exchange;
  const answer = new StreamedAnswer(asked, options);
  const breakSilence = () => {
    if (answer.isWaiting) patience.refresh();
    else answer.begin();
  };
  const patience = setTimeout(breakSilence, options.keepAliveMs);
  await answer.begun;
  clearTimeout(patience);
  if (answer.refusal !== null) throw signal.aborted ? clientLeft() : answer.refusal;
  return new Response(answer.stream.body, { headers: STREAM_HEADERS });
}

class StreamedAnswer {
  readonly stream: EventStream;
  /** Resolves when headers are to be sent, or the request is refused. */
  readonly begun: Promise<void>;
  /** What ended it before anything was sent; null: nothing did. */
  refusal: unknown = null;
  readonly #asked: AskedGenerate;
  readonly #ends: Ends;
  readonly #writer: GenerateStream;
  readonly #unheard: () => void;
  #resolve: () => void = () => {};
  #hasBegun = false;
  #isOver = false;
  #isWaiting: () => boolean = () => false;

  constructor(asked: AskedGenerate, options: EventStreamOptions) {
    const { model, read, exchange } = asked;
    const { signal, connection, terms } = exchange;
    this.#asked = asked;
    this.begun = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    this.#ends = new Ends(model);
    // Until the body is read, this signal alone shows that the client left.
    this.#unheard = onAbort(signal, () => this.#ends.leave(signal.reason));
    const onGone = () => {
      this.#ends.leave();
      this.#writer.release();
    };
    this.stream = new EventStream(options, { onGone, onDrain: () => this.#writer.release(), connection });
    const own = { model, id: read.id, memory: terms.memory };
    this.#writer = new GenerateStream(this.stream, own, (error) => {
      this.#over(error);
      this.#ends.leave(error);
    });
    this.#ask();
  }

  /** It waits for an engine elsewhere, and may be refused for want of one. */
  get isWaiting(): boolean {
    return this.#isWaiting();
  }

  #ask(): void {
    const on: InferListener = {
      response: (response) => {
        if (this.#isOver) return;
        this.#writer.write(response);
        if (this.#writer.hasWritten) this.begin();
      },
      end: () => this.#afterAll(null),
      fail: (error) => this.#afterAll(error),
    };
    try {
      const onBegun = (isWaiting: () => boolean) => {
        this.#isWaiting = isWaiting;
      };
      ask(this.#asked, this.#ends, { room: () => this.#writer.room(), onBegun }, on);
    } catch (error) {
      this.#over(error);
    }
  }

  /** Sends the headers: from now on an error is an event. */
  begin(): void {
    this.#hasBegun = true;
    this.#resolve();
  }

  #afterAll(error: unknown): void {
    const written = this.#writer.written();
    if (written === null) this.#over(error);
    else void written.then(() => this.#over(error));
  }

  /** @param error null: all responses are written */
  #over(error: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#unheard();
    this.#asked.live.release();
    if (error !== null) {
      if (!this.#hasBegun && !this.#writer.hasWritten) this.refusal = error;
      else this.#tell(error);
    }
    this.stream.close();
    this.begin();
  }

  #tell(error: unknown): void {
    if (statusOf(error) === 500) this.#asked.exchange.logError(error);
    this.stream.write(`data: ${protocolError(error).body}\n\n`);
  }
}
