import { randomBytes } from 'node:crypto';
import type { ChatPlan } from '../../generation/chat-plan.js';
import type { TextPiece } from '../../generation/text-generation.js';
import type { ServedGenerator } from '../../serving/served-model.js';
import { ChatMessageReader } from '../answering/chat-message.js';
import type { ChoiceRun } from '../answering/choice-run.js';
import type { FrameWriter } from '../answering/respond.js';
import { JsonList, JsonObject } from '../web/bodies/json-parts.js';
import { ContentBlocks } from './content-blocks.js';
import { errorBody } from './errors.js';

export interface MakingOptions {
  model: ServedGenerator;
  plan: ChatPlan;
  run: ChoiceRun;
  /** True where the context leaves fewer tokens than the request allows. */
  isCutByContext: boolean;
  omitsThinking: boolean;
}

type StopReason = 'end_turn' | 'max_tokens' | 'stop_sequence' | 'tool_use' | 'model_context_window_exceeded';

const PING = frame('ping', {});

/** A message in the making, whole or as a stream of events. */
export class MessageMaking {
  readonly #options: MakingOptions;
  readonly #id = newId('msg');
  readonly #reader: ChatMessageReader;
  readonly #blocks: ContentBlocks;
  #stop: { stop_reason: StopReason | null; stop_sequence: string | null } = {
    stop_reason: null,
    stop_sequence: null,
  };
  /** Events not sent yet. */
  #frames = '';
  #isBegun = false;

  constructor(options: MakingOptions) {
    const { plan, model, run, omitsThinking } = options;
    this.#options = options;
    this.#reader = new ChatMessageReader(plan, model.codec, { newId: () => newId('toolu') });
    this.#blocks = new ContentBlocks({
      onEvent: (type, fields) => {
        this.#frames += frame(type, fields);
      },
      newCallId: (name) => this.#reader.newCall(name).id,
      omitsThinking,
    });
    run.addId(this.#id);
  }

  piece(piece: TextPiece): void {
    const { finishReason } = piece;
    this.#blocks.push(this.#reader.read(piece.text, piece.tokens, finishReason !== null));
    if (finishReason === null) return;
    this.#blocks.end();
    this.#stop = this.#stopOf(finishReason, piece.stopReason);
  }

  /** The whole message, written in parts. */
  message(): JsonObject {
    return new JsonObject({
      ...this.#head(),
      content: JsonList.of(this.#blocks.blocks, (block) => new JsonObject(block)),
      ...this.#stop,
      ...NOTHING_BESIDES,
      usage: { ...this.#usage(), ...ALWAYS_SO },
    });
  }

  frameWriter(): FrameWriter {
    return {
      endsWithDone: false,
      form: { keepAliveText: PING },
      piece: (_, piece) => {
        // The first piece reports how much of the prompt was cached.
        const begin = this.#begin();
        this.#frames = '';
        this.piece(piece);
        return begin + this.#frames;
      },
      end: () =>
        // A client that left gets no end.
        this.#stop.stop_reason === null
          ? ''
          : frame('message_delta', {
              delta: { ...this.#stop, ...NOTHING_BESIDES },
              usage: this.#usage(),
            }) + frame('message_stop', {}),
      error: (error) => `event: error\ndata: ${JSON.stringify(errorBody(error))}\n\n`,
    };
  }

  #begin(): string {
    if (this.#isBegun) return '';
    this.#isBegun = true;
    const message = {
      ...this.#head(),
      content: [],
      ...this.#stop,
      ...NOTHING_BESIDES,
      usage: { ...this.#usage(), ...ALWAYS_SO },
    };
    return frame('message_start', { message }) + PING;
  }

  #head() {
    return { id: this.#id, type: 'message', role: 'assistant', model: this.#options.model.id };
  }

  #stopOf(finish: string, stop: string | number | null) {
    const { isCutByContext } = this.#options;
    const reason = (stop_reason: StopReason) => ({ stop_reason, stop_sequence: null });
    if (finish === 'length' && isCutByContext) return reason('model_context_window_exceeded');
    // Limits of time and cancellations have no word of their own: clients know this one as an incomplete answer.
    if (finish !== 'stop') return reason('max_tokens');
    if (typeof stop === 'string') return { stop_reason: 'stop_sequence' as const, stop_sequence: stop };
    return reason(this.#blocks.hasCalls ? 'tool_use' : 'end_turn');
  }

  /** Usage so far. What was found in the cache is not part of the input, and nothing is charged for what stays there. */
  #usage() {
    const { plan, run } = this.#options;
    const cached = run.cachedTokens;
    return {
      input_tokens: plan.promptTokens.length - cached,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: cached,
      output_tokens: run.completionTokens,
      output_tokens_details: { thinking_tokens: this.#reader.reasoningTokens },
      server_tool_use: null,
    };
  }
}

/** Fields of a message that only Anthropic's own servers have something for. */
const NOTHING_BESIDES = { stop_details: null, container: null };
const ALWAYS_SO = { cache_creation: null, service_tier: 'standard', inference_geo: null };

function frame(type: string, fields: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}

function newId(prefix: 'msg' | 'toolu'): string {
  return `${prefix}_${randomBytes(12).toString('hex')}`;
}
