import type { PatternBorders } from './pattern-borders.js';
import { PieceMemory } from './piece-memory.js';
import { piecesOf } from './text-pieces.js';
import type { TokenIdList } from './token-id-list.js';

/** UTF-16 units of the shortest text that is looked up: a shorter one is encoded as fast. */
const LEAST_UNITS = 1024;

/**
 * Encodes long texts from what is remembered of texts before. Where a tokenizer has borders, a text is remembered in pieces, so that it may
 * have another beginning or end the next time; else as a whole.
 */
export class KnownTexts {
  readonly #borders: PatternBorders | null;
  readonly #memory = new PieceMemory();

  /** @param borders places at which a text may be cut before it is encoded; null: there are none */
  constructor(borders: PatternBorders | null) {
    this.#borders = borders;
  }

  /**
   * Adds a text's ids. @param isFirst true for the text that begins a prompt, in front of which some tokenizers put a space
   * @param encode adds the ids of a text that is not known
   */
  encode(text: string, isFirst: boolean, ids: TokenIdList, encode: (text: string) => void): void {
    if (text.length < LEAST_UNITS) {
      encode(text);
      return;
    }
    if (this.#borders === null) this.#encodePiece(text, isFirst, ids, encode);
    else for (const piece of piecesOf(text, this.#borders)) this.#encodePiece(piece, false, ids, encode);
  }

  #encodePiece(piece: string, isFirst: boolean, ids: TokenIdList, encode: (text: string) => void): void {
    // With a letter in front it is a text of its own, and no view of the prompt.
    const key = `${isFirst ? 'f' : 'l'}${piece}`;
    const known = this.#memory.get(key);
    if (known !== undefined) {
      ids.append(known);
      return;
    }
    const start = ids.length;
    encode(piece);
    this.#memory.set(key, ids.view(start, ids.length));
  }
}
