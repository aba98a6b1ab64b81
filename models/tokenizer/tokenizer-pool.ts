import {
  type ChatMessage,
  type ChatTemplate,
  ChatTemplateError,
  type RenderOptions,
} from '../chat-template.js';
import {
  HelperBusyError,
  HelperError,
  HelperLostError,
  HelperPool,
  HelperTimeError,
} from '../helper-pool.js';
import type { EncodeOptions, TextSegment, Tokenizer, TokenizerSourceFiles } from './tokenizer.js';
import { TokenizerError } from './tokenizer-json.js';

/** Where a worker gets its tokenizer: from a folder, which costs the main thread nothing, or from a copy. */
export type TokenizerSource =
  | { directory: string }
  | { files: TokenizerSourceFiles & { chatTemplate?: string | null } };

export interface TokenizerPoolOptions {
  /** Threads at most; each is started when it is first needed. Default 1. */
  workers?: number;
  /**
   * Texts longer than this many UTF-16 units go to a worker; all of them where the tokenizer is unproven. Default 2048: some
   * 3 ms of work for prose, ten times that for one endless word. A chat's values count too, 32 units each: a template has
   * work with each of them.
   */
  threshold?: number;
  /** Texts that may wait or be in work at a time. Default 256. */
  maxJobs?: number;
  /**
   * Milliseconds that one of them may take. Default 60,000; with an unproven tokenizer, whose short texts wait behind each
   * other in the workers, 2,000 and as much again for each 16,384 units of the text, up to 60,000.
   */
  timeLimitMs?: number;
}

/** More long texts at a time than the pool takes: try again later. */
export class TokenizerBusyError extends Error {
  override name = 'TokenizerBusyError';
}

/** To make a prompt of it took longer than it may. The request's fault, or the template's. */
export class PromptTimeError extends Error {
  override name = 'PromptTimeError';
}

/** What the template made of a chat is longer than it may be; it was not encoded. */
export class PromptUnitsError extends Error {
  override name = 'PromptUnitsError';
  /** UTF-16 units of the text. */
  readonly units: number;

  constructor(units: number) {
    // The message alone crosses from one thread to another.
    super(String(units));
    this.units = units;
  }
}

export type TokenizerJob = { addSpecialTokens: boolean } & (
  | { segments: readonly TextSegment[] }
  | { messages: readonly ChatMessage[]; render: RenderOptions; maxUnits: number }
);

/** How a text is encoded. `signal`: once raised, a text that waits is dropped, and its promise rejects with the reason. */
export interface PoolEncodeOptions {
  addSpecialTokens?: boolean;
  signal?: AbortSignal | undefined;
}

/** Units that a value of a chat counts beside its text. */
const UNITS_PER_VALUE = 32;
/** The library pushes all pieces of an endless word at once, which takes eight bytes of stack each. */
const WORKER_LIMITS = { maxOldGenerationSizeMb: 2048, stackSizeMb: 64 };
const MAX_TIME_MS = 60_000;
/** With an unproven tokenizer: for so many units. */
const UNPROVEN_TIME_MS = 2000;
const UNPROVEN_TIME_UNITS = 16_384;
/** Steps of a template in the thread that asks; one that needs more is rendered in a worker, from the beginning. */
const MAX_STEPS_HERE = 20_000;

/**
 * Encodes short texts and chats at once and long ones in worker threads, so that the thread that serves HTTP is never busy
 * with one prompt for long. The token ids are the same either way.
 */
export class TokenizerPool {
  readonly #tokenizer: Tokenizer;
  readonly #threshold: number;
  /** Units of a text that is encoded in the thread that asks. */
  readonly #encodesHere: number;
  readonly #helpers: HelperPool<TokenizerJob, Int32Array>;

