import type { FinishReason, TokenPiece, TokenRequest } from '../callbacks/token-request.js';
import { numKnownOutputs } from './token-inputs.js';
import { slicePart } from './token-parts.js';

/** What was accepted of one sequence. */
interface SequenceSoFar {
  tokens: number[];
  finishReason: FinishReason | null;
}

/** Fields of a request that say how its answer can continue. */
type ResumedFields = Pick<
  TokenRequest,
  | 'beams'
  | 'streaming'
  | 'mirostat'
  | 'returnContextLogits'
  | 'returnContextLogProbs'
  | 'knownOutputIds'
  | 'endTokenIds'
  | 'stopWords'
>;

/**
 * What was accepted of a request's answer, and all that another engine needs to continue it:
 *
 *   attempt 1   prompt -> 5 7 9 | engine lost
 *   attempt 2   prompt, knownOutputIds 5 7 9 -> 4 8 | lost
 *   attempt 3   prompt, knownOutputIds 5 7 9 4 8 -> ...            the client: 5 7 9   4 8   ...
 *
 * What an engine that knows tokens could not continue, or would not report any more, begins again at the
 * first token. What was sent before is then compared, and not sent again.
 */
export class AnswerSoFar {
  readonly #fields: ResumedFields;
  readonly #promptLength: number;
  readonly #sequences: readonly SequenceSoFar[];
  /** Tokens that the request itself has brought. */
  readonly #numGiven: number;
  #numTokens = 0;
  #hasBegun = false;
  #cachedTokens = 0;
  /** Most tokens of the prompt that count as cached: all others were computed for this request. */
  #mostCachedTokens = Number.POSITIVE_INFINITY;
  /** Tokens of the prompt that were reported as done. */
  #promptDone = -1;

