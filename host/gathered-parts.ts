import { joinParts, type Part, type PartOptions, slicePart } from './token-parts.js';

/**
 * Number of parts that gather before they are joined: a step's arrays are small, and each costs more than its content.
 */
const MAX_PARTS = 64;
/** Most tokens and log-probs handed out at once: some milliseconds of work for the receiver. */
const MAX_ENTRIES = 4096;

/**
 * Generated tokens of a sequence that were not taken yet. They are taken in pieces of bounded size, however
 * many gathered:
 *
 *   add        . . . .       64 small parts become one
 *   parts      [64][64][64] . . .
 *   take       |--------|          as many tokens as have MAX_ENTRIES entries, a token's log-probs counted with it
 */
export class GatheredParts {
  readonly #options: PartOptions;
  readonly #maxTokens: number;
  #parts: Part[] = [];
  /** Number of parts at the end that have not been joined. */
  #numSmall = 0;

  constructor(options: PartOptions) {
    this.#options = options;
    const perToken = options.returnLogProbs || options.topLogProbs > 0 ? 1 + options.topLogProbs : 1;
    this.#maxTokens = Math.max(1, Math.floor(MAX_ENTRIES / perToken));
  }

  get isEmpty(): boolean {
    return this.#parts.length === 0;
  }

  get numTokens(): number {
    return this.#parts.reduce((sum, { tokens }) => sum + tokens.length, 0);
  }

  add(part: Part): void {
    this.#parts.push(part);
    if (++this.#numSmall < MAX_PARTS) return;
    this.#parts.push(joinParts(this.#parts.splice(-MAX_PARTS), this.#options));
    this.#numSmall = 0;
  }

  /** Takes the oldest tokens, at most one piece of them; a part without tokens where there are none. */
  take(): Part {
    const taken: Part[] = [];
    let room = this.#maxTokens;
    let count = 0;
    for (; count < this.#parts.length && room > 0; count++) {
      const part = this.#parts[count]!;
      const { length } = part.tokens;
      if (length > room) {
        taken.push(slicePart(part, 0, room));
        this.#parts[count] = slicePart(part, room, length);
        break;
      }
      taken.push(part);
      room -= length;
    }
    this.#parts.splice(0, count);
    this.#numSmall = Math.min(this.#numSmall, this.#parts.length);
    return joinParts(taken, this.#options);
  }

  clear(): void {
    this.#parts = [];
    this.#numSmall = 0;
  }
}
