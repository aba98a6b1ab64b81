import { setImmediate as nextTurn } from 'node:timers/promises';
import { InvalidRequestError } from '../errors/request-errors.js';
import { encodeTexts } from './encode-texts.js';
import type { TextCodec } from './text-model.js';

/** A text, or a sequence of tokens, over which DRY sees no repetition. */
export type DryBreaker = string | readonly number[];

/** Breakers of a request that uses DRY and names none: those of llama.cpp. */
const DEFAULT_DRY_BREAKERS: readonly string[] = ['\n', ':', '"', '*'];

/** Most sequences of tokens that all breakers of a request stand for. */
export const BREAKER_SEQUENCES_MAX = 16_384;
/** Longest sequence: the token that a breaker begins in, and those of its rest. */
const MAX_TOKENS = 20;
/** Number of searches for a text in a token in one turn of the event loop. */
const LOOKS_A_TURN = 16_384;
/** Number of texts whose sequences are kept for each model. */
const KEPT = 64;

const keptOf = new WeakMap<TextCodec, Map<string, readonly number[][]>>();

/**
 * Sequences of tokens that breakers stand for, each once. A text is found wherever it begins: alone in each token that holds the
 * whole of it, and as the end of a token followed by the tokens of its rest.
 *
 *   breaker "ab"    tokens "xaby" and "ab"; "xa" before the tokens of "b"
 *
 * @throws InvalidRequestError where they stand for more sequences together than BREAKER_SEQUENCES_MAX
 */
export async function dryBreakerTokens(
  codec: TextCodec,
  vocabSize: number,
  breakers: readonly DryBreaker[] = DEFAULT_DRY_BREAKERS,
): Promise<number[][]> {
  const kept = keptOf.get(codec) ?? new Map<string, readonly number[][]>();
  keptOf.set(codec, kept);
  const distinct = [...new Set(breakers)];
  const texts = distinct.filter((breaker) => typeof breaker === 'string');
  const room = new SequenceRoom();
  for (const breaker of distinct) {
    if (typeof breaker !== 'string') room.take(1);
    else room.take(kept.get(breaker)?.length ?? 0);
  }
  const missing = texts.filter((text) => !kept.has(text));
  const found = missing.length === 0 ? [] : await sequencesOf(codec, vocabSize, missing, room);
  const known = new Map(missing.map((text, i) => [text, found[i]!]));
  const all = new Map<string, number[]>();
  for (const breaker of distinct) {
    const sequences = typeof breaker === 'string' ? (known.get(breaker) ?? kept.get(breaker)!) : [breaker];
    for (const sequence of sequences) all.set(sequence.join(), [...sequence]);
  }
  for (const [text, sequences] of known) {
    if (kept.size === KEPT) kept.delete(kept.keys().next().value!);
    kept.set(text, sequences);
  }
  return [...all.values()];
}

/** Counts sequences of all breakers of a request, so that the search for them ends where they are too many. */
class SequenceRoom {
  #left = BREAKER_SEQUENCES_MAX;

  /** @throws InvalidRequestError */
  take(count: number): void {
    this.#left -= count;
    if (this.#left >= 0) return;
    throw new InvalidRequestError(
      `The breakers stand for more than ${BREAKER_SEQUENCES_MAX} sequences of tokens; leave out those that many words hold.`,
      'dryBreakers',
    );
  }
}

/** Tokens' bytes of each model, as texts of Latin-1. */
const wordsOf = new WeakMap<TextCodec, string[]>();

/** The bytes of a token, read once. */
function wordOf(codec: TextCodec, words: string[], token: number): string {
  words[token] ??= Buffer.from(codec.tokenBytes(token)).toString('latin1');
  return words[token];
}

/** Bytes of a text as a text of Latin-1, in which a byte is a character. */
const bytesOf = (text: string) => Buffer.from(text, 'utf8').toString('latin1');

async function sequencesOf(
  codec: TextCodec,
  vocabSize: number,
  texts: readonly string[],
  room: SequenceRoom,
): Promise<number[][][]> {
  const words = wordsOf.get(codec) ?? [];
  wordsOf.set(codec, words);
  const tokensATurn = Math.ceil(LOOKS_A_TURN / texts.length);
  const wanted = texts.map((text) => bytesOf(text));
  const whole: number[][] = texts.map(() => []);
  /** Tokens that end with a beginning of the text, by the rest of it. */
  const heads = texts.map(() => new Map<string, number[]>());
  for (let token = 0; token < vocabSize; token++) {
    if (token % tokensATurn === 0) await nextTurn();
    const word = wordOf(codec, words, token);
    for (const [i, text] of wanted.entries()) {
      if (word.includes(text)) {
        room.take(1);
        whole[i]!.push(token);
        continue;
      }
      for (let length = Math.min(text.length - 1, word.length); length > 0; length--) {
        if (!word.endsWith(text.slice(0, length))) continue;
        const rest = Buffer.from(text.slice(length), 'latin1');
        // A rest that begins inside of a character has no tokens of its own.
        if ((rest[0]! & 0xc0) === 0x80) continue;
        const key = rest.toString('utf8');
        room.take(1);
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
