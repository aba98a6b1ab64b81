import { createContext, Script } from 'node:vm';
import { messageOf } from '../../base/error-text.js';
import { asSentence } from '../../base/sentences.js';
import type { TokenizerFiles } from '../checkpoints/checkpoint.js';
import { type AddedToken, AddedTokenFinder } from './added-token-finder.js';
import { BpeEncoding } from './bpe-encoding.js';
import { BpeTables, type BpeTablesData } from './bpe-tables.js';
import { controlTexts, isNormalized } from './control-tokens.js';
import { unprovenComponents, whyUnproven } from './encoding-cost.js';
import { endOfTurnTokens } from './end-tokens.js';
import { KnownTexts } from './known-texts.js';
import { adjustForLibrary } from './library-adjustments.js';
import { type LibraryParts, libraryParts, libraryVocabulary, type Vocabulary } from './library-parts.js';
import { type SpecialAffixes, specialAffixes } from './special-affixes.js';
import { type TokenSpelling, tokenSpelling } from './token-bytes.js';
import { TokenIdList } from './token-id-list.js';
import {
  checkTokenizerConfig,
  isBpe,
  type ModelJson,
  parseTokenizerJson,
  TokenizerError,
  type TokenizerJson,
} from './tokenizer-json.js';
import { decodableUtf8Length } from './utf8.js';

export interface EncodeOptions {
  /**
   * Adds the tokens that the model expects around a text (such as BOS). Never a second BOS where the text begins with
   * one.
   */
  addSpecialTokens?: boolean;
  /** False: text that spells a special token stays text. */
  allowSpecial?: boolean;
}

/**
 * A part of a text. Neighbouring segments form one text; special tokens are found only inside one segment with
 * `special` set.
 */
export interface TextSegment {
  text: string;
  special: boolean;
}

export interface DecodeOptions {
  skipSpecialTokens?: boolean;
}

/** Files that a tokenizer is made from. With `tables` the JSON has neither vocabulary nor merges. */
export type TokenizerSourceFiles = Pick<TokenizerFiles, 'tokenizerJson' | 'tokenizerConfig'> & {
  tables?: BpeTablesData | undefined;
};

const NOTHING = new Uint8Array(0);
/** Given to the library in the place of a BPE. */
const NO_MODEL: ModelJson = { type: 'BPE', vocab: {}, merges: [] };
/** Milliseconds for all added tokens, with a normalizer that is not known to be quick. */
const NORMALIZE_LIMIT_MS = 5000;

/**
 * Converts text to token ids and back, for one model. @huggingface/tokenizers handles plain text; added and special
 * tokens are found here, since the library cannot be set to leave them alone in a user's text.
 */
export class Tokenizer {
  /** The largest id plus 1; the model's own vocabulary may be padded beyond it. */
  readonly vocabSize: number;
  readonly bosTokenId: number | null;
  readonly eosTokenId: number | null;
  readonly padTokenId: number | null;
  readonly unkTokenId: number | null;
  readonly bosToken: string | null;
  readonly eosToken: string | null;
  /** Tokens that end a turn: eosTokenId first, then those that are known by their texts. */
  readonly endTokenIds: readonly number[];
  readonly specialTokenIds: ReadonlySet<number>;
  readonly specialTokenTexts: readonly string[];
  /** Texts of special tokens and other marks, which a user's text must not smuggle in. */
  readonly controlTokenTexts: readonly string[];
  /** True where the first space of a sequence is not part of its text, as in SentencePiece. */
  readonly dropsLeadingSpace: boolean;
  /** Why encoding may take more than time in proportion to a text's length; null where it is known not to. */
  readonly unproven: string | null;

  readonly #parts: LibraryParts;
  readonly #vocabulary: Vocabulary;
  /** What encodes the text in the library's place; null where its model is no BPE. */
  readonly #bpe: BpeEncoding | null;
  readonly #known: KnownTexts;
  readonly #rawTokens: AddedTokenFinder;
  readonly #normalizedTokens: AddedTokenFinder | null;
  readonly #affixes: SpecialAffixes;
  readonly #addedById = new Map<number, AddedToken>();
  readonly #spelling: TokenSpelling;
  readonly #bytes: (Uint8Array | undefined)[] = [];
  readonly #texts: (string | null | undefined)[] = [];
  #unitsPerToken: number | null = null;

