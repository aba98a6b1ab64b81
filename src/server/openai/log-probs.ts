import type { PromptLogProb } from '../../generation/returned-logits.js';
import type { TextLogProb, TokenLogProb } from '../../generation/text-generation.js';
import type { PromptTokens, TextCodec } from '../../generation/text-model.js';

/** JSON has no -Infinity; clients compare against this value of other engines. */
const LEAST_LOG_PROB = -9999;

const clamp = (logProb: number) => Math.max(logProb, LEAST_LOG_PROB);
const strict = new TextDecoder('utf-8', { fatal: true });

/** A token's text; a part of a character is written as its bytes, so that two tokens never look the same. */
function tokenName(bytes: Uint8Array): string {
  try {
    return strict.decode(bytes);
  } catch {
    return `bytes:${Array.from(bytes, (byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')}`;
  }
}

function chatToken(codec: TextCodec, { token, logProb }: { token: number; logProb: number }) {
  const bytes = codec.tokenBytes(token);
  return { token: tokenName(bytes), logprob: clamp(logProb), bytes: Array.from(bytes) };
}

/** The `logprobs` of a chat choice. */
export function chatLogProbs(codec: TextCodec, entries: readonly TextLogProb[]) {
  return {
    content: entries.map((entry) => ({
      ...chatToken(codec, entry),
      top_logprobs: entry.top.map((other) => chatToken(codec, other)),
    })),
    refusal: null,
  };
}

/** The same as JSON, for frames: what is said of a token at every place is written once. */
export function chatLogProbsJson(codec: TextCodec, entries: readonly TextLogProb[]): string {
  const words = tokenWordsOf(codec);
  let content = '';
  for (const entry of entries) {
    let top = '';
    for (const other of entry.top) top += `${top === '' ? '' : ','}${words.write(other)}}`;
    content += `${content === '' ? '' : ','}${words.write(entry)},"top_logprobs":[${top}]}`;
  }
  return `{"content":[${content}],"refusal":null}`;
}

/** Tokens whose words are kept: the most probable ones are the same few thousand again and again. */
const MAX_WORDS = 16_384;

/** The JSON of tokens around their log-probs: `{"token":" the","logprob":` and `,"bytes":[32,116,104,101]`. */
class TokenWords {
  readonly #codec: TextCodec;
  readonly #words = new Map<number, readonly [before: string, behind: string]>();

  constructor(codec: TextCodec) {
    this.#codec = codec;
  }

  /** All but the closing brace. */
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
 * The `prompt_logprobs` of vLLM: an object from token ids for each token of the prompt, null for the first, which nothing
 * comes before. The rank of a token that is not among the most probable ones is not known.
 * @param found of each token but the first. @param count most probable ones that are given beside each.
 */
export function promptLogProbs(codec: TextCodec, found: readonly PromptLogProb[], count: number) {
  const entry = ({ token, logProb }: { token: number; logProb: number }, rank: number | null) => ({
    logprob: clamp(logProb),
    rank,
    decoded_token: tokenName(codec.tokenBytes(token)),
  });
  const written = found.map(({ top, ...own }) => {
    const place = top.findIndex(({ token }) => token === own.token);
    return Object.fromEntries([
      [own.token, entry(own, place < 0 ? null : place + 1)],
      ...top.slice(0, count).map((other, i) => [other.token, entry(other, i + 1)]),
    ]) as Record<string, ReturnType<typeof entry>>;
  });
  return [null, ...written];
}

export interface LegacyLogProbs {
  tokens: string[];
  token_logprobs: (number | null)[];
  top_logprobs: (Record<string, number> | null)[];
  text_offset: number[];
}

/** A token with its place in the text; null: nothing comes before it. */
export interface PlacedLogProb {
  token: number;
  logProb: number | null;
  offset: number;
  top: readonly TokenLogProb[];
}

/** The `logprobs` of a legacy completion. @param base characters before the generated text (an echoed prompt). */
export function legacyLogProbs(
  codec: TextCodec,
  entries: readonly PlacedLogProb[],
  base: number,
): LegacyLogProbs {
  const name = (token: number) => tokenName(codec.tokenBytes(token));
  return {
    tokens: entries.map((entry) => name(entry.token)),
    token_logprobs: entries.map(({ logProb }) => (logProb === null ? null : clamp(logProb))),
    top_logprobs: entries.map(({ top }) =>
      top.length === 0
        ? null
        : Object.fromEntries(top.map((other) => [name(other.token), clamp(other.logProb)])),
    ),
    text_offset: entries.map((entry) => base + entry.offset),
  };
}

/**
 * The tokens of an echoed prompt with their places in it. Tokens that are not in the text, such as a BOS that was added, stand
 * where it begins.
 * @param found of each token but the first. @param count most probable ones that are given beside each.
 */
export function echoLogProbs(
  codec: TextCodec,
  echo: string,
  prompt: PromptTokens,
  found: readonly PromptLogProb[],
  count: number,
): PlacedLogProb[] {
  const detokenizer = codec.createDetokenizer({ skipSpecialTokens: false });
  const ends: number[] = [];
  let length = 0;
  for (const token of prompt) {
    ends.push(length);
    length += detokenizer.push([token]).length;
  }
  length += detokenizer.flush().length;
  const added = Math.max(0, length - echo.length);
  return Array.from(prompt, (token, i) => {
    const own = i === 0 ? null : found[i - 1]!;
    return {
      token,
      logProb: own?.logProb ?? null,
      offset: Math.min(echo.length, Math.max(0, ends[i]! - added)),
      top: own?.top.slice(0, count) ?? [],
    };
  });
}
