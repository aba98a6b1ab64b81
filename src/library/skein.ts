import type { IncomingMessage, ServerResponse } from 'node:http';
import { messageOf } from '../../base/error-text.js';
import type { IterationStats } from '../../callbacks/gpt-manager-options.js';
import { type FinishReason, HostClosedError, type TokenBeams } from '../../callbacks/token-request.js';
import type { ChatMessage } from '../../models/chat-template.js';
import { InvalidRequestError } from '../errors/request-errors.js';
import { type BadWord, badWordTokens } from '../generation/bad-words.js';
import { chatPrompt, hasParts, planOptions, type ReasoningOptions } from '../generation/chat-options.js';
import { type ChatPiece, CollectedCalls, chatPieces, type ToolCall } from '../generation/chat-pieces.js';
import { type ChatPlan, stopParser } from '../generation/chat-plan.js';
import { type DryBreaker, dryBreakerTokens } from '../generation/dry-breakers.js';
import { checkGuideEnds, type GuidedOptions, guideOf, leftOutWarning } from '../generation/guided.js';
import { withDefaults } from '../generation/sampling-defaults.js';
import {
  generateText,
  generateTexts,
  type SamplingOptions,
  type TextLogProb,
  type TextPiece,
  type TextRequest,
} from '../generation/text-generation.js';
import type { PromptTokens, TextModel } from '../generation/text-model.js';
import type { FunctionTool } from '../generation/tools/types.js';
import { localAdapter } from '../hub/local-model.js';
import { inPlainNames } from '../options/flag-names.js';
import type { ProgramApi } from '../server/app/program-api.js';
import type { FetchInput, FetchOptions } from '../server/app/program-request.js';
import { AdapterError } from '../serving/adapters/adapter-error.js';
import { type AdapterInfo, infoOf } from '../serving/adapters/adapter-info.js';
import { checkAdapterName } from '../serving/adapters/adapter-name.js';
import type { AdapterSet } from '../serving/adapters/model-adapters.js';
import { loadModel } from '../serving/load-model.js';
import type { ModelOptions } from '../serving/model-options.js';
import type { EngineCounts, ModelInfo, RunningModel } from '../serving/running-model.js';
import { warnOfContext, warnOfFallback, warnOfLeftOut, warnOfRemarks } from './loading-warnings.js';
import { checkLoadAdapter, type LoadAdapterOptions } from './options/adapter-options.js';
import { checkCloseOptions, checkGenerateOptions, checkSeveralOptions } from './options/generate-options.js';
import { checkModelOptions, withEmbeddedCache } from './options/model-options.js';
import { checkRanksOptions } from './ranks-check.js';
import { Tokenizer } from './tokenizer.js';

