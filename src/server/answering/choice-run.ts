import { setImmediate as nextTurn } from 'node:timers/promises';
import type { AnswerCost } from '../../../callbacks/infer/answer-tally.js';
import type { PieceSource } from '../../../callbacks/piece-source.js';
import { REQUEST_FIELDS } from '../../../callbacks/request/fields.js';
import { drawSeed } from '../../../callbacks/sampling-params.js';
import { SharedTensors } from '../../../callbacks/shared-tensors.js';
import { answerMemory } from '../../generation/answer-memory.js';
import { bestFirst } from '../../generation/best-first.js';
import { type AskedRequest, seenRequest } from '../../generation/pictures/seen-request.js';
import type { PromptLogProbList } from '../../generation/returned-logits.js';
import { withDefaults } from '../../generation/sampling-defaults.js';
import { generateTexts, type TextPiece, type TextRequest } from '../../generation/text-generation.js';
import { engineName } from '../../serving/adapters/served-adapters.js';
import type { ObserveRequest, RequestObserver } from '../../serving/request-observer.js';
import { enginesOf, type ServedGenerator } from '../../serving/served-model.js';
import { termFields } from '../../serving/texts/term-fields.js';
import { cacheSaltFor } from '../web/access/cache-salt.js';
import { ApiError, cutOff } from '../web/errors.js';
import { STREAM_BYTES } from '../web/memory/memory-estimates.js';
import type { LiveRequest } from '../web/request-registry.js';
import type { RequestTerms } from '../web/request-terms.js';
import { TurnShare } from './turn-share.js';

/** Numbers of answers to each prompt. */
export interface ChoiceCounts {
  /** Number of answers returned. */
  n: number;
  /** Number of answers generated: where it is greater, the best n are returned. Beams come sorted by score. */
  bestOf: number;
}

export const ONE_ANSWER: ChoiceCounts = { n: 1, bestOf: 1 };

/** Number of tokens too small to count: those of one step, with a draft. */
const FEW_TOKENS = 16;
/** Tokens of a piece that is kept until the end. */
const MAX_KEPT_TOKENS = 256;
/** Factor of the priorities of requests of batches: below those of others, and as the batch has them among themselves. */
const BATCH_PRIORITY = 0.1;

interface Candidate {
  prompt: number;
  /** Index of the candidate among those of its prompt. */
  index: number;
  pieces: PieceSource<TextPiece>;
  observer: RequestObserver;
  /** Its engines, as they were last looked at; see PieceSource. */
  engines?: readonly string[];
  /** True once no more of it is reported. */
  isOver: boolean;
  /** Called when it is over. */
  onOver: () => void;
  /** What it has added to the numbers of the run. */
  completionTokens: number;
  cachedTokens: number;
}

const NOTHING_ADDED = { completionTokens: 0, cachedTokens: 0 };

/** What a run is started with. */
type Started = [
  model: ServedGenerator,
  requests: readonly AskedRequest[],
  counts: ChoiceCounts,
  observe: ObserveRequest,
  terms: RequestTerms,
  live: LiveRequest,
];

type OnPiece = (choice: number, piece: TextPiece) => void;

/**
 * Runs the choices of one HTTP request, which start and end together. Choice prompt * n + k is the k-th answer to
 * prompt `prompt`: its k-th sequence, or with best_of and beam search its k-th best.
 */
export class ChoiceRun {
  readonly #candidates: Candidate[] = [];
  readonly #abort = new AbortController();
  readonly #counts: ChoiceCounts;
  readonly #ranks: boolean;
  readonly #live: LiveRequest;
  #isCancelled = false;
  #keepsEnded = false;
  /** True while the reader of the answer lags. */
  #isBehind = false;
  readonly #share = new TurnShare({ onUsed: () => this.#hold(), onNext: () => this.#tell() });
  /** Index of the candidate that `resume` begins with. */
  #next = 0;
  readonly numChoices: number;
  /** Seed of the answers to each prompt. */
  readonly seeds: readonly bigint[];
  /** Log-probs of each prompt's tokens, once they have come, where they were asked for. */
  readonly promptLogProbs: (PromptLogProbList | null)[];
  readonly #requests: readonly TextRequest[];
  readonly #beginMs = performance.now();
  #firstMs: number | null = null;
  #lastMs = this.#beginMs;
  #completionTokens = 0;
  #cachedTokens = 0;
  #engines: readonly string[] | null = null;

