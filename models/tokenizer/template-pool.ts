import {
  type ChatMessage,
  ChatTemplateError,
  forAnotherThread,
  type RenderOptions,
} from '../chat-template.js';
import {
  HelperBusyError,
  HelperError,
  HelperLostError,
  HelperPool,
  HelperTimeError,
} from '../helper-pool.js';
import type { TextSegment, Tokenizer } from './tokenizer.js';
import { TokenizerBusyError } from './tokenizer-pool.js';

/** What a template needs of the tokenizer. */
export type TemplateTokens = Pick<Tokenizer, 'bosToken' | 'eosToken' | 'controlTokenTexts'>;

/** A chat to render by a template that came with it. */
export interface TemplateJob {
  template: string;
  messages: readonly ChatMessage[];
  render: RenderOptions;
}

/** Most milliseconds that reading a template and rendering one chat may take: a model's own takes a few. */
const TIME_LIMIT_MS = 2000;
/** Most chats that wait: in the longest time they may all take, a client gives up. */
const MAX_JOBS = 16;
/** A template may build lists of texts; a model's own needs a few megabytes. */
const LIMITS = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 4, stackSizeMb: 4 };

/**
 * Renders chats by templates of strangers, in a thread of their own: one that takes too long, or too much memory, is ended
 * with its thread, and holds up neither the thread that serves HTTP nor the one that encodes long texts. The thread starts
 * with the first such chat.
 */
export class TemplatePool {
  readonly #helpers: HelperPool<TemplateJob, TextSegment[]>;

  constructor({ bosToken, eosToken, controlTokenTexts }: TemplateTokens) {
    this.#helpers = new HelperPool({
      script: new URL('./template-worker.js', import.meta.url),
      workerData: { bosToken, eosToken, controlTokenTexts } satisfies TemplateTokens,
      maxJobs: MAX_JOBS,
      timeLimitMs: TIME_LIMIT_MS,
      resourceLimits: LIMITS,
    });
  }

  /**
   * The rendered text, in segments for Tokenizer.encodeSegments.
   * @throws ChatTemplateError, also where the template takes too long; TokenizerBusyError.
   */
  async render(job: TemplateJob, signal?: AbortSignal): Promise<TextSegment[]> {
    try {
      return await this.#helpers.run({ ...job, render: forAnotherThread(job.render) }, signal);
    } catch (error) {
      throw inTemplatesWords(error);
    }
  }

  close(): Promise<void> {
    return this.#helpers.close();
  }
}

function inTemplatesWords(error: unknown): unknown {
  if (error instanceof HelperBusyError) {
    return new TokenizerBusyError('Too many chats with templates of their own are waiting; try again later.');
  }
  if (error instanceof HelperTimeError) {
    return new ChatTemplateError(`The chat template took more than ${TIME_LIMIT_MS} milliseconds.`);
  }
  if (error instanceof HelperError && error.failure.code === 'SKEIN_CHAT_TEMPLATE')
    return ChatTemplateError.of(error.failure);
  if (error instanceof HelperLostError && error.code === 'SKEIN_HELPER_LOST')
    return new ChatTemplateError('The chat template took too much memory.', { cause: error });
  return error;
}
