import type { FinishReason, TokenPiece } from '../../callbacks/token-request.js';
import { lengthOf } from '../../models/jinja/text/code-points.js';
import {
  type StopFinder,
  type StopPush,
  StopStringMatcher,
  StopStrings,
} from '../../models/tokenizer/stop-strings.js';
import { ContentStops } from './content-stops.js';
import { logitsOfShown, PromptLogProbList } from './returned-logits.js';
import type { TextLogProb, TextPiece, TextRequest, TokenLogProb } from './text-generation.js';
import type { Detokenizer, TextCodec } from './text-model.js';

const NO_LOG_PROBS: readonly TextLogProb[] = [];

/** What a text is made by: the part of a request that says how its tokens become text. */
export type TextOptions = Pick<
  TextRequest,
  | 'promptTokens'
  | 'stop'
  | 'createParser'
  | 'stopTokens'
  | 'includeStop'
  | 'skipSpecialTokens'
  | 'shownTokens'
  | 'logProbs'
  | 'contextLogProbs'
>;

/** The text of one sequence, made of its tokens as they come. */
export class SequenceText {
  readonly #request: TextOptions;
  readonly #detokenizer: Detokenizer;
  readonly #stopStrings: StopStrings;
  readonly #stops: StopFinder | null;
  readonly #stopTokens: ReadonlySet<number>;
  /** Number of characters decoded; the stop matcher may hold back some of them. */
  #decoded = 0;
  /** The same in code points; counted only where log-probs are asked for. */
  #decodedCodePoints = 0;
  /** Number of characters given out. */
  #released = 0;
  #matchedStop: string | null = null;
  #waiting: TextLogProb[] = [];
  readonly #single = [0];
  /** A stop token, which is left out of the text if it is the last token. */
  #undecided: { token: number; logProb: TextLogProb | null } | null = null;

  constructor(codec: Pick<TextCodec, 'createDetokenizer'>, request: TextOptions) {
    this.#request = request;
    this.#detokenizer = codec.createDetokenizer({
      skipSpecialTokens: request.skipSpecialTokens ?? true,
      shownTokens: request.shownTokens,
    });
    this.#stopStrings = StopStrings.of(request.stop ?? []);
    this.#stops = this.#stopStrings.texts.length === 0 ? null : stopFinder(this.#stopStrings, request);
    this.#stopTokens = new Set(request.stopTokens ?? []);
  }

  /** Text of a piece; null where nothing of it is to be shown. */
  textOf(piece: TokenPiece): TextPiece | null {
    const { contextProgress } = piece;
    const out = this.#take(piece) ?? (contextProgress === undefined ? null : this.#piece('', [], null, null));
    if (out === null) return null;
    if (contextProgress !== undefined) out.contextProgress = contextProgress;
    if (piece.cachedTokens !== undefined) out.cachedTokens = piece.cachedTokens;
    if (piece.contextLogits !== undefined) out.contextLogits = piece.contextLogits;
    if (piece.contextLogProbs !== undefined) {
      out.contextLogProbList = new PromptLogProbList(piece, this.#request);
    }
    if (piece.generationLogits !== undefined) out.generationLogits = logitsOfShown(piece, out.tokens.length);
    if (piece.timing !== undefined) out.timing = piece.timing;
    if (piece.cumLogProb !== undefined) out.cumLogProb = piece.cumLogProb;
    return out;
  }

  #take(piece: TokenPiece): TextPiece | null {
    const tokens = piece.tokens.length === 1 ? [piece.tokens[0]!] : Array.from(piece.tokens);
    let text = '';
    for (let index = 0; index < tokens.length; index++) {
      const logProb = piece.logProbs === undefined ? null : this.#logProbAt(piece, index);
      text += this.#takeToken(tokens[index]!, logProb);
      if (this.#matchedStop !== null) {
        return this.#piece(text, tokens.slice(0, index + 1), 'stop', this.#matchedStop);
      }
    }
    if (piece.finishReason === null)
      return tokens.length === 0 ? null : this.#piece(text, tokens, null, null);
    const stopToken = this.#undecided?.token ?? null;
    if (piece.finishReason !== 'stop' || this.#request.includeStop) text += this.#settle();
    text += this.#emit(this.#detokenizer.flush());
    if (this.#matchedStop === null && this.#stops !== null) text += this.#release(this.#stops.end());
    if (this.#matchedStop !== null) return this.#piece(text, tokens, 'stop', this.#matchedStop);
    return this.#piece(text, tokens, piece.finishReason, piece.finishReason === 'stop' ? stopToken : null);
  }

  #takeToken(token: number, logProb: TextLogProb | null): string {
    const text = this.#settle();
    if (this.#matchedStop !== null) return text;
    if (this.#stopTokens.has(token)) {
      this.#undecided = { token, logProb };
      return text;
    }
    return text + this.#decode(token, logProb);
  }

  /** Treats the undecided token as text, since more tokens followed. */
  #settle(): string {
    if (this.#undecided === null) return '';
    const { token, logProb } = this.#undecided;
    this.#undecided = null;
    return this.#decode(token, logProb);
  }

  #decode(token: number, logProb: TextLogProb | null): string {
    if (logProb !== null) {
      logProb.offset = this.#decoded;
      logProb.codePointOffset = this.#decodedCodePoints;
      this.#waiting.push(logProb);
    }
    this.#single[0] = token;
    return this.#emit(this.#detokenizer.push(this.#single));
  }

  #emit(decoded: string): string {
    this.#decoded += decoded.length;
    if (this.#request.logProbs !== undefined) this.#decodedCodePoints += lengthOf(decoded);
    if (this.#stops === null || decoded === '') {
      this.#released += decoded.length;
      return decoded;
    }
    return this.#release(this.#stops.push(decoded));
  }

  #release({ emit, matched }: StopPush): string {
    if (matched !== null) this.#matchedStop = this.#stopStrings.texts[matched]!;
    this.#released += emit.length;
    return emit;
  }

  /** Log-prob of a token, without its offsets, which are not known yet. */
  #logProbAt({ tokens, logProbs, topTokens, topLogProbs }: TokenPiece, index: number): TextLogProb {
    const top: TokenLogProb[] = [];
    const count = topTokens === undefined ? 0 : (this.#request.logProbs ?? 0);
    for (let entry = index * count; entry < (index + 1) * count; entry++) {
      top.push({ token: topTokens![entry]!, logProb: topLogProbs![entry]! });
    }
    return { token: tokens[index]!, logProb: logProbs![index]!, offset: 0, codePointOffset: 0, top };
  }

  #piece(
    text: string,
    tokens: readonly number[],
    finishReason: FinishReason | null,
    stopReason: string | number | null,
  ): TextPiece {
    return { text, tokens, logProbs: this.#releaseLogProbs(finishReason !== null), finishReason, stopReason };
  }

  /** Log-probs whose tokens' text was given out; those of a cut-off stop string never are. */
  #releaseLogProbs(atEnd: boolean): readonly TextLogProb[] {
    const waiting = this.#waiting;
    if (waiting.length === 0) return NO_LOG_PROBS;
    const keepsAll = atEnd && this.#matchedStop === null;
    const held = keepsAll ? -1 : waiting.findIndex((entry) => entry.offset >= this.#released);
    if (held >= 0) return waiting.splice(0, held);
    this.#waiting = [];
    return waiting;
  }
}

function stopFinder(stops: StopStrings, { includeStop = false, createParser }: TextOptions): StopFinder {
  return createParser
    ? new ContentStops(stops, createParser(), { includeStop })
    : new StopStringMatcher(stops, { includeStop });
}
