import * as z from 'zod';
import type { GivenBias } from '../../../generation/bias-texts.js';
import { type About, about, optional } from '../../../schemas/fields.js';

/** Most biases of a request: many times OpenAI's limit. */
const MAX_BIASES = 16_384;
const MIN_BIAS = -100;
const MAX_BIAS = 100;
/** Most texts among them, and their longest: each is encoded. */
const MAX_TEXTS = 1024;
const MAX_TEXT_LENGTH = 256;

/** Pattern of a token id, which is a key of an object and so a text. */
const TOKEN = /^(0|[1-9]\d{0,9})$/;
/** A number that is no id: it is not meant as a text either. */
const OTHER_NUMBER = /^[+-]?(\d+(\.\d*)?|\.\d+)$/;

type Refuse = (message: string, path?: (string | number)[]) => never;

/** Gathers biases one by one. */
class Biases implements GivenBias {
  readonly byToken = new Map<number, number>();
  readonly byText: [string, number][] = [];
  readonly #refuse: Refuse;

  constructor(refuse: Refuse) {
    this.#refuse = refuse;
  }

  add(key: unknown, value: unknown, path: string | number): void {
    const bias = value === false ? Number.NEGATIVE_INFINITY : value;
    if (typeof bias !== 'number') this.#refuse('expected a number, or false for what is never drawn', [path]);
    else if (value !== false && !(bias >= MIN_BIAS && bias <= MAX_BIAS))
      this.#refuse(`expected a number from ${MIN_BIAS} to ${MAX_BIAS}`, [path]);
    else if (typeof key === 'number' && Number.isInteger(key) && key >= 0 && key < 2 ** 31)
      this.#addToken(key, bias, path);
    else if (typeof key !== 'string' || key === '')
      this.#refuse('expected the id of a token, such as 42, or a text', [path]);
    else if (TOKEN.test(key)) this.#addToken(Number(key), bias, path);
    else if (OTHER_NUMBER.test(key))
      this.#refuse(`expected the id of a token, such as 42, or a text; ${key.slice(0, 20)} is no id`, [path]);
    else if (key.length > MAX_TEXT_LENGTH)
      this.#refuse(`a text has at most ${MAX_TEXT_LENGTH} characters`, [path]);
    else if (this.byText.length === MAX_TEXTS) this.#refuse(`at most ${MAX_TEXTS} texts are taken`);
    else this.byText.push([key, bias]);
  }

  #addToken(token: number, bias: number, path: string | number): void {
    if (this.byToken.has(token)) this.#refuse(`token ${token} has a bias already`, [path]);
    else this.byToken.set(token, bias);
  }
}

/** Reads biases. They are counted first, and checked without the validator, which takes 2 us for each key. */
function readBiases(value: unknown, context: z.RefinementCtx): GivenBias {
  let isRefused = false;
  const refuse = ((message: string, path: (string | number)[] = []) => {
    if (!isRefused) context.addIssue({ code: 'custom', message, path });
    isRefused = true;
    return z.NEVER;
  }) as Refuse;
  if (typeof value !== 'object' || value === null) {
    return refuse('expected an object from token ids to numbers, or a list of such pairs');
  }
  const entries = Array.isArray(value) ? value : Object.entries(value);
  if (entries.length > MAX_BIASES) {
    return refuse(`it holds ${entries.length} biases, at most ${MAX_BIASES} are taken`);
  }
  const biases = new Biases(refuse);
  for (const [i, entry] of entries.entries()) {
    const path = Array.isArray(value) ? i : (entry as [string])[0];
    if (!Array.isArray(entry) || entry.length !== 2)
      return refuse('expected a pair of token and number', [path]);
    biases.add(entry[0], entry[1], path);
    if (isRefused) break;
  }
  return biases;
}

export const logitBias = about(optional(z.unknown().transform(readBiases)), {
  description:
    `Added to the logits of tokens at every step: an object from token ids to numbers from ${MIN_BIAS} (never drawn) to ` +
    `${MAX_BIAS}, or a list of pairs, of ${MAX_BIASES} tokens at most and no more than the vocabulary has. A text in place of an ` +
    'id stands for all of its tokens; false in place of a number: never drawn.',
  examples: [{ '42': -100 }, [['swan', 3]]],
  type: ['object', 'array', 'null'],
  additionalProperties: { type: ['number', 'boolean'], minimum: MIN_BIAS, maximum: MAX_BIAS },
} as About);
