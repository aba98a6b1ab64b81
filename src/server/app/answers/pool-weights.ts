import * as z from 'zod';
import { about } from '../../../schemas/fields.js';
import { errors, jsonAnswer } from '../../web/described-answers.js';
import type { Responses } from '../../web/route.js';

const weights = () =>
  jsonAnswer(
    'The weights.',
    z.object({
      object: z.literal('pool_weights'),
      weights: about(z.record(z.string(), z.number()), 'By system_fingerprint; {}: nothing is shared.'),
    }),
  );

export function poolWeightsResponses(): Responses {
  return { 200: weights(), ...errors(401, 404) };
}

export function setPoolWeightsResponses(): Responses {
  return { 200: weights(), ...errors(400, 401, 403, 404, 413) };
}
