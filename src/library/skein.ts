import type { IncomingMessage, ServerResponse } from 'node:http';
import { messageOf } from '../../base/error-text.js';
import type { IterationStats } from '../../callbacks/gpt-manager-options.js';
import { InvalidRequestError } from '../errors/request-errors.js';
import { bestFirst } from '../generation/best-first.js';
import { type ChatPiece, chatPieces } from '../generation/chat-pieces.js';
import { withDefaults } from '../generation/sampling-defaults.js';
import { generateText, generateTexts } from '../generation/text-generation.js';
import type { PromptTokens, TextModel } from '../generation/text-model.js';
import { localAdapter } from '../hub/local-model.js';
import { inPlainNames } from '../options/flag-names.js';
import type { ProgramApi } from '../server/app/program/program-api.js';
import type { FetchInput, FetchOptions } from '../server/app/program/program-request.js';
import { AdapterError } from '../serving/adapters/adapter-error.js';
import { type AdapterInfo, infoOf } from '../serving/adapters/adapter-info.js';
import { checkAdapterName } from '../serving/adapters/adapter-name.js';
import type { AdapterSet } from '../serving/adapters/model-adapters.js';
import { loadModel } from '../serving/load-model.js';
import type { ModelOptions } from '../serving/model-options.js';
import type { EngineCounts, ModelInfo, RunningModel } from '../serving/running-model.js';
import { type Completion, type GenerateOptions, type SeveralOptions, whole } from './answers.js';
import { askedRequest } from './asked-request.js';
import { AnsweringModel } from './chat/answering-model.js';
import type { ChatSession } from './chat/chat-session.js';
import type { ChatSessionOptions } from './chat/chat-types.js';
import { completeMany, type ManyOptions, type ManyResult } from './complete-many.js';
import { warnOfContext, warnOfFallback, warnOfLeftOut, warnOfRemarks } from './loading-warnings.js';
import { checkLoadAdapter, type LoadAdapterOptions } from './options/adapter-options.js';
import {
  checkCloseOptions,
  checkGenerateOptions,
  checkManyOptions,
  checkSeveralOptions,
} from './options/generate-options.js';
import { checkModelOptions, withEmbeddedDefaults } from './options/model-options.js';
import { checkRanksOptions } from './ranks-check.js';
import { Tokenizer } from './tokenizer.js';

/**
 * A model in this process: text in, text out, many requests in flight at once.
 *
 *   const skein = await Skein.load({ model: './smollm2' });
 *   for await (const piece of skein.generate({ prompt: 'Once upon a time' })) process.stdout.write(piece.text);
 *   await skein.close();
 */
export class Skein {
  readonly #loaded: RunningModel<'generator'>;
  readonly #options: ModelOptions;
  #api: Promise<ProgramApi> | null = null;
  #listen: ((incoming: IncomingMessage, outgoing: ServerResponse) => Promise<unknown>) | null = null;

  private constructor(loaded: RunningModel<'generator'>, options: ModelOptions) {
    this.#loaded = loaded;
    this.#options = options;
  }

  /**
   * Loads a model. At the first load it is built into the cache. Where another executor than the fastest
   * computes, a process warning says so once; `info.executorFallback` has the same sentence. So it is with
   * settings of sampling that the model recommends and that no request could have (`info.samplingLeftOut`),
   * with a context that the KV cache cuts short (`info.loweredContext`), and with what is computed
   * differently from what the model's files say (`info.remarks`).
   * @throws ParameterError for an option that is unknown or out of range; CheckpointError, EngineError, AddonError. The
   * message says in one sentence what is wrong.
   */
  static async load(options: ModelOptions): Promise<Skein> {
    checkModelOptions(options);
    checkRanksOptions(options);
    const loaded = await loadModel(withEmbeddedDefaults(options)).catch((error: unknown) => {
      throw inPlainNames(error);
    });
    warnOfFallback(loaded.info);
    warnOfRemarks(loaded.info);
    warnOfContext(loaded.info);
    warnOfLeftOut(loaded.info);
    return new Skein(loaded, options);
  }

  /** The loaded model and how it runs. */
  get info(): ModelInfo {
    return this.#loaded.info;
  }

