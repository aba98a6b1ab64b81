import { setImmediate as nextTurn } from 'node:timers/promises';
import { field, says } from '../../base/named-text.js';
import type { EncoderSequence } from '../../callbacks/encoder-messages.js';
import type { EncoderConfig } from '../../models/encoder-config.js';
import {
  readTokenizerFiles,
  Tokenizer,
  TokenizerError,
  TokenizerPool,
} from '../../models/tokenizer/index.js';
import {
  applyTemplate,
  type EndTokens,
  type TextTemplate,
  templateLength,
  textTemplate,
  truncateTexts,
} from '../../models/tokenizer/text-template.js';
import { parseTokenizerJson } from '../../models/tokenizer/tokenizer-json.js';
import { ContextLengthError, contextWords, InvalidRequestError } from '../errors/request-errors.js';
import { MAX_UNITS_PER_TOKEN } from '../generation/text-length.js';
import type { TextFiller } from './filled-texts.js';
import { PairTemplate } from './pair-template.js';

/** A text, or token ids that are taken as they are, with any special tokens already among them. */
export type EncoderInput = string | Int32Array | readonly number[];

/** A side of a text. */
export type TruncateSide = 'start' | 'end';

/** Longest input, and whether longer ones are cut. */
export interface LengthLimit {
  maxSeqLen: number;
  /** Number of tokens, special ones included, to which longer inputs are cut. Absent: longer inputs are refused. */
  truncateTo?: number | undefined;
  /** Which side of a single input is cut; default 'end'. */
  side?: TruncateSide | undefined;
  /** Once it is aborted, texts that wait to be encoded are dropped, and the call rejects with its reason. */
  signal?: AbortSignal | undefined;
}

/** How pairs become sequences. */
export interface PairOptions extends LengthLimit {
  /** What the model's chat template asks of a document, in place of the model's own instruction. */
  instruction?: string | undefined;
}

type OfModel = Pick<EncoderConfig, 'head' | 'tokenTypes'>;

/** Tokenizer of an encoder, which adds special tokens around a text or a pair of texts. */
export class EncoderCodec {
  readonly #pool: TokenizerPool;
  readonly #template: TextTemplate;
  readonly #pairs: PairTemplate | null;
  /** Tokens after the document in a rendered pair, which are never cut. */
  #behind: number | null = null;

  /** What texts are filled up with; null: they are not. */
  readonly filler: TextFiller | null;
  /** Tokens that have no weight among those of a text: the first and last one of a text, padding and the unknown token. */
  readonly unweighted: ReadonlySet<number>;

  private constructor(
    pool: TokenizerPool,
    template: TextTemplate,
    pairs: PairTemplate | null,
    unweighted: ReadonlySet<number>,
    filler: TextFiller | null,
  ) {
    this.unweighted = unweighted;
    this.filler = filler;
    this.#pool = pool;
    this.#template = template;
    this.#pairs = pairs;
  }

  /** @throws TokenizerError where the engine's files are not usable. */
  static async open(engineDirectory: string, { head, tokenTypes }: OfModel): Promise<EncoderCodec> {
    const files = await readTokenizerFiles(engineDirectory);
    await nextTurn();
    const tokenizer = new Tokenizer(files);
    const pairs = head.kind === 'score' ? PairTemplate.of(files.chatTemplate, tokenizer, head) : null;
    const pool = new TokenizerPool(tokenizer, { directory: engineDirectory });
    const ends = endTokens(tokenizer, files.tokenizerConfig);
    const template = textTemplate(parseTokenizerJson(files.tokenizerJson), ends);
    const unweighted = unweightedTokens(tokenizer, files.tokenizerConfig);
    const filler = fillerOf(head, tokenizer, files.tokenizerConfig);
    const plain = tokenTypes === 1 ? withoutTypes(template) : template;
    return new EncoderCodec(pool, plain, pairs, unweighted, filler);
  }

