import { setImmediate as nextTurn } from 'node:timers/promises';
import { encodeTexts } from './encode-texts.js';
import { InvalidRequestError } from './errors.js';
import type { TextCodec } from './text-model.js';

/** A text, or a sequence of tokens, over which DRY sees no repetition. */
export type DryBreaker = string | readonly number[];

/** Breakers of a request that uses DRY and names none: those of llama.cpp. */
const DEFAULT_DRY_BREAKERS: readonly string[] = ['\n', ':', '"', '*'];

/** Most sequences of tokens that all breakers of a request stand for. */
export const BREAKER_SEQUENCES_MAX = 16_384;
/** Longest sequence: the token that a breaker begins in, and those of its rest. */
const MAX_TOKENS = 20;
/** Number of tokens that are looked at in one turn of the event loop. */
const TOKENS_A_TURN = 8192;
/** Number of texts whose sequences are kept for each model. */
const KEPT = 64;

const keptOf = new WeakMap<TextCodec, Map<string, readonly number[][]>>();

/**
 * Sequences of tokens that breakers stand for, each once. A text is found wherever it begins: alone in each token that holds the
 * whole of it, and as the end of a token followed by the tokens of its rest.
 *
 *   breaker "ab"    tokens "xaby" and "ab"; "xa" before the tokens of "b"
 *
 * @throws InvalidRequestError where they stand for more sequences than BREAKER_SEQUENCES_MAX
 */
export async function dryBreakerTokens(
  codec: TextCodec,
  vocabSize: number,
  breakers: readonly DryBreaker[] = DEFAULT_DRY_BREAKERS,
): Promise<number[][]> {
  const kept = keptOf.get(codec) ?? new Map<string, readonly number[][]>();
  keptOf.set(codec, kept);
  const texts = [...new Set(breakers.filter((breaker) => typeof breaker === 'string'))];
  const missing = texts.filter((text) => !kept.has(text));
  const found = missing.length === 0 ? [] : await sequencesOf(codec, vocabSize, missing);
  const known = new Map(missing.map((text, i) => [text, found[i]!]));
  const all = new Map<string, number[]>();
  for (const breaker of breakers) {
    const sequences = typeof breaker === 'string' ? (known.get(breaker) ?? kept.get(breaker)!) : [breaker];
    for (const sequence of sequences) all.set(sequence.join(), [...sequence]);
  }
  for (const [text, sequences] of known) {
    if (kept.size === KEPT) kept.delete(kept.keys().next().value!);
    kept.set(text, sequences);
  }
  if (all.size <= BREAKER_SEQUENCES_MAX) return [...all.values()];
  throw new InvalidRequestError(
    `The breakers stand for ${all.size} sequences of tokens, at most ${BREAKER_SEQUENCES_MAX} are taken; leave out those that many words hold.`,
    'dryBreakers',
  );
}

/** Bytes of a text as a text of Latin-1, in which a byte is a character. */
const bytesOf = (text: string) => Buffer.from(text, 'utf8').toString('latin1');

async function sequencesOf(
  codec: TextCodec,
  vocabSize: number,
  texts: readonly string[],
): Promise<number[][][]> {
  const wanted = texts.map((text) => bytesOf(text));
  const whole: number[][] = texts.map(() => []);
  /** Tokens that end with a beginning of the text, by the rest of it. */
  const heads = texts.map(() => new Map<string, number[]>());
  for (let token = 0; token < vocabSize; token++) {
    if (token > 0 && token % TOKENS_A_TURN === 0) await nextTurn();
    const word = Buffer.from(codec.tokenBytes(token)).toString('latin1');
    for (const [i, text] of wanted.entries()) {
      if (word.includes(text)) {
        whole[i]!.push(token);
        continue;
      }
      for (let length = Math.min(text.length - 1, word.length); length > 0; length--) {
        if (!word.endsWith(text.slice(0, length))) continue;
        const rest = Buffer.from(text.slice(length), 'latin1');
        // A rest that begins inside of a character has no tokens of its own.
        if ((rest[0]! & 0xc0) === 0x80) continue;
        const key = rest.toString('utf8');
        const of = heads[i]!.get(key);
        if (of === undefined) heads[i]!.set(key, [token]);
        else of.push(token);
      }
    }
  }
  const rests = [...new Set(heads.flatMap((of) => [...of.keys()]))];
  const encoded = await encodeTexts(codec, rests, { addSpecialTokens: false });
  const tokensOf = new Map(rests.map((rest, i) => [rest, [...encoded[i]!].slice(0, MAX_TOKENS - 1)]));
  return texts.map((_, i) => [
    ...whole[i]!.map((token) => [token]),
    ...[...heads[i]!].flatMap(([rest, tokens]) => tokens.map((token) => [token, ...tokensOf.get(rest)!])),
  ]);
}
