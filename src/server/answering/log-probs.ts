import { lengthOf } from '../../../models/jinja/text/code-points.js';
import type { PromptLogProbList } from '../../generation/returned-logits.js';
import type { TextLogProb, TokenLogProb } from '../../generation/text-generation.js';
import type { PromptTokens, TextCodec } from '../../generation/text-model.js';
import { JsonList, JsonObject } from '../web/bodies/json-parts.js';

/** Least log-prob in answers: JSON has no -Infinity, and other engines use this value. */
const MIN_LOG_PROB = -9999;

const clamp = (logProb: number) => Math.max(logProb, MIN_LOG_PROB);
const strict = new TextDecoder('utf-8', { fatal: true });

/** Text of a token; a part of a character is written as its bytes, so that no two tokens look the same. */
function tokenName(bytes: Uint8Array): string {
  try {
    return strict.decode(bytes);
  } catch {
    return `bytes:${Array.from(bytes, (byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')}`;
  }
}

/** How tokens are named: by their texts, or by their ids. */
export type TokenNames = 'texts' | 'ids';

export function tokenNames(request: { return_tokens_as_token_ids?: boolean | undefined }): TokenNames {
  return request.return_tokens_as_token_ids ? 'ids' : 'texts';
}

/** Name of a token by its id, as vLLM writes it. */
const idName = (token: number) => `token_id:${token}`;

function chatToken(
  codec: TextCodec,
  { token, logProb }: { token: number; logProb: number },
  names: TokenNames,
) {
  const bytes = codec.tokenBytes(token);
  const name = names === 'ids' ? idName(token) : tokenName(bytes);
  return { token: name, logprob: clamp(logProb), bytes: Array.from(bytes) };
}

/** Entry of a chat choice's log-probs. */
export function chatLogProb(codec: TextCodec, entry: TextLogProb, names: TokenNames = 'texts') {
  const top = entry.top.map((other) => chatToken(codec, other, names));
  return { ...chatToken(codec, entry, names), top_logprobs: top };
}

/** The `logprobs` of a chat choice, each entry made as it is written. */
export function chatLogProbs(
  codec: TextCodec,
  entries: readonly TextLogProb[],
  names: TokenNames = 'texts',
): JsonObject {
  return new JsonObject({
    content: JsonList.of(entries, (entry) => chatLogProb(codec, entry, names)),
    refusal: null,
  });
}

/** JSON of the `logprobs` of a chat choice, for frames: the constant text around each token is written once. */
export function chatLogProbsJson(
  codec: TextCodec,
  entries: readonly TextLogProb[],
  names: TokenNames = 'texts',
): string {
  if (names === 'ids')
    return JSON.stringify({
      content: entries.map((entry) => chatLogProb(codec, entry, names)),
      refusal: null,
    });
  const words = tokenWordsOf(codec);
  let content = '';
  for (const entry of entries) {
    let top = '';
    for (const other of entry.top) top += `${top === '' ? '' : ','}${words.write(other)}}`;
    content += `${content === '' ? '' : ','}${words.write(entry)},"top_logprobs":[${top}]}`;
  }
  return `{"content":[${content}],"refusal":null}`;
}

/** Number of tokens whose text is kept: the most probable ones are the same few thousand again and again. */
const MAX_WORDS = 16_384;

/** JSON of tokens around their log-probs: `{"token":" the","logprob":` and `,"bytes":[32,116,104,101]`. */
class TokenWords {
  readonly #codec: TextCodec;
  readonly #words = new Map<number, readonly [before: string, behind: string]>();

  constructor(codec: TextCodec) {
    this.#codec = codec;
  }

  /** JSON of an entry without the closing brace. */
  write({ token, logProb }: TokenLogProb): string {
    const [before, behind] = this.#words.get(token) ?? this.#add(token);
    return before + clamp(logProb) + behind;
  }

  #add(token: number): readonly [string, string] {
    const bytes = this.#codec.tokenBytes(token);
    const name = JSON.stringify(tokenName(bytes));
    const words = [`{"token":${name},"logprob":`, `,"bytes":[${bytes.join()}]`] as const;
    if (this.#words.size === MAX_WORDS) this.#words.clear();
    this.#words.set(token, words);
    return words;
  }
}

const wordsByCodec = new WeakMap<TextCodec, TokenWords>();

function tokenWordsOf(codec: TextCodec): TokenWords {
  let words = wordsByCodec.get(codec);
  if (words === undefined) {
    words = new TokenWords(codec);
    wordsByCodec.set(codec, words);
  }
  return words;
}

/**
 * The `prompt_logprobs` of vLLM: an object by token ids for each token of the prompt, null for the first, which nothing
 * precedes. The rank of a token that is not among the most probable ones is not known.
 * @param found log-probs of each token but the first; null: none is known.
 * @param count number of most probable tokens in each entry.
 */
