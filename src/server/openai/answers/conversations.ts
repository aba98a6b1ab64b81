// Schemas of answers for the description of the API, imported when it is asked for.
import * as z from 'zod';
import { about, component } from '../../../schemas/fields.js';
import { errors, jsonAnswer } from '../../web/described-answers.js';
import type { Responses } from '../../web/route.js';
import { keptItem } from './responses.js';

const conversation = component(
  'Conversation',
  z.object({
    id: about(z.string(), { description: 'Its name for later requests.', examples: ['conv_5f1c'] }),
    object: z.literal('conversation'),
    created_at: about(z.int(), 'Seconds since 1970.'),
    metadata: z.record(z.string(), z.string()),
  }),
  'A conversation, without its items.',
);

export const conversationResponses = (): Responses => ({
  200: jsonAnswer('The conversation.', conversation),
  ...errors(400, 401, 404, 413, 429),
});

export function deletedConversationResponses(): Responses {
  const deleted = z.object({
    id: z.string(),
    object: z.literal('conversation.deleted'),
    deleted: z.literal(true),
  });
  return { 200: jsonAnswer('It is forgotten.', deleted), ...errors(401, 404) };
}

export const conversationItemResponses = (): Responses => ({
  200: jsonAnswer('The item.', keptItem),
  ...errors(400, 401, 404),
});
