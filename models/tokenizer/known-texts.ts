import type { PatternBorders } from './pattern-borders.js';
import { PieceMemory } from './piece-memory.js';
import { piecesOf } from './text-pieces.js';
import type { TokenIdList } from './token-id-list.js';

/** UTF-16 units of the shortest text that is looked up: a shorter one is encoded as fast. */
const MIN_UNITS = 1024;
/** UTF-16 units of the shortest text that is cut. */
const MIN_CUT = 4096;

type Encode = (text: string) => void;

/**
 * Encodes long texts from what is remembered of texts before: the whole text, which is quickest; else its pieces, where a tokenizer has
 * borders, so that it may have another beginning or end the next time.
 */
export class KnownTexts {
  readonly #findBorders: () => PatternBorders | null;
  #borders: PatternBorders | null | undefined;
  readonly #memory = new PieceMemory();

  /**
   * @param findBorders finds the places at which a text may be cut before it is encoded; null: there are none. Called for the first text
   * that is long enough, so that a start does not wait for it
   */
  constructor(findBorders: () => PatternBorders | null) {
    this.#findBorders = findBorders;
  }

  /**
   * Adds a text's ids. @param isFirst true for the text that begins a prompt, in front of which some tokenizers put a space
   * @param encode adds the ids of a text that is not known
   */
  encode(text: string, isFirst: boolean, ids: TokenIdList, encode: Encode): void {
    if (text.length < MIN_UNITS) {
      encode(text);
      return;
    }
    const borders = text.length < MIN_CUT ? null : this.#bordersFound();
    if (borders === null) this.#remember(text, isFirst, ids, encode);
    else {
      // What has borders begins no text otherwise than another.
      this.#remember(text, false, ids, () => {
        for (const piece of piecesOf(text, borders)) this.#remember(piece, false, ids, encode);
      });
    }
  }

  #bordersFound(): PatternBorders | null {
    if (this.#borders === undefined) this.#borders = this.#findBorders();
    return this.#borders;
  }

  #remember(text: string, isFirst: boolean, ids: TokenIdList, encode: Encode): void {
    // With a letter in front it is a text of its own, and no view of the prompt.
    const key = `${isFirst ? 'f' : 'l'}${text}`;
    const known = this.#memory.get(key);
    if (known !== undefined) {
      ids.append(known);
      return;
    }
    const start = ids.length;
    encode(text);
    this.#memory.set(key, ids.view(start, ids.length));
  }
}
