import type { EncoderSequence } from '../../callbacks/encoder-messages.js';
import { readTokenizerFiles, Tokenizer, TokenizerPool } from '../../models/tokenizer/index.js';
import {
  applyTemplate,
  type TextTemplate,
  templateLength,
  textTemplate,
  truncateTexts,
} from '../../models/tokenizer/text-template.js';
import { parseTokenizerJson } from '../../models/tokenizer/tokenizer-json.js';
import { ContextLengthError } from '../generation/errors.js';
import { MAX_UNITS_PER_TOKEN } from '../generation/text-length.js';

/** A text, or token ids that are taken as they are: whoever brings them has put special tokens around them. */
export type EncoderInput = string | Int32Array | readonly number[];

/** How long inputs may be, and what becomes of longer ones. */
export interface LengthLimit {
  maxSeqLen: number;
  /** Tokens, special ones included, to which longer inputs are cut at their end. Absent: they are refused. */
  truncateTo?: number | undefined;
}

/** The tokenizer of an encoder, with what it puts around a text or a pair of texts. */
export class EncoderCodec {
  readonly #pool: TokenizerPool;
  readonly #template: TextTemplate;

  private constructor(pool: TokenizerPool, template: TextTemplate) {
    this.#pool = pool;
    this.#template = template;
  }

  /** @throws TokenizerError where the engine's files are not usable. */
  static async open(engineDirectory: string): Promise<EncoderCodec> {
    const files = await readTokenizerFiles(engineDirectory);
    const pool = new TokenizerPool(new Tokenizer(files), { directory: engineDirectory });
    return new EncoderCodec(pool, textTemplate(parseTokenizerJson(files.tokenizerJson)));
  }

  /**
   * Sequences of single inputs. @param name what to call input i in errors @param param the field that it is in
   * @throws ContextLengthError for an input that is too long and not cut
   */
  async single(
    inputs: readonly EncoderInput[],
    limit: LengthLimit,
    param: string,
    name: (index: number) => string,
  ): Promise<EncoderSequence[]> {
    for (const input of inputs) if (typeof input === 'string') checkUnits(input, limit, param);
    const texts = await this.#tokens(inputs);
    const added = templateLength(this.#template.single);
    return texts.map((text, i) => {
      const isText = typeof inputs[i] === 'string';
      const around = isText ? added : 0;
      const [fitting] = fitted([text], around, limit, param, name(i));
      return isText ? applyTemplate(this.#template, [fitting]) : { tokenIds: fitting, tokenTypes: null };
    });
  }

  /** Sequences of pairs of texts; otherwise the same. */
  async pairs(
    pairs: readonly (readonly [string, string])[],
    limit: LengthLimit,
    param: string,
    name: (index: number) => string,
  ): Promise<EncoderSequence[]> {
    const distinct = [...new Set(pairs.flat())];
    for (const text of distinct) checkUnits(text, limit, param);
    const tokens = await this.#tokens(distinct);
    const tokensOf = new Map(distinct.map((text, i) => [text, tokens[i]!]));
    const added = templateLength(this.#template.pair);
    return pairs.map(([first, second], i) => {
      const texts: [Int32Array, Int32Array] = [tokensOf.get(first)!, tokensOf.get(second)!];
      return applyTemplate(this.#template, fitted(texts, added, limit, param, name(i)));
    });
  }

  async close(): Promise<void> {
    await this.#pool.close();
  }

  /** Special tokens inside a text stay text. */
  async #tokens(inputs: readonly EncoderInput[]): Promise<Int32Array[]> {
    const texts = inputs.filter((input) => typeof input === 'string');
    const encoded = await this.#pool.encodeTexts(texts, { addSpecialTokens: false, allowSpecial: false });
    let next = 0;
    return inputs.map((input) => (typeof input === 'string' ? encoded[next++]! : Int32Array.from(input)));
  }
}

/** Nobody reads so much, and its tokens would take gigabytes; also where they were to be cut. */
function checkUnits(text: string, { maxSeqLen }: LengthLimit, param: string): void {
  const most = maxSeqLen * MAX_UNITS_PER_TOKEN;
  if (text.length <= most) return;
  throw new ContextLengthError(
    `A text is ${text.length} characters long; at most ${most} are tokenized, for the ${maxSeqLen} tokens that this model takes.`,
    param,
  );
}

function fitted<T extends readonly Int32Array[]>(
  texts: T,
  around: number,
  { maxSeqLen, truncateTo }: LengthLimit,
  param: string,
  name: string,
): T {
  const length = around + texts.reduce((sum, text) => sum + text.length, 0);
  if (truncateTo !== undefined) return truncateTexts(texts, Math.max(0, truncateTo - around));
  if (length <= maxSeqLen) return texts;
  throw new ContextLengthError(
    `This model takes ${maxSeqLen} tokens at most, special tokens included, but ${name} has ${length}; shorten it, or have it cut by truncate_prompt_tokens.`,
    param,
  );
}
