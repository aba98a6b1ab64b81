import { SkeinError } from '../../base/skein-error.js';
import {
  type ChatMessage,
  type ChatTemplate,
  ChatTemplateError,
  forAnotherThread,
  type RenderOptions,
} from '../chat-template.js';
import {
  HelperBusyError,
  HelperClosedError,
  HelperError,
  HelperLostError,
  HelperPool,
  HelperTimeError,
} from '../helper-pool.js';
import { jsonUnits, UNITS_PER_VALUE } from '../json-units.js';
import type { ChosenTemplates } from './named-templates.js';
import type { EncodeOptions, TextSegment, Tokenizer, TokenizerSourceFiles } from './tokenizer.js';
import { TokenizerError } from './tokenizer-json.js';

/** Source of a worker's tokenizer: a folder, which costs the main thread nothing, or a copy of the files. */
export type TokenizerSource =
  | { directory: string; templates?: ChosenTemplates }
  | { files: TokenizerSourceFiles & { chatTemplate?: string | null } };

export interface TokenizerPoolOptions {
  /**
   * Most threads; each is started when it is first needed. Default 1; with an unproven tokenizer 2, so that a text that
   * takes all of its time does not hold up the others.
   */
  workers?: number;
  /**
   * Texts longer than this many UTF-16 units go to a worker; all of them where the tokenizer is unproven. Default 2048:
   * some 3 ms of work for prose, more for one endless word. A chat's values count too, 32 units each, since a template
   * handles each of them.
   */
  threshold?: number;
  /** Most texts that wait or are being encoded at a time. Default 256. */
  maxJobs?: number;
  /**
   * Milliseconds that encoding one text may take. Default 60,000; with an unproven tokenizer, whose short texts wait
   * for each other in the workers, 2,000 and as much again for each 16,384 units of the text, up to 60,000.
   */
  timeLimitMs?: number;
}

/** An error for a pool that was closed before the text was encoded: its model is no longer served. */
export class TokenizerClosedError extends TokenizerError {
  override name = 'TokenizerClosedError';
  override readonly code = 'SKEIN_TOKENIZER_CLOSED';
}

/** An error for more long texts at a time than the pool takes: the caller may try again later. */
export class TokenizerBusyError extends SkeinError {
  override name = 'TokenizerBusyError';
  override readonly code = 'SKEIN_TOKENIZER_BUSY';
}

/** An error for a prompt that took longer to make than it may. The request, or the template, is at fault. */
export class PromptTimeError extends SkeinError {
  override name = 'PromptTimeError';
  override readonly code = 'SKEIN_PROMPT_TIME';
}

/** An error for a rendered chat that is longer than it may be; it was not encoded. */
export class PromptUnitsError extends SkeinError {
  override name = 'PromptUnitsError';
  override readonly code = 'SKEIN_PROMPT_TOO_LONG';
  /** UTF-16 units of the text. */
  readonly units: number;

  constructor(units: number) {
    super(`The prompt has ${units} characters.`);
    this.units = units;
  }
}

export type TokenizerJob = { addSpecialTokens: boolean } & (
  | { segments: readonly TextSegment[] }
  | { texts: readonly string[]; allowSpecial: boolean }
  | { messages: readonly ChatMessage[]; render: RenderOptions; maxUnits: number }
);

/** Tokens of several texts, one after the other; those of text i end before ends[i]. */
export interface PackedTokens {
  tokens: Int32Array;
  ends: Int32Array;
}

/** Tokens of one text, or packed tokens of several. */
export type TokenizerResult = Int32Array | PackedTokens;

/** Options of encoding. `signal`: once aborted, a waiting text is dropped, and its promise rejects with the reason. */
export interface PoolEncodeOptions {
  addSpecialTokens?: boolean;
  signal?: AbortSignal | undefined;
}

/**
 * Memory limits of a worker. For a Unigram model's endless word the library pushes all pieces at once, which takes
 * eight bytes of stack each.
 */
