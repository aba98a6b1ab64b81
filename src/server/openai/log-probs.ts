import type { TextLogProb } from '../../generation/text-generation.js';
import type { TextCodec } from '../../generation/text-model.js';

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

export interface LegacyLogProbs {
  tokens: string[];
  token_logprobs: number[];
  top_logprobs: (Record<string, number> | null)[];
  text_offset: number[];
}

/** The `logprobs` of a legacy completion. @param base characters before the generated text (an echoed prompt). */
export function legacyLogProbs(
  codec: TextCodec,
  entries: readonly TextLogProb[],
  base: number,
): LegacyLogProbs {
  const name = (token: number) => tokenName(codec.tokenBytes(token));
  return {
    tokens: entries.map((entry) => name(entry.token)),
    token_logprobs: entries.map((entry) => clamp(entry.logProb)),
    top_logprobs: entries.map(({ top }) =>
      top.length === 0
        ? null
        : Object.fromEntries(top.map((other) => [name(other.token), clamp(other.logProb)])),
    ),
    text_offset: entries.map((entry) => base + entry.offset),
  };
}