  /** Requests running and waiting right now, and the KV cache blocks that they hold. */
  get counts(): EngineCounts {
    return this.#loaded.statistics.counts();
  }

  /** Calls the listener after each iteration, until the function that it returns is called. */
  onStats(listener: (stats: IterationStats) => void): () => void {
    return this.#loaded.statistics.onStats(listener);
  }

  /** LoRA adapters by which the model answers too, in the order of their loading. */
  get adapters(): readonly AdapterInfo[] {
    return (this.#loaded.adapters?.list() ?? []).map(infoOf);
  }

  /**
   * Loads a LoRA adapter, in a thread of its own, while the model answers. Needs ModelOptions.adapters.
   * @param path as in ModelOptions.adapters
   * @throws CheckpointError for files that are no adapter of this model; AdapterError for a name that is taken or where there is no room;
   * ParameterError for an unknown option
   */
  async loadAdapter(name: string, path: string, options: LoadAdapterOptions = {}): Promise<AdapterInfo> {
    const adapters = this.#adapters();
    checkAdapterName(name);
    checkLoadAdapter(path, options);
    const { replace, signal } = options;
    try {
      const local = await localAdapter(path, { signal });
      return infoOf(await adapters.load(name, local, { replace, signal }));
    } catch (error) {
      throw inPlainNames(error);
    }
  }

  /**
   * Forgets a LoRA adapter; its requests in flight continue.
   * @throws AdapterError where no adapter has this name.
   */
  unloadAdapter(name: string): void {
    this.#adapters().unload(name);
  }

  #adapters(): AdapterSet {
    const { adapters } = this.#loaded;
    if (adapters !== null) return adapters;
    throw new AdapterError(
      'The model was loaded without LoRA adapters; Skein.load takes them with the option adapters ({}: none at first).',
      'none',
    );
  }

