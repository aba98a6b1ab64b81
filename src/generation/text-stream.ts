import type { PieceListener, PieceSource } from '../../callbacks/piece-source.js';
import type { TokenPiece } from '../../callbacks/token-request.js';
import { inCallersWords } from './refusals.js';
import { SequenceText } from './sequence-text.js';
import type { TextPiece, TextRequest } from './text-generation.js';
import type { TextCodec, TextModel } from './text-model.js';

/** Turns the tokens of one sequence into text, at once as they come. */
export class TextStream implements PieceSource<TextPiece> {
  readonly #request: TextRequest;
  readonly #tokens: PieceSource<TokenPiece>;
  readonly #codec: TextCodec;
  #text: SequenceText;

  constructor(model: TextModel, request: TextRequest, tokens: PieceSource<TokenPiece>) {
    this.#request = request;
    this.#tokens = tokens;
    this.#codec = model.codec;
    this.#text = new SequenceText(model.codec, request);
  }

  [Symbol.asyncIterator](): AsyncGenerator<TextPiece, void, undefined> {
    return this.#iterate();
  }

  async *#iterate(): AsyncGenerator<TextPiece, void, undefined> {
    try {
      for await (const piece of this.#tokens) {
        const out = this.#text.textOf(piece);
        if (out === null) continue;
        const { contextLogProbList: list } = out;
        if (list !== undefined) {
          out.contextLogProbs = list.all();
          delete out.contextLogProbList;
        }
        yield out;
        if (out.finishReason === null) continue;
        this.leave(true);
        return;
      }
    } catch (error) {
      throw this.#inCallersWords(error);
    }
  }

  listen(listener: PieceListener<TextPiece>): void {
    const onRestart = () => {
      this.#text = new SequenceText(this.#codec, this.#request);
      listener.onRestart!();
    };
    this.#tokens.listen({
      ...(listener.onRestart === undefined ? {} : { onRestart }),
      onPiece: (piece) => {
        const out = this.#text.textOf(piece);
        if (out === null) return;
        // A stop string ends the text before the engine knows.
        if (out.finishReason !== null) this.leave(true);
        return listener.onPiece(out);
      },
      onError: (error) => listener.onError(this.#inCallersWords(error)),
    });
  }

  get engines(): readonly string[] | undefined {
    return this.#tokens.engines;
  }

  get isWaiting(): boolean | undefined {
    return this.#tokens.isWaiting;
  }

  get numGathered(): number {
    return this.#tokens.numGathered;
  }

  pause(): void {
    this.#tokens.pause();
  }

  resume(): void {
    this.#tokens.resume();
  }

  leave(isWhole = false): void {
    this.#tokens.leave(isWhole);
  }

  #inCallersWords(error: unknown): unknown {
    const { promptParam = null, guideParam = null } = this.#request;
    return inCallersWords(error, promptParam, guideParam);
  }
}
