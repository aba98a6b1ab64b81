import {
  FINISH_CANCELLED,
  FINISH_END_ID,
  FINISH_LENGTH,
  FINISH_NOT_FINISHED,
  FINISH_STOP_WORDS,
  FINISH_TIMED_OUT,
  type FinishCode,
} from '../../../callbacks/response-batch.js';
import type { FinishReason, TokenPiece } from '../../../callbacks/token-request.js';
import type { SequenceText } from '../../generation/sequence-text.js';

/** What is new of a sequence, or all of it. It excludes tokens after a stop string. */
export interface SequencePart {
  tokens: Int32Array;
  /** Of each token; each of the following is empty where it was not asked for. */
  logProbs: Float32Array;
  /** [tokens.length x k], most probable first. */
  topTokens: Int32Array;
  topLogProbs: Float32Array;
  /** [tokens.length x vocabulary] */
  logits: Float32Array;
  text: string;
  /** null: it is not over. */
  finishReason: FinishReason | null;
}

const CODES: Readonly<Record<FinishReason, FinishCode>> = {
  stop: FINISH_END_ID,
  length: FINISH_LENGTH,
  timeout: FINISH_TIMED_OUT,
  cancelled: FINISH_CANCELLED,
};

/** One sequence of a request, as far as it has come. */
export class SequenceAnswer {
  readonly #text: SequenceText | null;
  readonly #stopWords: readonly (readonly number[])[];
  /** The last tokens, as many as the longest stop word has. */
  #tail: number[] = [];
  readonly #tailLength: number;
  #endsWithStopString = false;
  /** Tokens that the answer has, those of `known` among them. */
  numTokens: number;
  /** Sum of the tokens' log-probs; of a beam with that of its end token. */
  cumLogProb = 0;
  finishReason: FinishReason | null = null;

  /**
   * @param text makes its text; null: the text is not wanted @param stopWords tokens that end it
   * @param numKnown tokens that it had before
   */
  constructor(text: SequenceText | null, stopWords: readonly (readonly number[])[], numKnown: number) {
    this.#text = text;
    this.#stopWords = stopWords;
    this.#tailLength = stopWords.reduce((most, { length }) => Math.max(most, length), 0);
    this.numTokens = numKnown;
  }

  /** Why it has ended, as a number of the tensor finish_reasons. */
  get finishCode(): FinishCode {
    if (this.finishReason === null) return FINISH_NOT_FINISHED;
    return this.finishReason === 'stop' && (this.#endsWithStopString || this.#endsWithStopWord)
      ? FINISH_STOP_WORDS
      : CODES[this.finishReason];
  }

  get #endsWithStopWord(): boolean {
    const tail = this.#tail;
    return this.#stopWords.some(
      (word) =>
        word.length <= tail.length && word.every((token, i) => tail[tail.length - word.length + i] === token),
    );
  }

  /** @returns what is new by the piece */
  take(piece: TokenPiece): SequencePart {
    let { finishReason } = piece;
    let text = '';
    let count = piece.tokens.length;
    if (this.#text !== null) {
      const shown = this.#text.textOf({ tokens: piece.tokens, finishReason });
      if (shown !== null) {
        ({ text, finishReason } = shown);
        count = shown.tokens.length;
        this.#endsWithStopString = typeof shown.stopReason === 'string';
      }
    }
    const part = { ...firstOf(piece, count), text, finishReason };
    this.numTokens += count;
    if (this.#tailLength > 0) this.#tail = [...this.#tail, ...part.tokens].slice(-this.#tailLength);
    this.cumLogProb = piece.cumLogProb ?? part.logProbs.reduce((sum, one) => sum + one, this.cumLogProb);
    this.finishReason = finishReason;
    return part;
  }
}

const NO_TOKENS = new Int32Array(0);
const NO_NUMBERS = new Float32Array(0);

/** The first tokens of a piece with what belongs to them. */
function firstOf(
  { tokens, logProbs, topTokens, topLogProbs, generationLogits }: TokenPiece,
  count: number,
): Omit<SequencePart, 'text' | 'finishReason'> {
  const cut = <T extends Int32Array | Float32Array>(values: T | undefined, none: T): T => {
    if (values === undefined) return none;
    return (
      count === tokens.length ? values : values.subarray(0, (values.length / tokens.length) * count)
    ) as T;
  };
  return {
    tokens: cut(tokens, NO_TOKENS),
    logProbs: cut(logProbs, NO_NUMBERS),
    topTokens: cut(topTokens, NO_TOKENS),
    topLogProbs: cut(topLogProbs, NO_NUMBERS),
    logits: cut(generationLogits, NO_NUMBERS),
  };
}

/** Parts that follow each other, as one. */
export function joined(parts: readonly SequencePart[]): SequencePart {
  if (parts.length === 1) return parts[0]!;
  const floats = (values: (part: SequencePart) => Float32Array) => {
    const all = new Float32Array(parts.reduce((sum, part) => sum + values(part).length, 0));
    fill(all, parts.map(values));
    return all;
  };
  const integers = (values: (part: SequencePart) => Int32Array) => {
    const all = new Int32Array(parts.reduce((sum, part) => sum + values(part).length, 0));
    fill(all, parts.map(values));
    return all;
  };
  return {
    tokens: integers((part) => part.tokens),
    logProbs: floats((part) => part.logProbs),
    topTokens: integers((part) => part.topTokens),
    topLogProbs: floats((part) => part.topLogProbs),
    logits: floats((part) => part.logits),
    text: parts.map(({ text }) => text).join(''),
    finishReason: parts.at(-1)?.finishReason ?? null,
  };
}

function fill<T extends Int32Array | Float32Array>(all: T, parts: readonly T[]): void {
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
}
