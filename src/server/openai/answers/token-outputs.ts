import * as z from 'zod';
import { about } from '../../../schemas/fields.js';
import { jsonAnswer } from '../../web/described-answers.js';
import type { Responses } from '../../web/route.js';
import { refusals } from './encoders.js';

export function embedSparseResponses(): Responses {
  const weight = z.object({
    index: about(z.int(), 'The id of a token.'),
    value: about(z.number(), 'Its weight, above 0.'),
  });
  const answer = z.array(about(z.array(weight), 'The weights of a text, by ascending ids.'));
  return { 200: jsonAnswer('The weights of each text.', answer), ...refusals() };
}

export function embedAllResponses(): Responses {
  const vectors = about(z.array(z.array(z.number())), 'The vectors of a text, each of length 1.');
  return { 200: jsonAnswer('The vectors of each text.', z.array(vectors)), ...refusals() };
}
