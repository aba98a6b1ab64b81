import * as z from 'zod';
import { errors, jsonAnswer } from '../../web/described-answers.js';
import type { Responses } from '../../web/route.js';

const file = (description: string, type: string): Responses[string] => ({
  description,
  content: { [type]: { schema: z.string() } },
});

export function openApiResponses(): Responses {
  return { 200: jsonAnswer('The description.', z.looseObject({ openapi: z.literal('3.1.0') })) };
}

export function docsResponses(): Responses {
  return { 200: file('The page. It needs nothing from any other server.', 'text/html') };
}

export function docsFileResponses(): Responses {
  return {
    200: {
      description: 'The file.',
      content: { 'text/javascript': { schema: z.string() }, 'text/css': { schema: z.string() } },
    },
    ...errors(400, 404),
  };
}

const NOT_CHANGED = { 304: { description: 'What If-None-Match names is what there is.' } };

export function dashboardResponses(): Responses {
  return {
    200: file('The page. It needs nothing from any other server.', 'text/html'),
    ...NOT_CHANGED,
    ...errors(404),
  };
}

export function dashboardFileResponses(): Responses {
  const text = { schema: z.string() };
  return {
    200: {
      description: 'The file.',
      content: { 'text/javascript': text, 'text/css': text, 'image/svg+xml': text },
    },
    ...NOT_CHANGED,
    ...errors(400, 404),
  };
}