  constructor(request: TokenRequest, numSequences: number) {
    const { beams, streaming, mirostat, knownOutputIds, endTokenIds, stopWords } = request;
    const { returnContextLogits, returnContextLogProbs } = request;
    // Not the request itself: it may hold much that is no longer needed.
    this.#fields = {
      ...{ beams, streaming, mirostat, returnContextLogits, returnContextLogProbs },
      ...{ knownOutputIds, endTokenIds, stopWords },
    } as ResumedFields;
    this.#promptLength = request.promptTokens.length;
    this.#sequences = Array.from({ length: numSequences }, () => ({ tokens: [], finishReason: null }));
    this.#numGiven = this.#sequences.reduce((sum, _, i) => sum + numKnownOutputs(request, i), 0);
  }

  /** Some of it has been answered. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /** Number of tokens that were accepted, of all sequences. */
  get numTokens(): number {
    return this.#numTokens;
  }

  /** Number of tokens of all sequences, those among them that the request has brought. */
  get generatedTokens(): number {
    return this.#hasBegun ? this.#numGiven + this.#numTokens : 0;
  }

  /** Number of prompt tokens found in the cache. */
  get cachedTokens(): number {
    return this.#cachedTokens;
  }

  /** Number of tokens computed for the request, without those of the prompt that were in a cache. */
  get usedTokens(): number {
    return this.#hasBegun ? this.generatedTokens + this.#promptLength - this.#cachedTokens : 0;
  }

  /** Number of tokens accepted of a sequence. */
  lengthOf(sequence: number): number {
    return this.#sequences[sequence]!.tokens.length;
  }

  /** The sequence has ended. */
  isEnded(sequence: number): boolean {
    return this.#sequences[sequence]!.finishReason !== null;
  }

  /** What was accepted of a sequence counts no more: the next attempt begins it again. */
  restart(sequence: number): void {
    const one = this.#sequences[sequence]!;
    this.#numTokens -= one.tokens.length;
    one.tokens = [];
    this.#hasBegun = this.#sequences.some(
      ({ tokens, finishReason }) => tokens.length > 0 || finishReason !== null,
    );
    this.#cachedTokens = 0;
    this.#promptDone = -1;
  }

  /** The prompt was computed for this request before, except for tokens that were in a cache then. */
  limitCached(cachedTokens: number): void {
    this.#mostCachedTokens = cachedTokens;
  }

  /**
   * Takes the accepted part of a piece; returns the piece as its reader gets it, without what was reported
   * before. null: the tokens in front of it differ from those sent before.
   * @param skip number of its tokens that were sent before
   */
  push(sequence: number, piece: TokenPiece, skip: number): TokenPiece | null {
    const isFirst = this.#sequences[sequence]!.tokens.length === 0;
    const wasBegun = this.#hasBegun;
    const taken = this.pushTokens(sequence, piece, skip);
    if (taken === null) return null;
    const { cachedTokens, finishReason } = piece;
    if (finishReason !== null) {
      this.#hasBegun = true;
      this.#sequences[sequence]!.finishReason = finishReason;
    }
    if (cachedTokens !== undefined && !wasBegun)
      this.#cachedTokens = Math.min(cachedTokens, this.#mostCachedTokens);
    return this.#asSeen(taken, isFirst);
  }

  /** The same for a piece of tokens and their values, as nearly all are. */
  pushTokens(sequence: number, piece: TokenPiece, skip: number): TokenPiece | null {
    const { tokens } = piece;
    const { length } = tokens;
    const soFar = this.#sequences[sequence]!.tokens;
    if (skip > 0 && !this.agrees(sequence, soFar.length - skip, tokens.subarray(0, skip))) return null;
    for (let i = skip; i < length; i++) soFar.push(tokens[i]!);
    this.#numTokens += length - skip;
    if (length > skip) this.#hasBegun = true;
    return skip === 0 ? piece : { ...piece, ...slicePart(piece, skip, length) };
  }

  /** Tokens that an attempt has at this place of a sequence are those that were accepted, as far as these go. */
  agrees(sequence: number, index: number, tokens: Int32Array): boolean {
    const { tokens: soFar, finishReason } = this.#sequences[sequence]!;
    if (finishReason !== null && index + tokens.length > soFar.length) return false;
    const count = Math.min(tokens.length, soFar.length - index);
    for (let i = 0; i < count; i++) if (tokens[i] !== soFar[index + i]) return false;
    return true;
  }

  /**
   * The piece without what was reported before. @param isFirst it has the first tokens of its sequence, or
   * comes before them
   */
  #asSeen(piece: TokenPiece, isFirst: boolean): TokenPiece {
    const seen = { ...piece };
    if (!isFirst) {
      delete seen.contextLogits;
      delete seen.contextLogProbs;
      delete seen.contextTopTokens;
      delete seen.contextTopLogProbs;
      delete seen.contextProgress;
      delete seen.cachedTokens;
    } else if (seen.cachedTokens !== undefined) seen.cachedTokens = this.#cachedTokens;
    const { contextProgress: progress } = seen;
    if (progress === undefined) return seen;
    // An attempt computes the prompt from its beginning, or from what is cached there.
    if (progress.done >= this.#promptDone) this.#promptDone = progress.done;
    else delete seen.contextProgress;
    return seen;
  }

  /**
   * How the next attempt continues.
   * @param ended sequences of which no more is wanted
   * @returns tokens that each sequence has in front of what it brings, those that the request has brought among them; null: it begins at
   * the first token
   */
  next(ended: Iterable<number>): Int32Array[] | null {
    return this.#hasBegun && !this.#beginsAnew(new Set(ended)) ? this.#known() : null;
  }

  #beginsAnew(ended: ReadonlySet<number>): boolean {
    const { beams, streaming = true, mirostat = 0, ...asked } = this.#fields;
    if ((beams?.width ?? 1) > 1 || !streaming || mirostat > 0) return true;
    const isOfPrompt = asked.returnContextLogits || asked.returnContextLogProbs;
    const isTold = this.lengthOf(0) > 0 || this.isEnded(0) || ended.has(0);
    return isOfPrompt === true && !isTold;
  }

  #known(): Int32Array[] {
    const { knownOutputIds: given = [], endTokenIds = [] } = this.#fields;
    return this.#sequences.map(({ tokens, finishReason }, i) => {
      const all = [...(given[i] ?? []), ...tokens];
      // A sequence that its end token has ended does not have it: adding it shows the engine that there is
      // nothing to do.
      const endId = endTokenIds[0];
      if (finishReason === 'stop' && endId !== undefined && !this.#endsByStopWord(all)) all.push(endId);
      return Int32Array.from(all);
    });
  }

  #endsByStopWord(tokens: readonly number[]): boolean {
    const { stopWords = [] } = this.#fields;
    return stopWords.some((word) =>
      word.every((token, i) => tokens[tokens.length - word.length + i] === token),
    );
  }
}
