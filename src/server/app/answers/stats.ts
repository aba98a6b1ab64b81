import * as z from 'zod';
import { about } from '../../../schemas/fields.js';
import { errors, jsonAnswer } from '../../web/described-answers.js';
import type { Responses } from '../../web/route.js';

const model = about(z.string(), 'The model whose engine it is.');

export function statsResponses(): Responses {
  const answer = z.looseObject({ model, 'Iteration Counter': z.int(), 'Active Request Count': z.int() });
  return {
    200: jsonAnswer("The batch manager's keys, and the name of the model.", answer),
    ...errors(400, 401, 404),
  };
}

export function statsStreamResponses(): Responses {
  const event = z.looseObject({ model });
  const example = 'event: stats\ndata: {"model":"m","Iteration Counter":7}\n\n';
  return {
    200: {
      description: 'Events of the types stats and formation.',
      content: { 'text/event-stream': { schema: event, example } },
    },
    ...errors(400, 401, 404, 503),
  };
}

export function modelsStreamResponses(): Responses {
  const event = z.looseObject({
    models: about(z.int(), 'Number of versions of all models.'),
    rows: about(z.array(z.looseObject({ name: z.string() })), 'A row for each, or for the foremost.'),
  });
  const example =
    'event: models\ndata: {"v":1,"timeMs":1763783400123,"models":1,"states":{"READY":1},"waiting":0,"running":0,"rows":[...]}\n\n';
  return {
    200: {
      description: 'Events of the type models.',
      content: { 'text/event-stream': { schema: event, example } },
    },
    ...errors(400, 401, 503),
  };
}
