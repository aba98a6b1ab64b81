import type { Admit, AnswerTally } from '../../../../callbacks/infer/answer-tally.js';
import type { InferResponse } from '../../../../callbacks/infer/infer-types.js';
import { LONGEST_NAME } from '../../../../callbacks/infer/request-limits.js';
import { malformed } from '../../../serving/infer-failure.js';
import type { InferModel } from '../../../serving/infer-model.js';
import { refuseAdapter, refuseEngine } from '../../../serving/protocol/known-fields.js';
import type { RegionAccess } from '../../../serving/protocol/region-access.js';
import { HeldRequest } from '../../inferring/held-request.js';
import { inferTerms } from '../../inferring/infer-terms.js';
import { type Platform, regionAccess } from '../../inferring/platform.js';
import type { AnswerForm, StreamedInfer, StreamedRead } from '../../inferring/streamed-infer.js';
import type { ApiKeys, Caller } from '../../web/access/api-keys.js';
import { REQUEST_BYTES } from '../../web/memory/memory-estimates.js';
import type { RequestMemory } from '../../web/memory/request-memory.js';
import { type ParsedInfer, parseInfer, readParsed } from '../infer.js';
import { inferBody } from '../infer-answer.js';
import type { ReadInfer } from '../read-infer.js';
import {
  answerMessage,
  cutMessage,
  finalMessage,
  type ReceivedMessage,
  type SentMessage,
} from './socket-messages.js';

/** The model that a socket is for; null: each message names one. */
export type SocketModel = { name: string; version: string } | null;

/** What a request on a socket is answered from. */
export interface RequestServices {
  platform: Platform;
  apiKeys: ApiKeys;
  openMemory(caller: Caller): RequestMemory;
  maxBodyBytes: number;
  /** Most milliseconds of an answer; null: no limit. */
  requestTimeoutMs: number | null;
}

/** Where a request came from. */
export interface RequestOrigin {
  model: SocketModel;
  caller: Caller;
  requestId: string;
  tally: AnswerTally;
  admit: Admit | undefined;
  /** Fingerprint of the engine that is to answer; undefined: any of the model. */
  engine: string | undefined;
  /** Aborted when the socket is closed. */
  signal: AbortSignal;
  beginWork(): () => void;
  /** A request has failed: the server's metrics and log have it. */
  noteFailure(error: unknown): void;
  onOver(): void;
}

export type SocketRead = ReadInfer & StreamedRead;

/** gRPC's option for an explicit end, which sockets send in any case. */
const EMPTY_FINAL = 'triton_enable_empty_final_response';

/** A request on a socket, with all that is held for it until its last answer is out. */
export class SocketRequest extends HeldRequest implements StreamedInfer<SocketRead, SentMessage> {
  /** '': it has none, or it is not known. */
  id = '';
  readonly #received: ReceivedMessage;
  readonly #services: RequestServices;
  readonly #origin: RequestOrigin;
  readonly #regions: RegionAccess;
  #parsed: ParsedInfer | null = null;

  constructor(received: ReceivedMessage, services: RequestServices, origin: RequestOrigin) {
    const { caller, signal } = origin;
    const memory = services.openMemory(caller);
    super({ memory, signal, beginWork: () => origin.beginWork(), onOver: () => origin.onOver() });
    this.#received = received;
    this.#services = services;
    this.#origin = origin;
    this.#regions = regionAccess(services.platform, caller, services.apiKeys, services.maxBodyBytes);
  }

  /** Parses the JSON, and finds the model. @throws InferError, ApiError */
  async find(): Promise<InferModel> {
    this.memory.holdBody(REQUEST_BYTES + this.#received.bytes.length);
    const { signal } = this.cancelled;
    const parsed = await parseInfer({ ...cutMessage(this.#received), signal, memory: this.memory });
    this.#parsed = parsed;
    const { id, model, model_version: version } = (parsed.value ?? {}) as Readonly<Record<string, unknown>>;
    if (typeof id === 'string' && id.length <= LONGEST_NAME) this.id = id;
    const { name, version: ofModel } = modelOf(this.#origin.model, model, version);
    return this.#services.platform.repository.find(name, ofModel);
  }

  async read(model: InferModel): Promise<SocketRead> {
    const memory = this.memory;
    const { caller, requestId, tally, admit, engine } = this.#origin;
    const { signal } = this.cancelled;
    const read = await readParsed(model.config.name, this.#parsed!, {
      signal,
      memory,
      regions: this.#regions,
    });
    refuseAdapter(model, read.request);
    refuseEngine(model, engine);
    const { [EMPTY_FINAL]: _, ...parameters } = read.request.parameters;
    const { requestTimeoutMs: timeLimitMs } = this.#services;
    const terms = inferTerms({ caller, requestId, timeLimitMs, memory, tally, admit, engine });
    return {
      ...read,
      request: { ...read.request, parameters, owner: caller.name, terms },
      wantsEmptyFinal: true,
    };
  }

  async answer(
    model: InferModel,
    read: SocketRead,
    response: InferResponse,
    { isFinal }: AnswerForm,
  ): Promise<SentMessage> {
    let held = 0;
    const parameters = { ...response.parameters, triton_final_response: isFinal };
    const body = await inferBody(model, read, { ...response, parameters }, (bytes) => {
      this.holdAnswer(bytes);
      held += bytes;
    });
    return answerMessage(body, () => this.freeAnswer(held));
  }

  emptyFinal({ config, version }: InferModel): SentMessage {
    return finalMessage(this.id, config.name, version);
  }

  noteFailure(error: unknown): void {
    this.#origin.noteFailure(error);
  }

  protected override release(): void {
    this.#regions.release();
  }
}

/** The model that a message asks. @throws InferError */
function modelOf(
  bound: SocketModel,
  name: unknown,
  version: unknown = '',
): { name: string; version: string } {
  if (bound !== null) {
    if (name === undefined || name === bound.name) return bound;
    throw malformed(
      `this socket is for the model '${bound.name}'; /models/infer takes requests for any model`,
    );
  }
  if (typeof name !== 'string') throw malformed("Unable to parse 'model': the name of a model is expected");
  if (typeof version !== 'string' || !/^\d{0,18}$/.test(version)) {
    throw malformed("Unable to parse 'model_version': a whole number as a string is expected");
  }
  return { name, version };
}