const WORKER_LIMITS = { maxOldGenerationSizeMb: 2048, stackSizeMb: 64 };
const MAX_TIME_MS = 60_000;
/** Milliseconds that an unproven tokenizer may take for a number of units. */
const UNPROVEN_TIME_MS = 2000;
const UNPROVEN_TIME_UNITS = 16_384;
/** Number of units for which a job lets later ones go first for a millisecond: a long text waits some seconds. */
const UNITS_PER_PATIENCE_MS = 50;
/** Units of several texts that make one job: between two jobs the texts of others have their turn. */
const UNITS_PER_JOB = 2 ** 18;
/** Most steps of a template in the calling thread; a longer rendering starts again in a worker. */
const MAX_STEPS_HERE = 20_000;

/**
 * Encodes short texts and chats at once and long ones in worker threads, so that the thread that serves HTTP is never busy
 * with one prompt for long. The token ids are the same either way.
 */
export class TokenizerPool {
  readonly #tokenizer: Tokenizer;
  readonly #threshold: number;
  /** Most units of a text that is encoded in the calling thread. */
  readonly #encodesHere: number;
  readonly #helpers: HelperPool<TokenizerJob, TokenizerResult>;

  constructor(tokenizer: Tokenizer, source: TokenizerSource, options: TokenizerPoolOptions = {}) {
    const { threshold = 2048, maxJobs, timeLimitMs } = options;
    const { workers = tokenizer.unproven === null ? 1 : 2 } = options;
    this.#tokenizer = tokenizer;
    // -1 is below every length: normalizing could turn even an empty text into another, and run a pattern on it.
    this.#encodesHere = tokenizer.unproven === null ? threshold : -1;
    this.#threshold = threshold;
    const script = new URL('./tokenizer-worker.js', import.meta.url);
    const limit = timeLimitMs ?? (tokenizer.unproven === null ? MAX_TIME_MS : unprovenTime);
    this.#helpers = new HelperPool({
      ...{ script, workerData: source, workers, maxJobs },
      timeLimitMs: limit,
      patienceMs: (job) => unitsOfJob(job) / UNITS_PER_PATIENCE_MS,
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
    return this.#runOne({ segments, addSpecialTokens }, signal);
  }

