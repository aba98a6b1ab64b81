import type { ChatPlan } from '../../../generation/chat-plan.js';
import type { TextPiece } from '../../../generation/text-generation.js';
import type { ServedGenerator } from '../../../serving/served-model.js';
import { ChatMessageReader } from '../../answering/chat-message.js';
import { chatLogProb } from '../../answering/log-probs.js';
import type { FrameWriter } from '../../answering/respond.js';
import { NO_PIECE, type SeveralPasses } from '../../answering/several-passes.js';
import type { RoundsEnd } from '../../answering/tool-rounds.js';
import { jsonInTurns } from '../../web/bodies/json-answer.js';
import { JsonObject } from '../../web/bodies/json-parts.js';
import type { ApiError } from '../../web/errors.js';
import { type ResponseRequest, SEALED_REASONING } from '../schemas/responses.js';
import type { Compaction } from './compaction.js';
import { sealedState } from './compaction-state.js';
import type { Conversation } from './conversation.js';
import type { ConversationTurn } from './conversation-store.js';
import { EventLog } from './event-log.js';
import { OutputEvents } from './output-events.js';
import { responseJson } from './response-json.js';
import {
  newId,
  type ResponseObject,
  type ResponseState,
  type ResponseUsage,
  responseFields,
  responseUsage,
} from './response-object.js';
import type { ActiveResponse, KeptItem, OwnResponses } from './response-store.js';
import { idsOf, type Origin } from './response-task.js';
import type { ServedEvents } from './served-events.js';
import { SummaryReader } from './summary-pass.js';

export interface MakingOptions {
  model: ServedGenerator;
  request: ResponseRequest;
  conversation: Conversation;
  run: SeveralPasses;
  store: OwnResponses;
  /** The response's turn in a stored conversation; null: it belongs to none. */
  turn: ConversationTurn | null;
  hasLogProbs: boolean;
  /** From where it is made; absent: here, and here alone. */
  origin?: Origin | undefined;
  /** Its events that were sent before; absent: none. */
  told?: readonly string[] | undefined;
}

interface SummaryInMaking {
  reader: SummaryReader;
  compaction: Compaction;
  /** True once its item is there. */
  hasBegun: boolean;
}

/** A writer of a response's events, one in each text at its end. */
interface ResponseFrames extends FrameWriter {
  end(): AsyncIterable<string>;
  error(error: ApiError): string;
}