  /**
   * Starts the choices of a request that its caller's limits allow: see the constructor. Pictures are decoded once they do.
   * @throws as it, and as seenRequest; ApiError where they do not
   */
  static async start(...[model, asked, counts, observe, terms, live]: Started): Promise<ChoiceRun> {
    const admission = await terms.admit?.(costOf(asked, counts), terms.tally);
    const admitted = admission === undefined ? terms : { ...terms, tally: admission.tally };
    try {
      const requests = await Promise.all(
        asked.map((one) => seenRequest(model, one, termFields(termsOf(terms), one))),
      );
      return new ChoiceRun(model, requests, counts, observe, admitted, live);
    } catch (error) {
      admission?.cancel();
      throw error;
    }
  }

  /**
   * Queues every choice, or none: a refusal of one cancels the others. `live` is released when all have ended.
   * @throws InvalidRequestError, QueueFullError; ApiError where there is no memory for all that they may say.
   */
  private constructor(
    model: ServedGenerator,
    requests: readonly TextRequest[],
    counts: ChoiceCounts,
    observe: ObserveRequest,
    terms: RequestTerms,
    live: LiveRequest,
  ) {
    this.#counts = counts;
    const { n, bestOf } = counts;
    this.numChoices = requests.length * n;
    this.seeds = requests.map(({ seed }) => (seed === undefined ? drawShortSeed() : BigInt(seed)));
    this.promptLogProbs = requests.map(() => null);
    this.#requests = requests;
    this.#ranks = requests.some(({ beams }) => beams === undefined) && bestOf > n;
    this.#live = live;
    checkEngine(model, terms.engine);
    terms.memory.addAnswer(answersMemory(model, requests, counts));
    const shared = new SharedTensors();
    try {
      for (const [prompt, request] of requests.entries()) {
        const asked: TextRequest = {
          ...withDefaults(model.sampling, request),
          ...termFields(termsOf(terms), request),
          ...(terms.isBatch
            ? { priority: BATCH_PRIORITY * (request.priority ?? REQUEST_FIELDS.priority.default) }
            : {}),
          // For an answer of no tokens one is generated and dropped, so that the prompt is computed.
          maxTokens: Math.max(1, request.maxTokens),
          seed: this.seeds[prompt]!,
          signal: this.#abort.signal,
          shared,
          trace: terms.trace,
        };
        if (this.#ranks) asked.logProbs = request.logProbs ?? 0;
        for (const [index, pieces] of generateTexts(model, asked, bestOf).entries()) {
          const { maxTokens } = request;
          const observer = observe({
            model: engineName(model),
            promptTokens: request.promptTokens.length,
            maxTokens,
            isGuided: request.guide !== undefined,
            ...(index === 0 ? { choices: n } : { sharesPrompt: true }),
            tally: terms.tally,
            ...tracedBy(terms, asked, n, model.state.ranks?.size),
          });
          this.#candidates.push({
            prompt,
            index,
            pieces,
            observer,
            isOver: false,
            onOver: () => {},
            ...NOTHING_ADDED,
          });
        }
      }
    } catch (error) {
      this.abort();
      throw error;
    } finally {
      shared.clear();
    }
    live.onCancel(() => this.#cancel());
  }

  /** Number of tokens of all prompts. */
  get numPromptTokens(): number {
    return this.#requests.reduce((sum, { promptTokens }) => sum + promptTokens.length, 0);
  }