/** Options of one answer. One of prompt, messages and promptTokens is given. */
export interface GenerateOptions extends SamplingOptions {
  /** Text to continue. */
  prompt?: string | undefined;
  /** A conversation to answer, through the model's chat template. */
  messages?: readonly ChatMessage[] | undefined;
  /** Token ids of the prompt, taken as they are. */
  promptTokens?: PromptTokens | undefined;
  /**
   * Embeddings of the model's hidden size, one Float32Array each: the id `vocabulary + i` in promptTokens stands for
   * entry i (prompt tuning). Such ids are never generated.
   */
  promptEmbeddings?: readonly Float32Array[] | undefined;
  /** Position of each prompt token; the answer counts on from the last. Default 0, 1, 2, ... */
  positionIds?: Int32Array | readonly number[] | undefined;
  /** Most tokens of the answer. Default: what the context leaves, at most max_new_tokens of the model's generation_config.json, else DEFAULT_MAX_TOKENS. */
  maxTokens?: number | undefined;
  /** Fewest tokens of the answer: end tokens and stop tokens are not drawn before. Default 0. */
  minTokens?: number | undefined;
  /** Texts that end the answer; they are not part of it. */
  stop?: string | readonly string[] | undefined;
  /** Token ids that end the answer; their text is part of it only with includeStop. */
  stopTokens?: readonly number[] | undefined;
  /** Texts, or sequences of tokens, that are not generated. */
  badWords?: readonly BadWord[] | undefined;
  /** Texts, or sequences of tokens, over which DRY sees no repetition. Default: a new line, a colon, a quote, an asterisk. */
  dryBreakers?: readonly DryBreaker[] | undefined;
  /** Keeps the stop string or stop token in the answer. Default false. */
  includeStop?: boolean | undefined;
  /** Continues past the model's own end tokens. Default false. */
  ignoreEos?: boolean | undefined;
  /** Leaves special tokens out of the text. Default true. */
  skipSpecialTokens?: boolean | undefined;
  /**
   * Log-probs of the answer's tokens. Default: none; 0: those of the drawn tokens; n: those of the n most probable
   * tokens too.
   */
  logProbs?: number | undefined;
  /** Returns raw logits of each token of the answer, in the piece that has the token. */
  returnGenerationLogits?: boolean | undefined;
  /** Returns raw logits of each token of the prompt, in the first piece. The whole prompt is computed for them. */
  returnContextLogits?: boolean | undefined;
  /**
   * Log-probs of the prompt's tokens, in the first piece. Default: none; 0: those of the tokens themselves; n: those of
   * the n most probable tokens too.
   */
  contextLogProbs?: number | undefined;
  /** Most tokens of a draft that the engine makes for the answer; 0: none. Default: ModelOptions.maxDraftTokens. */
  maxDraftLen?: number | undefined;
  /** Name of a logits post-processor of the module given as logitsPostProcessorModule. */
  logitsPostProcessor?: string | undefined;
  /** Form that the answer must have: JSON of a schema, a regular expression, a choice, a grammar, tags. */
  guided?: GuidedOptions | undefined;
  /** Client id that post-processors get. */
  clientId?: bigint | undefined;
  /** Priority from 0 to 1, higher first; default 0.5. */
  priority?: number | undefined;
  /** Name of the client, by which ModelOptions.fairQueueing and maxQueuedRequestsPerKey tell requests apart. */
  queueKey?: string | undefined;
  /** Weight of the request's key beside others, with fairQueueing; above 0, default 1. */
  queueWeight?: number | undefined;
  /** Salt of the cache: requests of different salts share no blocks. 0 to 2^64 - 1. */
  cacheSalt?: bigint | undefined;
  /** Name of the LoRA adapter by which the model answers; see ModelOptions.adapters. Default: none. */
  adapter?: string | undefined;
  /** Ends the prompt with the header of an answer; only with messages. Default true. */
  addGenerationPrompt?: boolean | undefined;
  /** Continues the last message instead of answering it; only with messages. */
  continueFinalMessage?: boolean | undefined;
  /** Further variables of the chat template; only with messages. */
  templateVariables?: Readonly<Record<string, unknown>> | undefined;
  /** Functions that the model may call; only with messages. A call is told in `toolCalls` of the piece or the completion. */
  tools?: readonly FunctionTool[] | undefined;
  /** Whether functions are called: as the model likes ('auto', the default), never, at least one, or a certain one. */
  toolChoice?: 'none' | 'auto' | 'required' | { name: string } | undefined;
  /** Allows several calls in one answer. Default true. */
  parallelToolCalls?: boolean | undefined;
  /**
   * Tells the model's reasoning apart from its answer, in `reasoning` of the piece or the completion; false asks the model not to reason, as
   * far as its chat template knows how. Only with messages. Default: with tools or a guide, whose form is the text's, as true, else reasoning
   * is part of the text.
   */
  reasoning?: boolean | ReasoningOptions | undefined;
  /** Milliseconds, waiting included, after which the answer ends with what it has and the finish reason 'timeout'. */
  timeLimitMs?: number | undefined;
  /**
   * Signal whose abort ends the request in any state. `complete` then rejects with the signal's reason, as fetch does.
   */
  signal?: AbortSignal | undefined;
}

/** A whole answer. */
export interface Completion {
  text: string;
  tokens: number[];
  logProbs: TextLogProb[];
  finishReason: Exclude<FinishReason, 'cancelled'>;
  /** The stop string or stop token that ended the answer, else null. */
  stopReason: string | number | null;
  /** Number of prompt tokens. */
  promptTokens: number;
  /** The model's reasoning; absent: there is none, or it is part of the text: see GenerateOptions.reasoning. */
  reasoning?: string;
  /** Calls of functions; absent: there are none. */
  toolCalls?: readonly ToolCall[];
  /** What was changed about the functions, so that the model's chat template took them, and what of a schema is not followed; absent: nothing. */
  warnings?: readonly string[];
  /** Sum of a beam's log-probs, that of an end token included; only where beams were asked for. */
  cumLogProb?: number;
}