export function promptLogProbs(codec: TextCodec, found: PromptLogProbList | null, count: number): JsonList {
  const entry = ({ token, logProb }: TokenLogProb, rank: number | null) => ({
    logprob: clamp(logProb),
    rank,
    decoded_token: tokenName(codec.tokenBytes(token)),
  });
  return new JsonList(1 + (found?.length ?? 0), (position) => {
    if (position === 0) return null;
    const own = found!.own(position - 1);
    const top = found!.top(position - 1);
    const place = top.findIndex(({ token }) => token === own.token);
    return Object.fromEntries([
      [own.token, entry(own, place < 0 ? null : place + 1)],
      ...top.slice(0, count).map((other, i) => [other.token, entry(other, i + 1)]),
    ]);
  });
}

/** Tokens with their log-probs and their offsets in a text, each looked up when it is written. */
export interface PlacedLogProbs {
  readonly length: number;
  token(index: number): number;
  /** Log-prob of a token; null where nothing precedes it. */
  logProb(index: number): number | null;
  /** Offset of a token in the text, in code points. */
  offset(index: number): number;
  top(index: number): readonly TokenLogProb[];
}

/**
 * Log-probs of generated tokens with their offsets. @param base code points before the generated text (an
 * echoed prompt).
 */
export function placedBehind(base: number, entries: readonly TextLogProb[]): PlacedLogProbs {
  return {
    length: entries.length,
    token: (i) => entries[i]!.token,
    logProb: (i) => entries[i]!.logProb,
    offset: (i) => base + entries[i]!.codePointOffset,
    top: (i) => entries[i]!.top,
  };
}

/** Joins two lists of log-probs. */
export function oneAfterAnother(first: PlacedLogProbs, second: PlacedLogProbs): PlacedLogProbs {
  const { length } = first;
  const pick = <T>(read: (list: PlacedLogProbs, index: number) => T) => {
    return (index: number) => (index < length ? read(first, index) : read(second, index - length));
  };
  return {
    length: length + second.length,
    token: pick((list, i) => list.token(i)),
    logProb: pick((list, i) => list.logProb(i)),
    offset: pick((list, i) => list.offset(i)),
    top: pick((list, i) => list.top(i)),
  };
}

/** The `logprobs` of a legacy completion. */
export function legacyLogProbs(
  codec: TextCodec,
  entries: PlacedLogProbs,
  names: TokenNames = 'texts',
): JsonObject {
  const { length } = entries;
  const name = (token: number) => (names === 'ids' ? idName(token) : tokenName(codec.tokenBytes(token)));
  return new JsonObject({
    tokens: new JsonList(length, (i) => name(entries.token(i))),
    token_logprobs: new JsonList(length, (i) => {
      const logProb = entries.logProb(i);
      return logProb === null ? null : clamp(logProb);
    }),
    top_logprobs: new JsonList(length, (i) => {
      const top = entries.top(i);
      // The request asked only for the token's own log-prob, or the token has no predecessor.
      if (top.length === 0) return entries.logProb(i) === null ? null : {};
      return Object.fromEntries(top.map((other) => [name(other.token), clamp(other.logProb)]));
    }),
    text_offset: new JsonList(length, (i) => entries.offset(i)),
  });
}

/**
 * Offsets of an echoed prompt's tokens, in code points. Tokens that are not in the text, such as a BOS that was added,
 * are at its beginning.
 */
export function echoOffsets(codec: TextCodec, echo: string, prompt: PromptTokens): Int32Array {
  const detokenizer = codec.createDetokenizer({ skipSpecialTokens: false });
  const offsets = new Int32Array(prompt.length);
  let length = 0;
  for (let i = 0; i < prompt.length; i++) {
    offsets[i] = length;
    length += lengthOf(detokenizer.push([prompt[i]!]));
  }
  length += lengthOf(detokenizer.flush());
  const shown = lengthOf(echo);
  const added = Math.max(0, length - shown);
  return offsets.map((offset) => Math.min(shown, Math.max(0, offset - added)));
}

/**
 * Log-probs of an echoed prompt's tokens with their offsets.
 * @param found log-probs of each token but the first; null: none is known. @param count number of most probable tokens
 * in each entry.
 */
export function echoLogProbs(
  prompt: PromptTokens,
  offsets: Int32Array,
  found: PromptLogProbList | null,
  count: number,
): PlacedLogProbs {
  return {
    length: prompt.length,
    token: (i) => prompt[i]!,
    logProb: (i) => (i === 0 ? null : (found?.own(i - 1).logProb ?? null)),
    offset: (i) => offsets[i]!,
    top: (i) => (i === 0 ? [] : (found?.top(i - 1, count) ?? [])),
  };
}