  /**
   * Makes sequences of single inputs. @param name what to call input i in errors @param param the field that holds it
   * @throws ContextLengthError for an input that is too long and not cut
   */
  async single(
    inputs: readonly EncoderInput[],
    limit: LengthLimit,
    param: string,
    name: (index: number) => string,
  ): Promise<EncoderSequence[]> {
    if (this.#pairs !== null && inputs.some((input) => typeof input === 'string'))
      throw new InvalidRequestError(SINGLE_OF_PAIRS, param);
    const bounded = inputs.map((input) =>
      typeof input === 'string' ? boundedText(input, limit, param) : input,
    );
    const texts = await this.#tokens(bounded, limit.signal);
    const added = templateLength(this.#template.single);
    return texts.map((text, i) => {
      const isText = typeof inputs[i] === 'string';
      const around = isText ? added : 0;
      const [fitting] = fitted([text], around, limit, param, name(i));
      return isText ? applyTemplate(this.#template, [fitting]) : { tokenIds: fitting, tokenTypes: null };
    });
  }

  /** Makes sequences of pairs of texts; parameters and errors as in `single`. */
  async pairs(
    given: readonly (readonly [string, string])[],
    limit: PairOptions,
    param: string,
    name: (index: number) => string,
  ): Promise<EncoderSequence[]> {
    if (limit.instruction !== undefined && this.#pairs?.takesInstruction !== true)
      throw new InvalidRequestError(noInstruction(), 'instruction');
    const pairs = given.map(
      ([first, second]) => [boundedText(first, limit, param), boundedText(second, limit, param)] as const,
    );
    const distinct = [...new Set(pairs.flat())];
    if (this.#pairs !== null) return this.#rendered(this.#pairs, pairs, limit, param, name);
    const tokens = await this.#tokens(distinct, limit.signal);
    const tokensOf = new Map(distinct.map((text, i) => [text, tokens[i]!]));
    const added = templateLength(this.#template.pair);
    return pairs.map(([first, second], i) => {
      const texts: [Int32Array, Int32Array] = [tokensOf.get(first)!, tokensOf.get(second)!];
      return applyTemplate(this.#template, fitted(texts, added, limit, param, name(i)));
    });
  }

  /** Makes sequences of pairs by the model's chat template. */
  async #rendered(
    template: PairTemplate,
    pairs: readonly (readonly [string, string])[],
    limit: PairOptions,
    param: string,
    name: (index: number) => string,
  ): Promise<EncoderSequence[]> {
    const { signal, instruction, truncateTo = Number.POSITIVE_INFINITY } = limit;
    const tokensOf = (query: string, document: string) => {
      const segments = template.render(query, document, instruction);
      return this.#pool.encodeRendered(segments, { addSpecialTokens: false, signal });
    };
    this.#behind ??= sharedEnd(await tokensOf('a', 'b'), await tokensOf('a', '1 c'));
    const sequences: EncoderSequence[] = [];
    const ofInstruction = instruction?.length ?? 0;
    let units = 0;
    let fits = '';
    for (const [i, [query, document]] of pairs.entries()) {
      // Documents alone are cut; a query that leaves no room for one is not encoded with each.
      if (query !== fits && BYTES_PER_UNIT * (query.length + ofInstruction) > truncateTo) {
        const { length } = await tokensOf(query, '');
        if (length > truncateTo)
          throw new ContextLengthError(queryTooLong(name(i), length, truncateTo), param);
        fits = query;
      }
      units += UNITS_OF_TEMPLATE + ofInstruction + query.length + document.length;
      if (units > UNITS_PER_TURN) {
        units = 0;
        await nextTurn();
        signal?.throwIfAborted();
      }
      const tokens = await tokensOf(query, document);
      const [before, behind] = [tokens.subarray(0, -this.#behind), tokens.subarray(-this.#behind)];
      const [fitting] = fitted([this.#behind === 0 ? tokens : before], this.#behind, limit, param, name(i));
      const tokenIds = this.#behind === 0 ? fitting : Int32Array.from([...fitting, ...behind]);
      sequences.push({ tokenIds, tokenTypes: null });
    }
    return sequences;
  }

  async close(): Promise<void> {
    await this.#pool.close();
  }

  /** Tokens of texts. Special tokens spelled inside a text stay text. */
  async #tokens(inputs: readonly EncoderInput[], signal: AbortSignal | undefined): Promise<Int32Array[]> {
    const texts = inputs.filter((input) => typeof input === 'string');
    const options = { addSpecialTokens: false, allowSpecial: false, signal };
    const encoded = await this.#pool.encodeTexts(texts, options);
    let next = 0;
    return inputs.map((input) => (typeof input === 'string' ? encoded[next++]! : Int32Array.from(input)));
  }
}

/** Units of rendered pairs that are encoded between two turns of the event loop, and those that stand for a template's own work. */
const UNITS_PER_TURN = 4096;
const UNITS_OF_TEMPLATE = 512;

/** Most bytes of a unit in UTF-8, and with them tokens. */
const BYTES_PER_UNIT = 3;

const queryTooLong = (pair: string, length: number, most: number) =>
  `${pair[0]!.toUpperCase()}${pair.slice(1)} takes ${length} tokens even without the document, which alone is cut, of ${most} at most.`;

/** The refusal of an instruction that a model has no place for. */
export const noInstruction = () =>
  says`${field('instruction')} is for models whose pairs go through a chat template that has a place for it; this model's do not.`;

const SINGLE_OF_PAIRS =
  'This model scores pairs of texts, which go through its chat template; it takes no single text.';

/** The tokens at the ends of a text that the flags of tokenizer_config.json ask for. */
function endTokens(tokenizer: Tokenizer, config: Record<string, unknown>): EndTokens {
  const named = typeof config.sep_token === 'string' ? tokenizer.tokenId(config.sep_token) : null;
  return {
    bos: config.add_bos_token === true ? tokenizer.bosTokenId : null,
    eos: config.add_eos_token === true ? tokenizer.eosTokenId : null,
    sep: config.add_sep_token === true ? (named ?? tokenizer.eosTokenId) : null,
  };
}

const UNWEIGHTED = ['cls_token', 'eos_token', 'pad_token', 'unk_token'];

/** The special tokens that FlagEmbedding leaves out of a text's weights. */
function unweightedTokens(tokenizer: Tokenizer, config: Record<string, unknown>): ReadonlySet<number> {
  const ids = UNWEIGHTED.map((name) => namedToken(name, tokenizer, config));
  return new Set(ids.filter((id) => id !== null));
}

/** The token that a field of tokenizer_config.json names; null: none. */
function namedToken(name: string, tokenizer: Tokenizer, config: Record<string, unknown>): number | null {
  const token = config[name];
  const text = typeof token === 'object' && token !== null ? (token as { content?: unknown }).content : token;
  return typeof text === 'string' ? tokenizer.tokenId(text) : null;
}

/** @throws TokenizerError where texts are filled up, and nothing says with what */
function fillerOf(
  head: OfModel['head'],
  tokenizer: Tokenizer,
  config: Record<string, unknown>,
): TextFiller | null {
  if (head.kind !== 'embedding' || head.fillsTo === undefined) return null;
  const token = namedToken('pad_token', tokenizer, config);
  if (token !== null) return { token, length: head.fillsTo };
  throw new TokenizerError(
    'tokenizer_config.json: pad_token should be a token of the tokenizer, since texts of this model are filled up with it.',
  );
}

/** The template for a model that knows one type of tokens, whatever its tokenizer says. */
function withoutTypes({ single, pair }: TextTemplate): TextTemplate {
  const plain = (pieces: TextTemplate['single']) => pieces.map((piece) => ({ ...piece, type: 0 }));
  return { single: plain(single), pair: plain(pair) };
}

/** Number of tokens at the ends of both that are the same. */
function sharedEnd(one: Int32Array, other: Int32Array): number {
  let length = 0;
  while (length < one.length && one.at(-1 - length) === other.at(-1 - length)) length++;
  return length;
}

/** A text whose tokens would take gigabytes is refused, or cut before it has any where it is to be cut. */
function boundedText(text: string, { maxSeqLen, truncateTo, side }: LengthLimit, param: string): string {
  const most = maxSeqLen * MAX_UNITS_PER_TOKEN;
  if (text.length <= most) return text;
  if (truncateTo !== undefined) return side === 'start' ? text.slice(-most) : text.slice(0, most);
  throw new ContextLengthError(
    `${contextWords(maxSeqLen)}a text is ${text.length} characters long, of ${most} at most.`,
    param,
  );
}

function fitted<T extends readonly Int32Array[]>(
  texts: T,
  around: number,
  { maxSeqLen, truncateTo, side = 'end' }: LengthLimit,
  param: string,
  name: string,
): T {
  const length = around + texts.reduce((sum, text) => sum + text.length, 0);
  if (truncateTo !== undefined && truncateTo < around)
    throw new InvalidRequestError(
      says`${field('truncatePromptTokens')} is ${truncateTo}, but special tokens alone take ${around}.`,
      'truncatePromptTokens',
    );
  if (truncateTo !== undefined) return truncateTexts(texts, truncateTo - around, side);
  if (length <= maxSeqLen) return texts;
  throw new ContextLengthError(
    says`${contextWords(maxSeqLen)}${name} has ${length}, special tokens included. Please reduce its length, or have it cut by ${field('truncatePromptTokens')}.`,
    param,
  );
}