/** Options of several answers to one prompt. */
export interface SeveralOptions extends GenerateOptions {
  /** Number of answers; default 1, with beams as many as there are. */
  n?: number | undefined;
  /** Number of answers to draw, of which the n with the greatest mean log-prob are returned; default n. */
  bestOf?: number | undefined;
  /** Beam search instead of drawing; needs ModelOptions.maxBeamWidth. */
  beams?: TokenBeams | undefined;
}

/** How an answer is read. */
type AnswerPlan = Pick<ChatPlan, 'createParser' | 'callIds' | 'warnings'>;

/** Most tokens of an answer whose request names no limit. */
export const DEFAULT_MAX_TOKENS = 1024;

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
   * Loads a model. At the first load it is built into the cache. Where another executor than the fastest computes, a
   * process warning says so once; `info.executorFallback` has the same sentence. So it is with settings of sampling that the model
   * recommends and that no request could have (`info.samplingLeftOut`), with a context that the KV cache cuts short
   * (`info.loweredContext`), and with what is computed otherwise than the model's files say (`info.remarks`).
   * @throws ParameterError for an option that is unknown or out of range; CheckpointError, EngineError, AddonError. The
   * message says in one sentence what is wrong.
   */
  static async load(options: ModelOptions): Promise<Skein> {
    checkModelOptions(options);
    checkRanksOptions(options);
    const loaded = await loadModel(withEmbeddedCache(options)).catch((error: unknown) => {
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

  /** Forgets a LoRA adapter; its requests in flight go on. @throws AdapterError where there is none of this name. */
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
    const { request, plan } = await this.#asked(options);
    const pieces = generateText(model, withDefaults(model.sampling, request));
    yield* plan === null ? pieces : chatPieces(pieces, plan);
  }

  /**
   * Generates a whole answer. A request that is cut off rejects: with the signal's reason (an AbortError, unless
   * another was given) when the signal was aborted, with a HostClosedError when the engine was closed meanwhile.
   * @throws InvalidRequestError, QueueFullError, RequestError, HostClosedError.
   */
  async complete(options: GenerateOptions): Promise<Completion> {
    checkGenerateOptions('complete', options);
    const model = this.#modelOf(options);
    const { request, plan } = await this.#asked(options);
    const pieces = generateText(model, withDefaults(model.sampling, request));
    return whole(pieces, request.promptTokens.length, plan, options.signal);
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
    const { request, plan } = await this.#asked(rest);
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
    const best = (ranks ? answers.toSorted(byMeanLogProb) : answers).slice(0, n);
    return ranks && rest.logProbs === undefined ? best.map((one) => ({ ...one, logProbs: [] })) : best;
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
    this.#api ??= import('../server/app/program-api.js').then(
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

  /** The engine's request, and how its answer is read; null: as it is. */
  async #asked(options: GenerateOptions): Promise<{ request: TextRequest; plan: AnswerPlan | null }> {
    checkOnePrompt(options);
    const { model } = this.#loaded;
    const { messages } = options;
    if (!hasParts(options, model.codec)) {
      if (messages === undefined) {
        const warnings: string[] = [];
        const warn = (leftOut: readonly string[]) => warnings.push(leftOutWarning(leftOut));
        const request = await this.#request(options, await this.#promptTokens(options), warn);
        const plan = { createParser: null, callIds: 'openai', warnings } as const;
        return { request, plan: warnings.length > 0 ? plan : null };
      }
      const { promptTokens, reasoning } = await chatPrompt(model, messages, options);
      const request = await this.#request(options, promptTokens);
      // Reasoning is part of the text, and no part of the answer that a stop string ends.
      request.createParser = stopParser(reasoning);
      return { request, plan: null };
    }
    const { plan, fields } = await planOptions(model, options);
    const { guided: _, ...others } = options;
    const request = await this.#request(others, fields.promptTokens);
    return {
      request: { ...request, ...fields, guideParam: options.guided === undefined ? 'tools' : 'guided' },
      plan,
    };
  }

  async #request(
    options: GenerateOptions,
    promptTokens: PromptTokens,
    warn?: (leftOut: readonly string[]) => void,
  ): Promise<TextRequest> {
    const { model } = this.#loaded;
    const {
      prompt,
      messages,
      stop,
      maxTokens,
      badWords,
      dryBreakers,
      guided,
      adapter: _,
      ...others
    } = options;
    const { tools: _t, toolChoice: _c, parallelToolCalls: _p, reasoning: _r, ...rest } = others;
    if (guided !== undefined) checkGuideEnds(options.ignoreEos ?? false, 'guided');
    const room = Math.max(1, model.maxSeqLen - promptTokens.length);
    return {
      ...rest,
      promptTokens,
      promptParam: prompt !== undefined ? 'prompt' : messages !== undefined ? 'messages' : 'promptTokens',
      maxTokens: maxTokens ?? Math.min(room, model.sampling?.maxTokens ?? DEFAULT_MAX_TOKENS),
      ...(guided === undefined ? {} : { guide: await guideOf(guided, 'guided', model.codec, warn) }),
      stop: typeof stop === 'string' ? [stop] : stop,
      badWords: badWords && (await badWordTokens(model.codec, badWords)),
      ...(options.dryMultiplier
        ? { dryBreakers: await dryBreakerTokens(model.codec, model.vocabSize, dryBreakers) }
        : {}),
    };
  }

  /** Tokens of a prompt without messages. */
  async #promptTokens({ prompt, promptTokens = [] }: GenerateOptions): Promise<PromptTokens> {
    return prompt === undefined ? promptTokens : this.#loaded.model.codec.encodeText(prompt);
  }
}

