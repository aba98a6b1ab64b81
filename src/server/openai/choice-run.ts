import { setImmediate as nextTurn } from 'node:timers/promises';
import type { PieceSource } from '../../../callbacks/piece-source.js';
import { SharedTensors } from '../../../callbacks/shared-tensors.js';
import type { PromptLogProbList } from '../../generation/returned-logits.js';
import type { TextPiece, TextRequest } from '../../generation/text-generation.js';
import { drawSeed, generateTexts } from '../../generation/text-generation.js';
import type { ServedGenerator } from '../../serving/served-model.js';
import { cacheSaltFor } from '../cache-salt.js';
import { answersMemory } from '../memory-estimates.js';
import type { ObserveRequest, RequestObserver } from '../request-observer.js';
import type { LiveRequest } from '../request-registry.js';
import type { RequestTerms } from '../request-terms.js';
import { cutOff } from './errors.js';
import { TurnShare } from './turn-share.js';

/** How many answers there are to each prompt. */
export interface ChoiceCounts {
  /** Answers that are given. */
  n: number;
  /** Answers that are generated: where they are more, the best n are given. Beams come in the order of their worth. */
  bestOf: number;
}

/** Tokens of a piece that are too few to count: a step's, with those of a draft. */
const FEW_TOKENS = 16;

interface Candidate {
  prompt: number;
  /** Which of the prompt's. */
  index: number;
  pieces: PieceSource<TextPiece>;
  observer: RequestObserver;
  /** Nothing more is heard of it. */
  isOver: boolean;
  /** Called when it is over. */
  onOver: () => void;
}

type OnPiece = (choice: number, piece: TextPiece) => void;

/**
 * The choices of one HTTP request, which live and die together. Choice prompt * n + k is the k-th answer to prompt
 * `prompt`: its k-th sequence, or with best_of and beam search its k-th best.
 */
export class ChoiceRun {
  readonly #candidates: Candidate[] = [];
  readonly #abort = new AbortController();
  readonly #counts: ChoiceCounts;
  readonly #ranks: boolean;
  readonly #live: LiveRequest;
  #isCancelled = false;
  #keepsEnded = false;
  /** The reader is behind. */
  #isBehind = false;
  readonly #share = new TurnShare({ onUsed: () => this.#hold(), onNext: () => this.#tell() });
  /** The candidate that `resume` begins with. */
  #next = 0;
  readonly numChoices: number;
  /** The seed of the answers to each prompt. */
  readonly seeds: readonly bigint[];
  /** Log-probs of each prompt's tokens, where they were asked for, once they have come. */
  readonly promptLogProbs: (PromptLogProbList | null)[];
  readonly #requests: readonly TextRequest[];
  #completionTokens = 0;
  #cachedTokens = 0;