  /** Milliseconds from the beginning to the first token. */
  get promptMs(): number {
    return (this.#firstMs ?? this.#lastMs) - this.#beginMs;
  }

  /** Milliseconds from the first token to the last so far. */
  get predictedMs(): number {
    return this.#lastMs - (this.#firstMs ?? this.#lastMs);
  }

  /** Number of tokens generated so far, by all candidates, returned or not. */
  get completionTokens(): number {
    return this.#completionTokens;
  }

  /**
   * Number of prompt tokens found in the cache so far. Each prompt counts once, by its first candidate that
   * reports it.
   */
  get cachedTokens(): number {
    return this.#cachedTokens;
  }

  /**
   * Part of the run waits for an engine elsewhere and may still be refused: nothing should be sent to a
   * client yet.
   */
  get isWaiting(): boolean {
    return this.#candidates.some(({ isOver, pieces }) => !isOver && pieces.isWaiting === true);
  }

  /** Fingerprints of the engines elsewhere that have answered so far, each once; null: none, or the model's own. */
  get engines(): readonly string[] | null {
    return this.#engines;
  }

  /** Adds the id of the answer, by which the request can be cancelled too. */
  addId(id: string): void {
    this.#live.addId(id);
  }

  /** Cancels the run: every choice ends with what it has, and its client receives that. */
  #cancel(): void {
    this.#isCancelled = true;
    this.#abort.abort();
  }

  /** Keeps choices that end before `abort`: something other than the client wants them. */
  keepEnded(): void {
    this.#keepsEnded = true;
  }

  /**
   * Ends every choice; the engine frees their blocks within one iteration. Gathered pieces are dropped:
   * writing the log-probs of a hundred sequences for a client that has left would delay others.
   */
  abort(): void {
    if (!this.#keepsEnded) for (const candidate of this.#candidates) this.#forget(candidate);
    this.#abort.abort();
    // No reader is waited for any more.
    this.resume();
  }

  #forget(candidate: Candidate): void {
    if (candidate.isOver) return;
    const { pieces, observer } = candidate;
    const { numGathered } = pieces;
    this.#completionTokens += numGathered;
    if (numGathered > 0) observer.onForgotten(numGathered);
    pieces.leave();
    observer.onEnd('abort');
    this.#end(candidate);
  }