/** A response in the making: its present state, and its events. */
export class ResponseMaking implements ActiveResponse {
  readonly events: EventLog | null;
  readonly #options: MakingOptions;
  readonly #fields: ReturnType<typeof responseFields>;
  /** Reader of the answer; null: it has not begun. */
  #reader: ChatMessageReader | null = null;
  /** The summary that is being made; null: there is none. */
  #summary: SummaryInMaking | null = null;
  /** Tokens of reasoning in the passes that have ended. */
  #reasoningBefore = 0;
  #isDiscarded = false;
  readonly #output: OutputEvents;
  readonly #whole: Promise<ResponseObject>;
  #resolveWhole: (whole: ResponseObject) => void = () => {};
  #state: Omit<ResponseState, 'output' | 'usage'> = {
    status: 'in_progress',
    error: null,
    incomplete_details: null,
    completed_at: null,
  };
  #isCancelled = false;
  /** Events not sent yet: as JSON where it is short, else as a value that does not change. */
  readonly #frames: { type: string; data: string | JsonObject }[] = [];
  #sequence: number;
  #hasBegun = false;

  constructor(options: MakingOptions) {
    const { model, request, conversation, run, store, hasLogProbs, origin, told = [] } = options;
    this.#options = options;
    this.events = request.background && request.stream ? new EventLog(told, false) : null;
    const fields = responseFields(request, model, origin?.id ?? newId('resp'));
    this.#fields = { ...fields, created_at: origin?.createdAt ?? fields.created_at };
    this.#sequence = told.length;
    const nextId = origin === undefined ? null : idsOf(origin.id);
    this.#output = new OutputEvents({
      onEvent: (type, fields) => this.#tell(type, fields),
      newCall: (name) => {
        const call = this.#reader!.newCall(name);
        return nextId === null ? call : { id: idLike(call.id, nextId()) };
      },
      newId: (prefix) => (nextId === null ? newId(prefix) : `${prefix}_${nextId()}`),
      hasLogProbs,
      tools: conversation.tools,
      sealsReasoning: request.include?.includes(SEALED_REASONING) ?? false,
    });
    this.#whole = new Promise((resolve) => {
      this.#resolveWhole = resolve;
    });
    if (this.#fields.store) {
      store.begin(this.#fields.id, this);
      run.keepEnded();
    }
  }

  get id(): string {
    return this.#fields.id;
  }

  get isInBackground(): boolean {
    return this.#fields.background;
  }

  get input() {
    return this.#options.conversation.input;
  }

  get previous() {
    return this.#options.conversation.previous;
  }

  get before() {
    return this.#options.conversation.before;
  }

  /** Begins the pass in which the model summarises the conversation. */
  beginSummary(plan: ChatPlan, compaction: Compaction): void {
    this.#summary = { reader: new SummaryReader(plan, this.#options.model), compaction, hasBegun: false };
  }

  /** Begins the pass in which the model answers. */
  beginAnswer(plan: ChatPlan): void {
    this.#reasoningBefore += this.#reader?.reasoningTokens ?? 0;
    this.#output.beginPass();
    this.#reader = new ChatMessageReader(plan, this.#options.model.codec);
  }

  /** True where nothing more comes. */
  get isOver(): boolean {
    return this.#state.status !== 'in_progress';
  }

  /** Items of tools of servers. */
  get served(): ServedEvents {
    return this.#output.served;
  }

  /** True where the answer so far has calls that the client makes, or has to approve. */
  get waitsForClient(): boolean {
    return this.#output.waitsForClient;
  }

  /** Ends the item that is being written. */
  closeItem(): void {
    this.#output.closeItem();
  }

  /** Ends an answer between two passes of the engine. @param reason `length`: no token is left for another */
  endBetween(reason: RoundsEnd | 'stop' | 'length'): void {
    this.#end(reason);
  }

  /** Items so far. */
  get output(): readonly KeptItem[] {
    return this.#output.items;
  }

  snapshot(): ResponseObject {
    const usage = this.isOver ? this.#usage() : null;
    return { ...this.#fields, ...this.#state, output: this.#output.items, usage };
  }

  cancel(): Promise<ResponseObject> {
    this.#isCancelled = true;
    this.#options.run.abort();
    return this.#whole;
  }

  discard(): void {
    this.#isDiscarded = true;
    void this.cancel();
  }

  piece(piece: TextPiece): void {
    if (piece === NO_PIECE) return;
    const { model, hasLogProbs } = this.#options;
    if (this.#summary !== null) {
      this.#summaryPiece(this.#summary, piece);
      return;
    }
    const parts = this.#reader!.read(piece.text, piece.tokens, piece.finishReason !== null);
    this.#output.push(
      parts,
      hasLogProbs ? piece.logProbs.map((entry) => chatLogProb(model.codec, entry)) : [],
    );
    if (piece.finishReason !== null) this.#endPass(piece.finishReason);
  }

  /** Ends a pass, and the answer unless it waits for calls that run here. */
  #endPass(reason: string): void {
    if (reason === 'stop') this.closeItem();
    if (reason !== 'stop' || !this.served.hasWaiting) this.#end(reason);
  }

  #summaryPiece(summary: SummaryInMaking, piece: TextPiece): void {
    const { reader, compaction } = summary;
    if (!summary.hasBegun) this.#output.beginCompaction();
    summary.hasBegun = true;
    reader.push(piece);
    const { finishReason } = piece;
    if (finishReason === null) return;
    this.#summary = null;
    this.#reasoningBefore += reader.reasoningTokens;
    // A summary cut by its length limit is valid; one cut for another reason is not.
    if (finishReason === 'cancelled' || finishReason === 'timeout') {
      this.#output.dropCompaction();
      this.#end(finishReason);
      return;
    }
    this.#output.endCompaction(sealedState(compaction.stateOf(reader.text)));
    if (this.#options.conversation.isToCompact) this.#end('stop');
  }

  /** Finishes a response whose answer has ended or was cancelled. @returns the response; null where its client left. */
  async finish(): Promise<ResponseObject | null> {
    const { store } = this.#options;
    if (!this.#fields.background) store.end(this.#fields.id);
    if (!this.isOver && this.#isCancelled) {
      this.#output.dropCompaction();
      this.#output.end('incomplete');
      this.#state = { ...this.#state, status: 'cancelled' };
    }
    // The response does not change any more.
    const response = this.snapshot();
    this.#resolveWhole(response);
    if (!this.#fields.background) await this.#endTurn();
    if (!this.isOver) return null;
    // That of a response in the background is kept with its last events.
    if (this.#fields.store && !this.#fields.background) await store.put({ response, ...this.#conversation });
    return response;
  }

  /** Keeps a response that was made in the background, however it ended. */
  async keep(): Promise<void> {
    const { store } = this.#options;
    try {
      await this.#endTurn();
      if (this.#isDiscarded) return;
      await store.put({ response: this.snapshot(), ...this.#conversation, events: this.events?.frames });
    } finally {
      store.end(this.#fields.id);
    }
  }

  /** Takes a response away that was deleted while it was being kept. */
  unkeep(): Promise<void> {
    return this.#options.store.forget(this.#fields.id);
  }

  get #conversation() {
    const { input, previous, before } = this.#options.conversation;
    return { input, previous, before };
  }

  /** Ends the turn in a stored conversation, which gets whole turns only: not one that was cancelled or has failed. */
  async #endTurn(): Promise<void> {
    const { turn, conversation } = this.#options;
    const { status } = this.#state;
    const isWhole = !this.#isDiscarded && (status === 'completed' || status === 'incomplete');
    const input = conversation.input.filter(({ type }) => type !== 'compaction_trigger');
    await turn?.end(isWhole ? [...input, ...this.#output.items] : []);
  }

  /** Drops a response that came to nothing. */
  forget(): void {
    this.#options.store.end(this.#fields.id);
    // What cannot be reached has lost the turn, or will.
    if (!this.#fields.background) void this.#endTurn().catch(() => {});
    this.#resolveWhole(this.snapshot());
  }

  /** Finishes a response whose engine failed. */
  fail({ message, status }: ApiError): ResponseObject {
    const isOfRequest = status < 500 && status !== 424;
    const code = status === 429 ? 'rate_limit_exceeded' : isOfRequest ? 'invalid_prompt' : 'server_error';
    this.#state = { ...this.#state, status: 'failed', error: { code, message } };
    this.forget();
    return this.snapshot();
  }

  /** Announces the response, before its first item. */
  start(): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    this.#tell('response.created', { response: this.snapshot() });
    this.#tell('response.in_progress', { response: this.snapshot() });
  }

  /** Writes the response as a stream of events. */
  frameWriter(): ResponseFrames {
    return {
      endsWithDone: false,
      piece: (_, piece) => {
        this.start();
        this.piece(piece);
        // The last events repeat the whole response: they are written in turns.
        return this.isOver ? '' : this.#takeFrames();
      },
      end: () => this.#endFrames(),
      error: (error) => {
        this.start();
        this.#output.breakOff();
        const { type, message, apiCode: code, param } = error;
        const fields = { code: code ?? 'server_error', message, param };
        // OpenAI's description puts the fields next to the type, but its server nests them in `error`, by
        // which its clients recognise an error and throw it.
        this.#tell('error', { ...fields, error: { type, ...fields } });
        this.#tell('response.failed', { response: responseJson(this.fail(error)) });
        return this.#takeFrames();
      },
    };
  }

  #end(reason: string): void {
    const isWhole = reason === 'stop';
    this.#output.end(isWhole ? 'completed' : 'incomplete');
    if (reason === 'cancelled') {
      this.#state = { ...this.#state, status: 'cancelled' };
      return;
    }
    // The reason is chat's finish reason: OpenAI's list has no other word for a limit, and clients check against it.
    const cut = {
      reason: 'max_output_tokens' as const,
      ...(reason === 'timeout' ? { stop_reason: 'time_limit' as const } : {}),
    };
    this.#state = {
      ...this.#state,
      status: isWhole ? 'completed' : 'incomplete',
      incomplete_details: isWhole ? null : cut,
      completed_at: isWhole ? Math.floor(Date.now() / 1000) : null,
    };
  }

  #usage(): ResponseUsage {
    const { reasoningTokens = 0 } = this.#reader ?? {};
    return responseUsage(this.#options.run, this.#reasoningBefore + reasoningTokens);
  }

  #tell(type: string, fields: object): void {
    if (!this.#options.request.stream) return;
    const splicer = this.#options.origin?.splicer ?? null;
    const rest = splicer === null ? fields : splicer.rest(type, fields);
    if (rest !== null) this.#add(type, rest);
  }

  #add(type: string, fields: object): void {
    const event = { type, sequence_number: this.#sequence++, ...fields };
    const isLong = Object.values(fields).some((field) => field instanceof JsonObject);
    this.#frames.push({ type, data: isLong ? new JsonObject(event) : JSON.stringify(event) });
  }

  #takeFrames(): string {
    return this.#frames
      .splice(0)
      .map(({ type, data }) => frame(type, typeof data === 'string' ? data : JSON.stringify(data)))
      .join('');
  }

  /** Remaining events, frame by frame. */
  async *#endFrames(): AsyncGenerator<string, void, undefined> {
    const response = await this.finish();
    if (response !== null) {
      // A cancelled response has no event of its own: it counts as incomplete.
      const type = response.status === 'completed' ? 'completed' : 'incomplete';
      this.#tell(`response.${type}`, { response: responseJson(response) });
    }
    for (const { type, data } of this.#frames.splice(0)) {
      yield frame(type, typeof data === 'string' ? data : await jsonInTurns(data));
    }
  }
}

/** An id in the form of another one, as the model's chat template takes it. */
function idLike(id: string, digits: string): string {
  const prefix = id.startsWith('call_') ? 'call_' : '';
  return prefix + digits.slice(0, id.length - prefix.length);
}

function frame(type: string, data: string): string {
  return `event: ${type}\ndata: ${data}\n\n`;
}