function checkOnePrompt({ prompt, messages, promptTokens }: GenerateOptions): void {
  if ([prompt, messages, promptTokens].filter((one) => one !== undefined).length === 1) return;
  throw new InvalidRequestError('Give one of prompt, messages and promptTokens.', 'prompt');
}

/** Collects an answer; see Skein.complete for what it throws. */
async function whole(
  generated: AsyncIterable<TextPiece>,
  promptTokens: number,
  plan: AnswerPlan | null,
  signal: AbortSignal | undefined,
): Promise<Completion> {
  const texts: string[] = [];
  const tokens: number[] = [];
  const logProbs: TextLogProb[] = [];
  const reasoning: string[] = [];
  const calls = new CollectedCalls();
  let last: ChatPiece | null = null;
  const pieces: AsyncIterable<ChatPiece> = plan === null ? generated : chatPieces(generated, plan);
  for await (const piece of pieces) {
    texts.push(piece.text);
    for (const token of piece.tokens) tokens.push(token);
    for (const logProb of piece.logProbs) logProbs.push(logProb);
    if (piece.reasoning !== undefined) reasoning.push(piece.reasoning);
    calls.add(piece.toolCalls ?? []);
    last = piece;
  }
  const finishReason: FinishReason = last?.finishReason ?? 'cancelled';
  if (finishReason === 'cancelled') {
    signal?.throwIfAborted();
    throw new HostClosedError('The engine was closed before this answer was complete.');
  }
  return {
    text: texts.join(''),
    tokens,
    logProbs,
    finishReason,
    stopReason: last!.stopReason,
    promptTokens,
    ...(reasoning.length === 0 ? {} : { reasoning: reasoning.join('') }),
    ...(calls.list.length === 0 ? {} : { toolCalls: calls.list }),
    ...(plan === null || plan.warnings.length === 0 ? {} : { warnings: plan.warnings }),
    ...(last!.cumLogProb === undefined ? {} : { cumLogProb: last!.cumLogProb }),
  };
}

/** Sorts by mean log-prob, the greatest first; an answer without tokens comes last. */
function byMeanLogProb(a: Completion, b: Completion): number {
  const mean = ({ logProbs }: Completion) =>
    logProbs.length === 0
      ? Number.NEGATIVE_INFINITY
      : logProbs.reduce((sum, { logProb }) => sum + logProb, 0) / logProbs.length;
  return mean(a) === mean(b) ? 0 : mean(b) - mean(a);
}