  /**
   * Queues every choice, or none: one that is refused takes its neighbours along. `live` is released when all have ended.
   * @throws InvalidRequestError, QueueFullError; ApiError where there is no memory for all that they may say.
   */
  constructor(
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
    terms.memory.addAnswer(answersMemory(model, requests, counts));
    const shared = new SharedTensors();
    try {
      for (const [prompt, request] of requests.entries()) {
        const asked: TextRequest = {
          ...request,
          ...termsOf(request, terms),
          // An answer of no tokens is one of one that nobody sees: the prompt is computed for it.
          maxTokens: Math.max(1, request.maxTokens),
          seed: this.seeds[prompt]!,
          signal: this.#abort.signal,
          shared,
        };
        if (this.#ranks) asked.logProbs = request.logProbs ?? 0;
        for (const [index, pieces] of generateTexts(model, asked, bestOf).entries()) {
          const { maxTokens } = request;
          const observer = observe({
            model: model.id,
            promptTokens: request.promptTokens.length,
            maxTokens,
            isGuided: request.guide !== undefined,
            ...(index === 0 ? { choices: n } : {}),
          });
          this.#candidates.push({ prompt, index, pieces, observer, isOver: false, onOver: () => {} });
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

  /** Tokens generated so far, by all that were, given or not. */
  get completionTokens(): number {
    return this.#completionTokens;
  }

  /** Prompt tokens found in the cache so far, each prompt counted once: by the first that says so. */
  get cachedTokens(): number {
    return this.#cachedTokens;
  }

  /** The id of the answer: the request can be cancelled by it too. */
  addId(id: string): void {
    this.#live.addId(id);
  }

  /** Every choice ends with what it has, and its client is told. */
  #cancel(): void {
    this.#isCancelled = true;
    this.#abort.abort();
  }

  /** What had ended before `abort` is told all the same: somebody else than the client has a use for it. */
  keepEnded(): void {
    this.#keepsEnded = true;
  }

  /**
   * Ends every choice; the engine frees their blocks within one iteration. What has gathered is forgotten: to write the log-probs
   * of a hundred sequences for a client that has left would hold up the others.
   */
  abort(): void {
    if (!this.#keepsEnded) for (const candidate of this.#candidates) this.#forget(candidate);
    this.#abort.abort();
    // Nobody waits for a reader any more.
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

  /** The reader is behind: pieces gather, and nothing is told until `resume`. */
  pause(): void {
    this.#isBehind = true;
    this.#hold();
  }

  resume(): void {
    this.#isBehind = false;
    this.#tell();
  }

  /** Whether the run waits for its reader, or for the next turn of the event loop. */
  get #waits(): boolean {
    return this.#isBehind || this.#share.isUsed;
  }

  #hold(): void {
    for (const { pieces } of this.#candidates) pieces.pause();
  }

  /** What has gathered is told, choice by choice, until there is a reason to wait: the others are the first the next time. */
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
   * Where the best are to be chosen, their pieces come when all have ended.
   * @param onPiece is called in the iteration that made the piece: one call a piece, and no promise.
   */
  async consume(onPiece: OnPiece): Promise<void> {
    const { n, bestOf } = this.#counts;
    if (bestOf === n) {
      await this.#listen(({ prompt, index }, piece) => onPiece(prompt * n + index, piece));
      return;
    }
    const kept = new Map<Candidate, TextPiece[]>(this.#candidates.map((candidate) => [candidate, []]));
    await this.#listen((candidate, piece) => kept.get(candidate)!.push(piece));
    if (this.#isForgotten) return;
    for (let prompt = 0; prompt * n < this.numChoices; prompt++) {
      const own = [...kept].filter(([candidate]) => candidate.prompt === prompt).map(([, pieces]) => pieces);
      const best = (this.#ranks ? own.toSorted(byMeanLogProb) : own).slice(0, n);
      for (const [rank, pieces] of best.entries()) {
        for (const piece of pieces) onPiece(prompt * n + rank, piece);
        await nextTurn();
      }
    }
  }

  /** Its client has left, and nobody else wants it. */
  get #isForgotten(): boolean {
    return this.#abort.signal.aborted && !this.#isCancelled && !this.#keepsEnded;
  }

  #listen(onPiece: (candidate: Candidate, piece: TextPiece) => void): Promise<void> {
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
        pieces.listen({ onPiece: take, onError: fail });
      }
    });
  }

  #take(
    candidate: Candidate,
    generated: TextPiece,
    onPiece: (candidate: Candidate, piece: TextPiece) => void,
  ): void {
    const { prompt, index, observer } = candidate;
    const piece = this.#requests[prompt]!.maxTokens > 0 ? generated : withoutTokens(generated);
    if (piece.contextLogProbList !== undefined) this.promptLogProbs[prompt] = piece.contextLogProbList;
    this.#completionTokens += piece.tokens.length;
    if (piece.cachedTokens !== undefined) {
      observer.onCachedTokens(piece.cachedTokens);
      if (index === 0) this.#cachedTokens += piece.cachedTokens;
    }
    if (piece.tokens.length > 0) observer.onTokens(piece.tokens.length);
    if (piece.finishReason === 'cancelled') {
      observer.onEnd('abort');
      // Nobody hears the answer of a client that left; what nobody asked for is the server's doing.
      if (!this.#isCancelled && this.#abort.signal.aborted) return;
      if (!this.#isCancelled) throw cutOff();
    } else if (piece.finishReason !== null) observer.onEnd(piece.finishReason, piece.timing);
    this.#share.use(entriesOf(piece, this.#requests[prompt]!));
    onPiece(candidate, piece);
  }
}

/** What a piece tells: log-probs, those of other tokens at its places included, and tokens that have gathered. */
function entriesOf(
  { tokens, logProbs, contextLogProbList }: TextPiece,
  { logProbs: top = 0, contextLogProbs: contextTop = 0 }: TextRequest,
): number {
  const ofPrompt = contextLogProbList === undefined ? 0 : contextLogProbList.length * (1 + contextTop);
  const gathered = tokens.length > FEW_TOKENS ? tokens.length : 0;
  return gathered + logProbs.length * (1 + top) + ofPrompt;
}

/** A seed that a number of JSON holds, so that it can be told and sent again. */
function drawShortSeed(): bigint {
  return BigInt.asUintN(53, drawSeed());
}

function withoutTokens(piece: TextPiece): TextPiece {
  const finishReason = piece.finishReason === 'stop' ? 'length' : piece.finishReason;
  return { ...piece, text: '', tokens: [], logProbs: [], finishReason, stopReason: null };
}

/** What the server adds to a request of its own. */
function termsOf({ timeLimitMs, cacheSalt }: TextRequest, terms: RequestTerms): Partial<TextRequest> {
  const { caller } = terms;
  const limit = Math.min(
    timeLimitMs ?? Number.POSITIVE_INFINITY,
    terms.timeLimitMs ?? Number.POSITIVE_INFINITY,
  );
  return {
    label: terms.requestId,
    queueKey: caller.name,
    queueWeight: caller.weight,
    cacheSalt: cacheSaltFor(caller, cacheSalt),
    ...(Number.isFinite(limit) ? { timeLimitMs: limit } : {}),
  };
}

/** The greatest mean first; an answer without tokens comes last. */
function byMeanLogProb(a: readonly TextPiece[], b: readonly TextPiece[]): number {
  const [meanA, meanB] = [meanLogProb(a), meanLogProb(b)];
  return meanA === meanB ? 0 : meanB - meanA;
}

function meanLogProb(pieces: readonly TextPiece[]): number {
  const logProbs = pieces.flatMap((piece) => piece.logProbs);
  if (logProbs.length === 0) return Number.NEGATIVE_INFINITY;
  return logProbs.reduce((sum, { logProb }) => sum + logProb, 0) / logProbs.length;
}
