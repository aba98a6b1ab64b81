import * as z from 'zod';
import { about, component, optional } from '../../../schemas/fields.js';
import { metadata } from '../../web/metadata.js';
import { inputItem, MAX_ITEMS } from './response-items.js';

const MAX_TEXTS = 'Up to 16 texts by names, which come back with the conversation.';

export const createConversationSchema = component(
  'CreateConversationRequest',
  z.object({
    items: optional(z.array(inputItem).max(MAX_ITEMS), 'Items that it begins with.'),
    metadata: optional(metadata, MAX_TEXTS),
  }),
  'A conversation to keep.',
);

export const updateConversationSchema = component(
  'UpdateConversationRequest',
  z.object({
    metadata: about(metadata.nullable(), `${MAX_TEXTS} They take the place of those that it has.`),
  }),
  'What is changed of a conversation.',
);

export const createItemsSchema = component(
  'CreateItemsRequest',
  z.object({ items: about(z.array(inputItem).min(1).max(MAX_ITEMS), 'Items that are put at its end.') }),
  'Items for a conversation.',
);
