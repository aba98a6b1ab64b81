import * as z from 'zod';
import { about, component } from '../../../schemas/fields.js';
import { jsonAnswer } from '../../web/described-answers.js';
import type { Responses } from '../../web/route.js';
import { model, refusals, usage } from './encoders.js';

export function classifyResponses(): Responses {
  const one = z.object({
    index: about(z.int(), 'Which of the inputs.'),
    label: about(z.string(), 'The label with the greatest score.'),
    probs: about(z.array(z.number()), 'The score of each label, in the order of `labels`.'),
    num_classes: about(z.int(), 'Number of labels.'),
  });
  const answer = component(
    'Classification',
    z.object({
      id: z.string(),
      object: z.literal('list'),
      created: about(z.int(), 'Seconds since 1970.'),
      model,
      labels: about(z.array(z.string()), 'Names of the labels.'),
      data: z.array(one),
      usage,
    }),
    'Scores of labels, in the order of the inputs.',
  );
  return { 200: jsonAnswer('The scores.', answer), ...refusals() };
}

export function predictResponses(): Responses {
  const prediction = z.object({ score: z.number(), label: z.string() });
  const ofOne = about(z.array(prediction), 'The labels of a text, the likeliest first.');
  const answer = z.union([ofOne, about(z.array(ofOne), 'Those of each text of a batch.')]);
  return { 200: jsonAnswer('The scores.', answer), ...refusals() };
}
