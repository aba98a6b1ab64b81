import { InferError } from '../../../callbacks/infer/infer-error.js';
import { decodeWordList } from '../../../callbacks/stop-words.js';
import { encodeTexts } from '../../generation/encode-texts.js';
import type { TextCodec } from '../../generation/text-model.js';
import { BAD_WORD_LIMITS, STOP_LIMITS, type WordLimits } from '../../generation/word-limits.js';
import type { GivenInputs } from './given-inputs.js';

const LIMITS = {
  stop_words: STOP_LIMITS,
  bad_words: BAD_WORD_LIMITS,
  embedding_bias_words: { most: 1024, longest: 32_768, units: 32_768 },
} satisfies Record<string, WordLimits>;

/** Most words of a list of tokens, and tokens of all. */
const MAX_WORDS = 1024;
const MAX_WORD_TOKENS = 32_768;

const refused = (message: string) => new InferError(message, 'invalid');

/** Texts of which the empty ones, as many clients send for none, are left out. @throws InferError for more than are taken */
export function wordTexts(given: GivenInputs, input: keyof typeof LIMITS): string[] {
  const { most, longest, units } = LIMITS[input];
  const texts = (given.texts(input) ?? []).filter((text) => text !== '');
  const name = given.nameOf(input);
  if (texts.length > most) throw refused(`'${name}' has ${texts.length} texts; at most ${most} are taken`);
  const long = texts.find(({ length }) => length > longest);
  if (long !== undefined)
    throw refused(`'${name}' has a text of ${long.length} characters; at most ${longest} are taken`);
  const sum = texts.reduce((all, { length }) => all + length, 0);
  if (sum > units) throw refused(`the texts of '${name}' have ${sum} characters; at most ${units} are taken`);
  return texts;
}

/** Lists of tokens. @throws ParameterError for what is no such list, InferError for more than are taken */
export function wordList(
  given: GivenInputs,
  input: 'stop_words_list' | 'bad_words_list' | 'dry_sequence_breakers',
): number[][] {
  const tensor = given.get(input);
  if (tensor === undefined) return [];
  const length = tensor.shape.at(-1)!;
  if (length > MAX_WORD_TOKENS)
    throw refused(`'${input}' has ${length} places; at most ${MAX_WORD_TOKENS} are taken`);
  const words = decodeWordList(input, [1, 2, length], given.integers(input)!);
  if (words.length > MAX_WORDS)
    throw refused(`'${input}' has ${words.length} words; at most ${MAX_WORDS} are taken`);
  return words.map((word) => [...word]);
}

/** Numbers added to the logits of tokens; undefined: none. */
export async function logitBiasOf(
  given: GivenInputs,
  codec: TextCodec,
  signal: AbortSignal | undefined,
): Promise<ReadonlyMap<number, number> | undefined> {
  const biases = new Map<number, number>();
  const add = (token: number, bias: number) => biases.set(token, (biases.get(token) ?? 0) + bias);
  const tokens = given.integers('logit_bias_tokens') ?? new Int32Array(0);
  const values = given.floats('logit_bias') ?? new Float32Array(0);
  if (tokens.length !== values.length)
    throw refused(
      `'logit_bias' has ${values.length} values and 'logit_bias_tokens' ${tokens.length} tokens; as many are expected`,
    );
  for (const [i, token] of tokens.entries()) add(token, values[i]!);
  for (const [token, bias] of await wordBiases(given, codec, signal)) add(token, bias);
  return biases.size === 0 ? undefined : biases;
}

/** Each token of each of embedding_bias_words with the word's weight. @throws InferError */
export async function wordBiases(
  given: GivenInputs,
  codec: TextCodec,
  signal: AbortSignal | undefined,
): Promise<[token: number, bias: number][]> {
  const numWords = given.texts('embedding_bias_words')?.length ?? 0;
  const weights = given.floats('embedding_bias_weights') ?? new Float32Array(0);
  const words = wordTexts(given, 'embedding_bias_words');
  if (numWords === 0 && weights.length === 0) return [];
  if (words.length !== numWords || numWords !== weights.length) {
    const [texts, values] = [given.nameOf('embedding_bias_words'), given.nameOf('embedding_bias_weights')];
    throw refused(
      words.length === numWords
        ? `'${values}' has ${weights.length} values and '${texts}' ${numWords} texts; as many are expected`
        : `'${texts}' holds an empty text; it has no tokens`,
    );
  }
  const encoded = await encodeTexts(codec, words, { addSpecialTokens: false, signal });
  return encoded.flatMap((tokens, i) =>
    Array.from(tokens, (token): [number, number] => [token, weights[i]!]),
  );
}
