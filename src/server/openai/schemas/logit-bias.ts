import * as z from 'zod';
import { type About, about, optional } from './fields.js';

/** Most biases of a request: many times OpenAI's limit. */
const MAX_BIASES = 16_384;
const LEAST = -100;
const MOST = 100;

/** Pattern of a token id, which is a key of an object and so a text. */
const TOKEN = /^\d{1,10}$/;

/** Reads biases. They are counted first, and checked without the validator, which takes 2 us for each key. */
function readBiases(value: unknown, context: z.RefinementCtx): Map<number, number> {
  const refuse = (message: string, path: string[] = []): never => {
    context.addIssue({ code: 'custom', message, path });
    return z.NEVER;
  };
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return refuse('expected an object from token ids to numbers');
  }
  const entries = Object.entries(value);
  if (entries.length > MAX_BIASES) {
    return refuse(`it holds ${entries.length} biases, at most ${MAX_BIASES} are taken`);
  }
  const biases = new Map<number, number>();
  for (const [key, bias] of entries) {
    if (!TOKEN.test(key)) {
      const shown = JSON.stringify(key.length > 60 ? `${key.slice(0, 57)}...` : key);
      return refuse(`the key ${shown} is not the id of a token, such as "42"`);
    }
    if (typeof bias !== 'number') return refuse('expected a number', [key]);
    if (bias < LEAST || bias > MOST) return refuse(`expected a number from ${LEAST} to ${MOST}`, [key]);
    biases.set(Number(key), bias);
  }
  return biases;
}

export const logitBias = about(optional(z.unknown().transform(readBiases)), {
  description:
    `Added to the logits of tokens at every step: an object from token ids to numbers from ${LEAST} (never drawn) to ` +
    `${MOST}, of ${MAX_BIASES} tokens at most and no more than the vocabulary has.`,
  examples: [{ '42': -100 }],
  type: ['object', 'null'],
  additionalProperties: { type: 'number', minimum: LEAST, maximum: MOST },
} as About);