  /** @throws TokenizerError where tokenizer.json is not one, or uses a component that is not supported. */
  constructor(files: TokenizerSourceFiles) {
    const json = parseTokenizerJson(files.tokenizerJson);
    const config = files.tokenizerConfig;
    checkTokenizerConfig(config);
    for (const token of json.added_tokens) this.#addedById.set(token.id, addedToken(token));
    const added = [...this.#addedById.values()];
    const specials = added.filter((token) => token.special);
    this.specialTokenIds = new Set(specials.map((token) => token.id));
    this.specialTokenTexts = specials.map((token) => token.content);
    const controls = controlTexts(json);
    this.controlTokenTexts = [...controls];
    const adjusted = adjustForLibrary(json, controls);
    const tables = isBpe(json.model) ? new BpeTables(files.tables ?? BpeTables.make(adjusted.model)) : null;
    this.#parts = libraryParts(tables === null ? adjusted : { ...adjusted, model: NO_MODEL }, config);
    const { normalizer, pre_tokenizer: preTokenizer, model } = this.#parts;
    this.#vocabulary = tables ?? libraryVocabulary(model);
    this.#bpe = tables === null ? null : new BpeEncoding(tables, json.model, controls, preTokenizer);
    for (const text of controls) model.tokens_to_ids.delete(text);
    const normalizedIds = new Set(
      normalizer === null ? [] : json.added_tokens.filter(isNormalized).map((token) => token.id),
    );
    this.#rawTokens = new AddedTokenFinder(
      added
        .filter((token) => !normalizedIds.has(token.id))
        .map((token) => [token.content, { ...token, special: controls.has(token.content) }]),
    );
    const normalized = boundedNormalizer(json, normalizer);
    this.#normalizedTokens =
      normalizer === null || normalizedIds.size === 0
        ? null
        : new AddedTokenFinder(
            added
              .filter((token) => normalizedIds.has(token.id))
              .map((token) => [normalized(token.content), token]),
          );

    // NFC changes nothing across the borders; tokens of normalized text could lie across them.
    const isCut = this.#normalizedTokens === null && (normalizer === null || json.normalizer?.type === 'NFC');
    this.#known = new KnownTexts(() => (isCut ? (this.#bpe?.borders ?? null) : null));
    this.vocabSize = added.reduce((most, { id }) => Math.max(most, id + 1), this.#vocabulary.size);
    this.unproven = whyUnproven(json, this.#vocabulary.longest);
    this.bosTokenId = this.#configuredId(config, 'bos_token');
    this.eosTokenId = this.#configuredId(config, 'eos_token');
    this.padTokenId = this.#configuredId(config, 'pad_token');
    const unknownId = this.#bpe === null ? model.unk_token_id : this.#bpe.unknownId;
    this.unkTokenId = this.#configuredId(config, 'unk_token') ?? unknownId ?? null;
    this.bosToken = configuredText(config, 'bos_token');
    this.eosToken = configuredText(config, 'eos_token');
    const eos = this.eosTokenId === null ? [] : [this.eosTokenId];
    this.endTokenIds = [...new Set([...eos, ...endOfTurnTokens(added)])];
    this.#affixes = specialAffixes(json, config, this.bosTokenId, this.eosTokenId);
    this.#spelling = tokenSpelling(json.decoder);
    this.dropsLeadingSpace = this.#spelling.dropsLeadingSpace;
  }

  /** Token ids of a text, [length]. By default with the model's own BOS and with special tokens recognised. */
  encode(text: string, options: EncodeOptions = {}): Int32Array {
    const { addSpecialTokens = true, allowSpecial = true } = options;
    return this.encodeSegments([{ text, special: allowSpecial }], { addSpecialTokens });
  }

  /**
   * Token ids of the segments' texts joined: words may run across a border, special tokens may not. Made for rendered
   * chat templates, where the template's own text may name special tokens and the user's may not.
   */
  encodeSegments(segments: readonly TextSegment[], options: { addSpecialTokens?: boolean } = {}): Int32Array {
    const ids = new TokenIdList();
    const text = segments.map((segment) => segment.text).join('');
    const sections = this.#rawTokens.split(text, specialRanges(segments));
    for (const [index, section] of sections.entries()) {
      if ('token' in section) ids.push(section.token.id);
      else this.#encodePlain(section.text, index, ids);
    }
    if (!options.addSpecialTokens) return ids.between([], []);
    const { prefix, suffix } = this.#affixes;
    const { first } = ids;
    const hasBos = first !== undefined && first === this.bosTokenId && prefix.at(-1) === first;
    return ids.between(hasBos ? prefix.slice(0, -1) : prefix, suffix);
  }

  /**
   * Text of a whole sequence. Bytes that are not UTF-8 become U+FFFD, by the rule of the Encoding Standard; ids outside
   * the vocabulary have no text.
   */
  decode(tokens: Iterable<number>, options: DecodeOptions = {}): string {
    const chunks: Uint8Array[] = [];
    let length = 0;
    for (const id of tokens) {
      if (options.skipSpecialTokens && this.specialTokenIds.has(id)) continue;
      const bytes = this.tokenBytes(id);
      chunks.push(bytes);
      length += bytes.length;
    }
    const all = new Uint8Array(length);
    let offset = 0;
    for (const chunk of chunks) {
      all.set(chunk, offset);
      offset += chunk.length;
    }
    const start = this.dropsLeadingSpace && all[0] === 0x20 ? 1 : 0;
    return decodeUtf8(all.subarray(start));
  }

  /** The bytes that a token adds to the text; empty for an id outside the vocabulary. Shared: do not write to it. */
  tokenBytes(id: number): Uint8Array {
    const known = this.#bytes[id];
    if (known !== undefined) return known;
    if (!Number.isInteger(id) || id < 0 || id >= this.vocabSize) return NOTHING;
    const added = this.#addedById.get(id);
    const text = this.#vocabulary.textOf(id);
    const bytes =
      added !== undefined
        ? this.#spelling.bytesOfAdded(added.content)
        : text === undefined
          ? NOTHING
          : this.#spelling.bytesOf(text);
    this.#bytes[id] = bytes;
    return bytes;
  }

  /** Text of a token whose bytes are whole characters; null for any other token. */
  tokenText(id: number): string | null {
    const known = this.#texts[id];
    if (known !== undefined) return known;
    const bytes = this.tokenBytes(id);
    const text = decodeUtf8(bytes);
    const whole = decodableUtf8Length(bytes, bytes.length) === bytes.length && !text.includes('\uFFFD');
    if (id >= 0 && id < this.vocabSize) this.#texts[id] = whole ? text : null;
    return whole ? text : null;
  }

  /** The token's entry in the vocabulary, as its file spells it (not its decoded text); null for an id outside of it. */
  tokenEntry(id: number): string | null {
    return this.#addedById.get(id)?.content ?? this.#vocabulary.textOf(id) ?? null;
  }

  /**
   * Most UTF-16 units of a text that one token stands for; null where the vocabulary cannot tell, since texts are
   * changed before they are cut into tokens, or tokens take the space around them.
   */
  get unitsPerToken(): number | null {
    this.#unitsPerToken ??= this.#longestToken();
    return this.#unitsPerToken === 0 ? null : this.#unitsPerToken;
  }

  /** Most units of a token; 0: unknown. */
  #longestToken(): number {
    const isChanged = this.#parts.normalizer !== null || !this.#spelling.isByteLevel;
    const added = [...this.#addedById.values()];
    if (isChanged || added.some(({ stripLeft, stripRight }) => stripLeft || stripRight)) return 0;
    // An entry has a letter for each byte, and each unit of a text has at least one byte.
    return added.reduce(
      (most, { content }) => Math.max(most, content.length),
      Math.max(1, this.#vocabulary.longest),
    );
  }

  /** Id of a token by its entry in the vocabulary (not its decoded text); null where there is none. */
  tokenId(entry: string): number | null {
    for (const token of this.#addedById.values()) if (token.content === entry) return token.id;
    return this.#vocabulary.idOf(entry) ?? null;
  }

  #configuredId(config: Record<string, unknown>, key: string): number | null {
    const text = configuredText(config, key);
    return text === null ? null : this.tokenId(text);
  }

  #encodePlain(text: string, sectionIndex: number, ids: TokenIdList): void {
    this.#known.encode(text, sectionIndex === 0, ids, (piece) => this.#encodeNew(piece, sectionIndex, ids));
  }

  #encodeNew(text: string, sectionIndex: number, ids: TokenIdList): void {
    const { normalizer } = this.#parts;
    const normalized = normalizer === null ? text : normalizer.normalize(text);
    if (this.#normalizedTokens === null) {
      this.#encodeWords(normalized, sectionIndex, ids);
      return;
    }
    for (const section of this.#normalizedTokens.split(normalized, () => false)) {
      if ('token' in section) ids.push(section.token.id);
      else this.#encodeWords(section.text, sectionIndex, ids);
    }
  }

  #encodeWords(text: string, sectionIndex: number, ids: TokenIdList): void {
    if (text.length === 0) return;
    const { pre_tokenizer: preTokenizer, model } = this.#parts;
    const options = { section_index: sectionIndex };
    const push = (known: number | undefined) => {
      const id = known ?? this.unkTokenId;
      if (id !== null) ids.push(id);
    };
    if (this.#bpe !== null) {
      this.#bpe.encode(text, options, push);
      return;
    }
    const words = preTokenizer?.pre_tokenize(text, options) ?? [text];
    for (const entry of model._call(words)) push(model.tokens_to_ids.get(entry));
  }
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Decodes UTF-8; a byte order mark stays, invalid bytes become U+FFFD. */
export function decodeUtf8(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

/**
 * Runs a normalizer within a time limit: a start must not wait for ever for an unknown pattern, neither with one added
 * token nor with all of them.
 */
function boundedNormalizer(
  json: TokenizerJson,
  normalizer: LibraryParts['normalizer'],
): (text: string) => string {
  if (normalizer === null) return (text) => text;
  if (unprovenComponents(json.normalizer, 'normalizer') === null) return (text) => normalizer.normalize(text);
  const end = performance.now() + NORMALIZE_LIMIT_MS;
  return (text) => {
    try {
      return runWithin(Math.max(1, Math.ceil(end - performance.now())), () => normalizer.normalize(text));
    } catch (error) {
      const shown = JSON.stringify(text.slice(0, 60));
      throw new TokenizerError(
        `tokenizer.json: the normalizer does not get through with the added token ${shown}: ${asSentence(messageOf(error))}`,
        { cause: error },
      );
    }
  };
}

/** Makes a test whether [start, end) of the joined text lies within one segment that may hold special tokens. */
function specialRanges(segments: readonly TextSegment[]): (start: number, end: number) => boolean {
  if (segments.length === 1) return () => segments[0]!.special;
  const ends: number[] = [];
  let length = 0;
  for (const segment of segments) {
    length += segment.text.length;
    ends.push(length);
  }
  // Calls come with rising starts, so the segment is found by walking on from the last one.
  let current = 0;
  return (start, end) => {
    while (ends[current]! <= start) current++;
    return segments[current]!.special && end <= ends[current]!;
  };
}

function addedToken(json: TokenizerJson['added_tokens'][number]): AddedToken {
  return {
    id: json.id,
    content: json.content,
    special: json.special ?? false,
    singleWord: json.single_word ?? false,
    stripLeft: json.lstrip ?? false,
    stripRight: json.rstrip ?? false,
  };
}

/** Text of a token in tokenizer_config.json, which gives it as a string, or as an object with `content`. */
function configuredText(config: Record<string, unknown>, key: string): string | null {
  const value = config[key];
  if (typeof value === 'string') return value;
  const content = (value as { content?: unknown } | null | undefined)?.content;
  return typeof content === 'string' ? content : null;
}

const script = new Script('work()');

/**
 * Runs work in this thread that may not end by itself, such as an unknown regular expression.
 * @param limitMs milliseconds after which it is broken off @throws Error with code ERR_SCRIPT_EXECUTION_TIMEOUT
 */
function runWithin<T>(limitMs: number, work: () => T): T {
  return script.runInContext(createContext({ work }), { timeout: limitMs }) as T;
}
