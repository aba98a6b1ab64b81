import type { ChatPlan } from '../chat-plan.js';
import { HarmonyParser } from '../harmony/parser.js';
import { shownHarmony } from '../harmony/tokens.js';
import type { Detokenizer, TextCodec } from '../text-model.js';
import type { AnswerParser } from '../tools/types.js';
import { PlainParser, ReasoningParser } from './reasoning-parser.js';

/** A parser that knows where reasoning is: null for text of which it is not known yet. */
interface WatchedParser extends AnswerParser {
  readonly isReasoning: boolean | null;
}

/** Counts the tokens of an answer that are reasoning, its markers included. */
export class ReasoningCounter {
  readonly #detokenizer: Detokenizer;
  readonly #parser: WatchedParser;
  /** True where reasoning may come anywhere in an answer, and not only at its beginning. */
  readonly #isAnywhere: boolean;
  /** Number of tokens that may yet prove to be reasoning. */
  #undecided = 0;
  #count = 0;
  #isOver = false;

  private constructor(detokenizer: Detokenizer, parser: WatchedParser, isAnywhere: boolean) {
    this.#detokenizer = detokenizer;
    this.#parser = parser;
    this.#isAnywhere = isAnywhere;
  }

  /** null: the answers have no reasoning. */
  static of(codec: TextCodec, { reasoning, harmony }: Pick<ChatPlan, 'reasoning' | 'harmony'>) {
    if (harmony !== null) {
      const shownTokens = shownHarmony(new Set(codec.specialTexts));
      const detokenizer = codec.createDetokenizer({ skipSpecialTokens: true, shownTokens });
      return new ReasoningCounter(detokenizer, new HarmonyParser(harmony), true);
    }
    if (reasoning === null) return null;
    const detokenizer = codec.createDetokenizer({ skipSpecialTokens: false });
    return new ReasoningCounter(detokenizer, new ReasoningParser(reasoning, new PlainParser()), false);
  }

  get count(): number {
    return this.#count;
  }

  push(tokens: Iterable<number>): void {
    for (const token of tokens) {
      if (this.#isOver) return;
      const before = this.#parser.isReasoning;
      this.#parser.push(this.#detokenizer.push([token]));
      const after = this.#parser.isReasoning;
      this.#undecided++;
      if (before === true || after === true) {
        this.#count += this.#undecided;
        this.#undecided = 0;
      }
      if (after !== false) continue;
      this.#undecided = 0;
      this.#isOver = !this.#isAnywhere;
    }
  }
}
