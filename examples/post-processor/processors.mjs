// @ts-check
// Runs in the engine's worker, once for each token that a request of that name draws.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const demo = new URL('models/demo/gosling', import.meta.resolve('skein/package.json'));
const model = process.env.MODEL ?? fileURLToPath(demo);

/** Tokens whose text has an e in it; special ones, such as the end of an answer, stay possible. */
const tokenizer = JSON.parse(readFileSync(`${model}/tokenizer.json`, 'utf8'));
const special = new Set(tokenizer.added_tokens.map((/** @type {{ id: number }} */ token) => token.id));
const withE = Object.entries(/** @type {Record<string, number>} */ (tokenizer.model.vocab))
  .filter(([text, id]) => /e/i.test(text) && !special.has(id))
  .map(([, id]) => id);

/** @type {import('skein').LogitsPostProcessor} */
export function withoutE(_requestId, logits, tokensPerBeam, stream) {
  stream.synchronize(); // returns at once on a CPU, where nothing is queued
  const vocabSize = logits.length / tokensPerBeam.length;
  for (let row = 0; row < logits.length; row += vocabSize) {
    for (const token of withE) logits[row + token] = Number.NEGATIVE_INFINITY;
  }
}