  #end(candidate: Candidate): void {
    candidate.isOver = true;
    candidate.onOver();
  }

  /** Pauses for a slow reader: pieces gather until `resume`. */
  pause(): void {
    this.#isBehind = true;
    this.#hold();
  }

  resume(): void {
    this.#isBehind = false;
    this.#tell();
  }

  /** True while the run waits for its reader, or for the next turn of the event loop. */
  get #waits(): boolean {
    return this.#isBehind || this.#share.isUsed;
  }

  #hold(): void {
    for (const { pieces } of this.#candidates) pieces.pause();
  }

  /**
   * Reports gathered pieces, choice by choice, until there is a reason to wait; the next time begins with the choices
   * left out.
   */
  #tell(): void {
    const { length } = this.#candidates;
    for (let i = 0; i < length && !this.#waits; i++) {
      const next = this.#next;
      this.#next = (next + 1) % length;
      this.#candidates[next]!.pieces.resume();
    }
  }

  /**
   * Runs all choices to their ends. An error of one, or of `onPiece`, ends the others and is thrown when all are done.
   * Where the best are chosen, their pieces come when all have ended.
   * @param onPiece called in the iteration that made the piece: one call a piece, and no promise.
   * @param isWhole the client gets nothing before the end: with engines elsewhere, pieces come then, so that a choice can begin again
   * with another engine where its own is gone
   */
  async consume(onPiece: OnPiece, isWhole = false): Promise<void> {
    const { n, bestOf } = this.#counts;
    const mayRestart = this.#candidates.some(({ pieces }) => pieces.isWaiting !== undefined);
    if (bestOf === n && !(isWhole && mayRestart)) {
      await this.#listen(({ prompt, index }, piece) => onPiece(prompt * n + index, piece));
      return;
    }
    const kept = new Map<Candidate, TextPiece[]>(this.#candidates.map((candidate) => [candidate, []]));
    await this.#listen(
      (candidate, piece) => keep(kept.get(candidate)!, piece),
      (candidate) => kept.set(candidate, []),
    );
    if (this.#isForgotten) return;
    for (let prompt = 0; prompt * n < this.numChoices; prompt++) {
      const own = [...kept].filter(([candidate]) => candidate.prompt === prompt).map(([, pieces]) => pieces);
      const best = (this.#ranks ? bestFirst(own, logProbsOf) : own).slice(0, n);
      for (const [rank, pieces] of best.entries()) {
        for (const piece of pieces) onPiece(prompt * n + rank, piece);
        await nextTurn();
      }
    }
  }

  /** True where the client has left and nothing else wants the answer. */
  get #isForgotten(): boolean {
    return this.#abort.signal.aborted && !this.#isCancelled && !this.#keepsEnded;
  }

  /** @param onRestart called with a candidate that begins again; absent: none may */
  #listen(
    onPiece: (candidate: Candidate, piece: TextPiece) => void,
    onRestart?: (candidate: Candidate) => void,
  ): Promise<void> {
    return new Promise((resolve, reject) => {
      const failures: unknown[] = [];
      let running = this.#candidates.length;
      const onOver = () => {
        if (--running > 0) return;
        this.#live.release();
        if (failures.length === 0) resolve();
        else reject(failures[0]);
      };
      for (const candidate of this.#candidates) {
        if (candidate.isOver) {
          onOver();
          continue;
        }
        candidate.onOver = onOver;
        const { pieces, observer } = candidate;
        const fail = (error: unknown) => {
          failures.push(error);
          pieces.leave();
          observer.onEnd('error');
          this.#end(candidate);
          this.abort();
        };
        const take = (piece: TextPiece) => {
          try {
            this.#take(candidate, piece, onPiece);
          } catch (error) {
            fail(error);
            return;
          }
          if (piece.finishReason !== null && !candidate.isOver) this.#end(candidate);
        };
        const restart = () => {
          this.#withdraw(candidate);
          onRestart!(candidate);
        };
        const restarts = onRestart === undefined ? {} : { onRestart: restart };
        pieces.listen({ onPiece: take, onError: fail, ...restarts });
      }
    });
  }

  /** What has come of a candidate counts no more. */
  #withdraw(candidate: Candidate): void {
    this.#completionTokens -= candidate.completionTokens;
    this.#cachedTokens -= candidate.cachedTokens;
    Object.assign(candidate, NOTHING_ADDED);
    delete candidate.engines;
    const engines = new Set(this.#candidates.flatMap((one) => one.engines ?? []));
    this.#engines = engines.size === 0 ? null : [...engines];
  }

  #noteEngines(candidate: Candidate): void {
    const { engines } = candidate.pieces;
    if (engines === undefined || engines === candidate.engines) return;
    candidate.engines = engines;
    const known = this.#engines ?? [];
    if (engines.some((one) => !known.includes(one))) this.#engines = [...new Set([...known, ...engines])];
  }

  #take(
    candidate: Candidate,
    generated: TextPiece,
    onPiece: (candidate: Candidate, piece: TextPiece) => void,
  ): void {
    const { prompt, index, observer } = candidate;
    const piece = this.#requests[prompt]!.maxTokens > 0 ? generated : withoutTokens(generated);
    this.#noteEngines(candidate);
    if (piece.contextLogProbList !== undefined) this.promptLogProbs[prompt] = piece.contextLogProbList;
    this.#completionTokens += piece.tokens.length;
    candidate.completionTokens += piece.tokens.length;
    this.#lastMs = performance.now();
    if (piece.tokens.length > 0) this.#firstMs ??= this.#lastMs;
    if (piece.cachedTokens !== undefined) {
      observer.onCachedTokens(piece.cachedTokens);
      if (index === 0) {
        this.#cachedTokens += piece.cachedTokens;
        candidate.cachedTokens += piece.cachedTokens;
      }
    }
    if (piece.tokens.length > 0) observer.onTokens(piece.tokens.length);
    if (piece.finishReason === 'cancelled') {
      observer.onEnd('abort');
      // A client that left receives nothing; an end that was not requested is a server error.
      if (!this.#isCancelled && this.#abort.signal.aborted) return;
      if (!this.#isCancelled) throw cutOff();
    } else if (piece.finishReason !== null) observer.onEnd(piece.finishReason, piece.timing);
    this.#share.use(entriesOf(piece, this.#requests[prompt]!));
    onPiece(candidate, piece);
  }
}

/** Most tokens that the answers to prompts can take. */
function costOf(requests: readonly AskedRequest[], { bestOf }: ChoiceCounts): AnswerCost {
  const sumOf = (value: (request: AskedRequest) => number) =>
    requests.reduce((sum, request) => sum + value(request), 0);
  return {
    promptTokens: sumOf(({ promptTokens }) => promptTokens.length),
    outputTokens: bestOf * sumOf(({ maxTokens }) => maxTokens),
    answers: bestOf * requests.length,
  };
}

/**
 * Upper bound in bytes of the answers to prompts (the engine's requests and all their output) if none is read
 * before its end.
 */
function answersMemory(
  model: Pick<ServedGenerator, 'fitsTogether' | 'vocabSize'>,
  requests: readonly TextRequest[],
  { bestOf }: ChoiceCounts,
): number {
  return requests.reduce((sum, request) => sum + answerMemory(model, request, bestOf), STREAM_BYTES);
}

/** @throws ApiError, RequestError where the model has not the engine that the request names */
function checkEngine(model: ServedGenerator, engine: string | undefined): void {
  if (engine === undefined) return;
  // Workers may have another name for it without an adapter: a gateway knows.
  model.engine.checkEngine?.(engine);
  const known = [...enginesOf(model).keys()];
  if (model.engines !== undefined || known.includes(engine)) return;
  const text = `There is no engine '${engine}' of the model ${model.id} (header X-Skein-Engine): it has ${known.join(', ')}.`;
  throw new ApiError(400, text, { code: 'invalid_value' });
}

/** Adds a piece to those that are kept, of which each has many tokens: a long answer is no object for each of them. */
function keep(kept: TextPiece[], piece: TextPiece): void {
  const last = kept.at(-1);
  const hasLogits = (last?.generationLogits ?? piece.generationLogits) !== undefined;
  if (last === undefined || hasLogits || last.tokens.length >= MAX_KEPT_TOKENS) {
    kept.push(piece);
    return;
  }
  kept[kept.length - 1] = {
    ...last,
    ...piece,
    text: last.text + piece.text,
    tokens: [...last.tokens, ...piece.tokens],
    logProbs: [...last.logProbs, ...piece.logProbs],
  };
}

/** Number of entries in a piece: log-probs, those of other tokens in its places included, and gathered tokens. */
function entriesOf(
  { tokens, logProbs, contextLogProbList }: TextPiece,
  { logProbs: top = 0, contextLogProbs: contextTop = 0 }: TextRequest,
): number {
  const ofPrompt = contextLogProbList === undefined ? 0 : contextLogProbList.length * (1 + contextTop);
  const gathered = tokens.length > FEW_TOKENS ? tokens.length : 0;
  return gathered + logProbs.length * (1 + top) + ofPrompt;
}

/** Draws a seed that fits a JSON number, so that a client can read it and send it again. */
function drawShortSeed(): bigint {
  return BigInt.asUintN(53, drawSeed());
}

function withoutTokens(piece: TextPiece): TextPiece {
  const finishReason = piece.finishReason === 'stop' ? 'length' : piece.finishReason;
  return { ...piece, text: '', tokens: [], logProbs: [], finishReason, stopReason: null };
}

/** What the trace of a request records, if it is traced. */
function tracedBy(
  { trace, requestId }: RequestTerms,
  { temperature, topP }: TextRequest,
  choices: number,
  ranks: number | undefined,
) {
  return trace === undefined
    ? {}
    : { traced: { parent: trace, requestId, temperature, topP, choices, ranks } };
}

/** What the server adds to a request. */
function termsOf({ caller, requestId, timeLimitMs, engine }: RequestTerms): Parameters<typeof termFields>[0] {
  return {
    label: requestId,
    caller: caller.name,
    weight: caller.weight,
    timeLimitMs,
    engine,
    cacheSalt: (own) => cacheSaltFor(caller, own),
  };
}

const logProbsOf = (pieces: readonly TextPiece[]) => pieces.flatMap(({ logProbs }) => logProbs);