  /** The model, or the same with the adapter of a request. @throws InvalidRequestError */
  #modelOf({ adapter }: Pick<GenerateOptions, 'adapter'>): TextModel {
    if (adapter === undefined) return this.#loaded.model;
    try {
      return this.#adapters().get(adapter).model;
    } catch (error) {
      throw error instanceof AdapterError ? new InvalidRequestError(messageOf(error), 'adapter') : error;
    }
  }

  /** The model's tokenizer and chat template. */
  get tokenizer(): Tokenizer {
    return Tokenizer.of(this.#loaded.model.codec);
  }

  /** Token ids of a text, as a prompt has them, special tokens included. */
  async encode(text: string): Promise<PromptTokens> {
    return this.#loaded.model.codec.encodeText(text);
  }

  /**
   * Generates piece by piece. Leaving the loop, or aborting the signal, ends the request and frees its memory. The last
   * piece of a request that was aborted, or cut off by `close`, has the finish reason 'cancelled'.
   * @throws InvalidRequestError, QueueFullError, RequestError.
   */
  async *generate(options: GenerateOptions): AsyncGenerator<ChatPiece, void, undefined> {
    checkGenerateOptions('generate', options);
    const model = this.#modelOf(options);
    const { request, plan } = await askedRequest(this.#loaded.model, options);
    const pieces = generateText(model, withDefaults(model.sampling, request));
    let isFirst = true;
    for await (const piece of plan === null ? pieces : chatPieces(pieces, plan)) {
      yield isFirst ? { ...piece, promptTokens: request.promptTokens.length } : piece;
      isFirst = false;
    }
  }

  /**
   * Generates a whole answer. A request that is cut off rejects: with the signal's reason (an AbortError, unless
   * another was given) when the signal was aborted, with a HostClosedError when the engine was closed meanwhile.
   * @throws InvalidRequestError, QueueFullError, RequestError, HostClosedError.
   */
  async complete(options: GenerateOptions): Promise<Completion> {
    checkGenerateOptions('complete', options);
    const model = this.#modelOf(options);
    const { request, plan } = await askedRequest(this.#loaded.model, options);
    const pieces = generateText(model, withDefaults(model.sampling, request));
    return whole(pieces, request.promptTokens.length, plan, options.signal);
  }

  /**
   * Generates whole answers to many requests, such as those of a file: some at once (`maxInFlight`), with progress. They come in the order of
   * their requests; one that fails has its error in its place.
   * @throws InvalidRequestError for other options than these; the reason of the signal
   */
  async completeMany(requests: readonly GenerateOptions[], options: ManyOptions = {}): Promise<ManyResult[]> {
    checkManyOptions(requests, options);
    return completeMany((request) => this.complete(request), requests, options);
  }

  /**
   * Generates several whole answers to one prompt, which is computed once if the engine can hold all answers at once.
   * They come in order, or the best first where some are left out or beams were searched.
   * @throws as complete.
   */
  async completeSeveral(options: SeveralOptions): Promise<Completion[]> {
    const { n, bestOf, beams, ...rest } = checkSeveralOptions(options);
    const model = this.#modelOf(rest);
    const ranks = beams === undefined && bestOf > n;
    const { request, plan } = await askedRequest(this.#loaded.model, rest);
    if (beams !== undefined) request.beams = beams;
    if (ranks) request.logProbs ??= 0;
    const abort = new AbortController();
    request.signal = rest.signal === undefined ? abort.signal : AbortSignal.any([rest.signal, abort.signal]);
    const started = generateTexts(model, withDefaults(model.sampling, request), bestOf);
    const answers = await Promise.all(
      started.map((pieces) => whole(pieces, request.promptTokens.length, plan, rest.signal)),
    ).catch((error: unknown) => {
      abort.abort();
      throw error;
    });
    const best = (ranks ? bestFirst(answers, ({ logProbs }) => logProbs) : answers).slice(0, n);
    return ranks && rest.logProbs === undefined ? best.map((one) => ({ ...one, logProbs: [] })) : best;
  }

  /**
   * Begins a chat: a conversation that is kept, with functions that are run, objects of a schema and streams
   * of events. `saved` continues a saved one.
   * @throws InvalidRequestError for options, tools or messages that are wrong
   */
  async chat(options: ChatSessionOptions = {}): Promise<ChatSession> {
    // Programs without chats do not load the schemas.
    const { beginChat } = await import('./chat/begin-chat.js');
    const { model, info } = this.#loaded;
    return beginChat(new AnsweringModel(info.name, model, (asked) => this.#modelOf(asked)), options);
  }

  /**
   * Answers a request to the HTTP API of `skein serve`: OpenAI's routes, Anthropic's and Ollama's, with its errors, limits and streams. The
   * program has the sockets, and decides who may ask. The model's name is `info.name`. May be handed on alone: it needs no `this`.
   * Takes what the global fetch takes, so clients can have it in its place: no socket is opened, and of an address only its path counts.
   *
   *   new OpenAI({ apiKey: 'none', baseURL: 'http://localhost/v1', fetch: skein.fetch });
   *   hono.mount('/llm', skein.fetch);
   *   export const POST = (request: Request) => skein.fetch(request, { basePath: '/llm' });    // Next.js: app/llm/[...path]/route.ts
   */
  readonly fetch = async (input: FetchInput, options: FetchOptions = {}): Promise<Response> => {
    this.#api ??= import('../server/app/program/program-api.js').then(
      ({ ProgramApi }) => new ProgramApi(this.#loaded, this.#options),
    );
    return (await this.#api).fetch(input, options);
  };

  /**
   * The same as a listener of Node's http servers: `app.use('/llm', skein.listener)` in Express, in front of whatever reads bodies
   * (`express.json()`).
   */
  readonly listener = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const { getRequestListener } = await import('@hono/node-server');
    this.#listen ??= getRequestListener((request) => this.fetch(request), {
      overrideGlobalObjects: false,
      hostname: 'localhost',
    });
    await this.#listen(incoming, outgoing);
  };

  /**
   * Forgets every block of the KV cache that later prompts could reuse, and resolves with the number of these blocks.
   * Running requests keep their blocks, but later prompts do not find them.
   */
  resetCache(): Promise<number> {
    return this.#loaded.resetCache();
  }

  /** Lets active requests end, then frees the engine; with `abort` they are cancelled. */
  async close(options: { abort?: boolean } = {}): Promise<void> {
    checkCloseOptions(options);
    await (await this.#api)?.close();
    await this.#loaded.close(options);
  }

  /** The same as `close()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