  /**
   * Tokens of several texts, each as `encode` gives them. Their total length decides where they are encoded: many short
   * texts are as much work as a long one.
   * @throws TokenizerBusyError when too many long texts are waiting, PromptTimeError.
   */
  async encodeTexts(
    texts: readonly string[],
    options: EncodeOptions & PoolEncodeOptions = {},
  ): Promise<Int32Array[]> {
    const { addSpecialTokens = true, allowSpecial = true, signal } = options;
    if (jsonUnits(texts, this.#threshold) <= this.#encodesHere) {
      return texts.map((text) => this.#tokenizer.encode(text, { addSpecialTokens, allowSpecial }));
    }
    const encoded: Int32Array[] = [];
    for (const group of groupsOf(texts)) {
      const packed = await this.#run({ texts: group, addSpecialTokens, allowSpecial }, signal);
      encoded.push(...unpacked(packed as PackedTokens));
    }
    return encoded;
  }

  /**
   * Tokens of a chat as the template renders it.
   * @param template the source's template, for chats that are rendered here.
   * @param options `maxUnits`: most UTF-16 units of a rendered text; a longer one is not encoded.
   * @throws ChatTemplateError; TokenizerBusyError when too many long texts are waiting; PromptTimeError;
   * PromptUnitsError.
   */
  async encodeChat(
    template: ChatTemplate,
    messages: readonly ChatMessage[],
    render: RenderOptions,
    options: PoolEncodeOptions & { maxUnits?: number } = {},
  ): Promise<Int32Array> {
    const { addSpecialTokens = false, signal, maxUnits = Number.POSITIVE_INFINITY } = options;
    if (jsonUnits([messages, render], this.#threshold) <= this.#threshold) {
      const rendered = template.renderWithin(MAX_STEPS_HERE, messages, render);
      if (rendered !== null) {
        return this.encodeRendered(rendered.segments, options);
      }
    }
    return this.#runOne({ messages, render: forAnotherThread(render), maxUnits, addSpecialTokens }, signal);
  }

  /**
   * Tokens of a chat that has been rendered. @throws as encodeChat.
   */
  async encodeRendered(
    segments: readonly TextSegment[],
    options: PoolEncodeOptions & { maxUnits?: number } = {},
  ): Promise<Int32Array> {
    const units = lengthOf(segments);
    if (units > (options.maxUnits ?? Number.POSITIVE_INFINITY)) throw new PromptUnitsError(units);
    return this.encodeSegments(segments, options);
  }

  /** Number of long texts that wait or are being encoded. */
  get jobs(): number {
    return this.#helpers.jobs;
  }

  /** Fails all texts that wait or are being encoded, and ends the threads. */
  close(): Promise<void> {
    return this.#helpers.close();
  }

  async #runOne(job: TokenizerJob, signal: AbortSignal | undefined): Promise<Int32Array> {
    return (await this.#run(job, signal)) as Int32Array;
  }

  async #run(job: TokenizerJob, signal: AbortSignal | undefined): Promise<TokenizerResult> {
    try {
      return await this.#helpers.run(job, signal);
    } catch (error) {
      throw inTokenizersWords(error);
    }
  }
}

function unprovenTime(job: TokenizerJob): number {
  const units = unitsOfJob(job);
  return Math.min(MAX_TIME_MS, UNPROVEN_TIME_MS * (1 + units / UNPROVEN_TIME_UNITS));
}

function unitsOfJob(job: TokenizerJob): number {
  if ('segments' in job) return lengthOf(job.segments);
  return jsonUnits('texts' in job ? job.texts : [job.messages, job.render], Number.POSITIVE_INFINITY);
}

function lengthOf(segments: readonly TextSegment[]): number {
  return segments.reduce((sum, { text }) => sum + text.length, 0);
}

/** Groups of texts, in order, each as large as a job may be; a longer text is a job by itself. */
function groupsOf(texts: readonly string[]): string[][] {
  const groups: string[][] = [];
  let units = Number.POSITIVE_INFINITY;
  for (const text of texts) {
    units += text.length + UNITS_PER_VALUE;
    if (units > UNITS_PER_JOB) {
      groups.push([]);
      units = text.length + UNITS_PER_VALUE;
    }
    groups.at(-1)!.push(text);
  }
  return groups;
}

/** Packs tokens to cross threads: two arrays, however many texts there are. */
export function packed(encoded: readonly Int32Array[]): PackedTokens {
  const tokens = new Int32Array(encoded.reduce((sum, { length }) => sum + length, 0));
  const ends = new Int32Array(encoded.length);
  let end = 0;
  for (const [i, one] of encoded.entries()) {
    tokens.set(one, end);
    end += one.length;
    ends[i] = end;
  }
  return { tokens, ends };
}

/** Unpacks tokens into an array for each text: views would keep the tokens of all. */
function unpacked({ tokens, ends }: PackedTokens): Int32Array[] {
  return Array.from(ends, (end, i) => tokens.slice(i === 0 ? 0 : ends[i - 1]!, end));
}

function inTokenizersWords(error: unknown): unknown {
  if (error instanceof HelperBusyError) {
    return new TokenizerBusyError('Too many long texts are being tokenized; try again later.');
  }
  if (error instanceof HelperTimeError) {
    return new PromptTimeError(`The prompt could not be made in time. ${error.message}`);
  }
  if (error instanceof HelperClosedError) return new TokenizerClosedError(error.message, { cause: error });
  if (error instanceof HelperLostError) return new TokenizerError(error.message, { cause: error });
  if (!(error instanceof HelperError)) return error;
  const { code, held } = error.failure;
  if (code === 'SKEIN_PROMPT_TOO_LONG') return new PromptUnitsError(Number(held.units));
  if (code === 'SKEIN_CHAT_TEMPLATE') return ChatTemplateError.of(error.failure);
  return new TokenizerError(error.message, { cause: error });
}
