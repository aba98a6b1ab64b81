import { type ChatPiece, chatPieces } from '../../generation/chat-pieces.js';
import { type AskedRequest, seenRequest } from '../../generation/pictures/seen-request.js';
import { withDefaults } from '../../generation/sampling-defaults.js';
import { generateText } from '../../generation/text-generation.js';
import type { TextModel } from '../../generation/text-model.js';
import type { AnswerPlan, GenerateOptions } from '../answers.js';
import { DEFAULT_MAX_TOKENS, plannedRequest } from '../asked-request.js';
import { untilEnd } from '../collected-answer.js';
import { checkGenerateOptions } from '../options/generate-options.js';

/** An answer that can be asked for: its prompt is made, and nothing of its pictures is decoded. */
export interface PlannedAnswer {
  request: AskedRequest;
  plan: AnswerPlan | null;
  model: TextModel;
}

/** Share of the context that is left for an answer without a limit. */
const ANSWER_SHARE = 1 / 4;

/** A model as a chat asks it. */
export class AnsweringModel {
  readonly name: string;
  readonly #own: TextModel;
  readonly #modelOf: (options: Pick<GenerateOptions, 'adapter'>) => TextModel;

  /** @param modelOf gives the model of a request's adapter */
  constructor(
    name: string,
    own: TextModel,
    modelOf: (options: Pick<GenerateOptions, 'adapter'>) => TextModel,
  ) {
    this.name = name;
    this.#own = own;
    this.#modelOf = modelOf;
  }

  /** Tokens of the context. */
  get maxSeqLen(): number {
    return this.#own.maxSeqLen;
  }

  /** Most tokens of a prompt that leaves room for its answer. */
  room({ maxTokens }: Pick<GenerateOptions, 'maxTokens'>): number {
    const { maxSeqLen, maxInputLen, sampling } = this.#own;
    const usual = Math.min(sampling?.maxTokens ?? DEFAULT_MAX_TOKENS, Math.floor(maxSeqLen * ANSWER_SHARE));
    return Math.min(maxInputLen, maxSeqLen - (maxTokens ?? usual));
  }

  /** @throws InvalidRequestError, ContextLengthError, ChatTemplateError */
  async plan(options: GenerateOptions): Promise<PlannedAnswer> {
    checkGenerateOptions('chat', options);
    const model = this.#modelOf(options);
    return { ...(await plannedRequest(this.#own, options)), model };
  }

  /** @throws as Skein.complete */
  async *pieces({ request: asked, plan, model }: PlannedAnswer): AsyncGenerator<ChatPiece, void, undefined> {
    const request = await seenRequest(this.#own, asked);
    const pieces = generateText(model, withDefaults(model.sampling, request));
    yield* untilEnd(plan === null ? pieces : chatPieces(pieces, plan), request.signal);
  }
}