  constructor(tokenizer: Tokenizer, source: TokenizerSource, options: TokenizerPoolOptions = {}) {
    const { workers, threshold = 2048, maxJobs, timeLimitMs } = options;
    this.#tokenizer = tokenizer;
    // Below every length: an empty text too may become another one, and meet a pattern.
    this.#encodesHere = tokenizer.unproven === null ? threshold : -1;
    this.#threshold = threshold;
    const script = new URL('./tokenizer-worker.js', import.meta.url);
    const limit = timeLimitMs ?? (tokenizer.unproven === null ? MAX_TIME_MS : unprovenTime);
    this.#helpers = new HelperPool({
      ...{ script, workerData: source, workers, maxJobs },
      timeLimitMs: limit,
      resourceLimits: WORKER_LIMITS,
    });
  }

  /** Like Tokenizer.encode. @throws TokenizerBusyError when too many long texts are waiting, PromptTimeError. */
  async encode(text: string, options: EncodeOptions & PoolEncodeOptions = {}): Promise<Int32Array> {
    const { addSpecialTokens = true, allowSpecial = true, signal } = options;
    return this.encodeSegments([{ text, special: allowSpecial }], { addSpecialTokens, signal });
  }

  /** Like Tokenizer.encodeSegments. @throws TokenizerBusyError when too many long texts are waiting, PromptTimeError. */
  async encodeSegments(
    segments: readonly TextSegment[],
    { addSpecialTokens = false, signal }: PoolEncodeOptions = {},
  ): Promise<Int32Array> {
    if (lengthOf(segments) <= this.#encodesHere)
      return this.#tokenizer.encodeSegments(segments, { addSpecialTokens });
    return this.#run({ segments, addSpecialTokens }, signal);
  }

  /**
   * The tokens of a chat as the template renders it.
   * @param template that of the source, for chats that are rendered here.
   * @param options `maxUnits`: a rendered text of more UTF-16 units is not encoded.
   * @throws ChatTemplateError; TokenizerBusyError when too many long texts are waiting; PromptTimeError; PromptUnitsError.
   */
  async encodeChat(
    template: ChatTemplate,
    messages: readonly ChatMessage[],
    render: RenderOptions,
    options: PoolEncodeOptions & { maxUnits?: number } = {},
  ): Promise<Int32Array> {
    const { addSpecialTokens = false, signal, maxUnits = Number.POSITIVE_INFINITY } = options;
    if (unitsOf([messages, render], this.#threshold) <= this.#threshold) {
      const rendered = template.renderWithin(MAX_STEPS_HERE, messages, render);
      if (rendered !== null) {
        if (rendered.text.length > maxUnits) throw new PromptUnitsError(rendered.text.length);
        return this.encodeSegments(rendered.segments, options);
      }
    }
    return this.#run({ messages, render, maxUnits, addSpecialTokens }, signal);
  }

  /** Long texts that wait or are in work. */
  get jobs(): number {
    return this.#helpers.jobs;
  }

  /** Fails what is still waiting or in work and ends the threads. */
  close(): Promise<void> {
    return this.#helpers.close();
  }

  async #run(job: TokenizerJob, signal: AbortSignal | undefined): Promise<Int32Array> {
    try {
      return await this.#helpers.run(job, signal);
    } catch (error) {
      throw inTokenizersWords(error);
    }
  }
}

function unprovenTime(job: TokenizerJob): number {
  const units =
    'segments' in job
      ? lengthOf(job.segments)
      : unitsOf([job.messages, job.render], Number.POSITIVE_INFINITY);
  return Math.min(MAX_TIME_MS, UNPROVEN_TIME_MS * (1 + units / UNPROVEN_TIME_UNITS));
}

function lengthOf(segments: readonly TextSegment[]): number {
  return segments.reduce((sum, { text }) => sum + text.length, 0);
}

function inTokenizersWords(error: unknown): unknown {
  if (error instanceof HelperBusyError) {
    return new TokenizerBusyError('Too many long texts are being tokenized; try again later.');
  }
  if (error instanceof HelperTimeError) {
    return new PromptTimeError(`The prompt could not be made in time. ${error.message}`);
  }
  if (error instanceof HelperLostError) return new TokenizerError(error.message, { cause: error });
  if (!(error instanceof HelperError)) return error;
  if (error.name === 'PromptUnitsError') return new PromptUnitsError(Number(error.message));
  if (error.name === 'ChatTemplateError') return new ChatTemplateError(error.message);
  return new TokenizerError(error.message, { cause: error });
}

/** Units of a JSON value: of its texts, and so many for each value in it. Counts no further than `limit`. */
function unitsOf(value: unknown, limit: number): number {
  let units = 0;
  const open: unknown[] = [value];
  while (open.length > 0 && units <= limit) {
    const one = open.pop();
    units += UNITS_PER_VALUE;
    if (typeof one === 'string') units += one.length;
    else if (Array.isArray(one)) {
      if (one.length * UNITS_PER_VALUE > limit) return Number.POSITIVE_INFINITY;
      for (const item of one) open.push(item);
    } else if (typeof one === 'object' && one !== null) {
      for (const [name, item] of Object.entries(one)) {
        units += name.length;
        open.push(item);
      }
    }
  }
  return units;
}
