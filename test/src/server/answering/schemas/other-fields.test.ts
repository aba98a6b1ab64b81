import { expect, it } from 'vitest';
import type * as z from 'zod';
import { type FieldsNode, fieldsNode } from '../../../../../src/schemas/fields-node.js';
import { messageRequestSchema } from '../../../../../src/server/anthropic/schemas/messages.js';
import { chatSchema, generateSchema } from '../../../../../src/server/ollama/schemas.js';
import { chatRequestSchema } from '../../../../../src/server/openai/schemas/chat.js';
import {
  classifyRequestSchema,
  predictRequestSchema,
} from '../../../../../src/server/openai/schemas/classify.js';
import { cohereEmbedSchema, cohereRerankSchema } from '../../../../../src/server/openai/schemas/cohere.js';
import { completionRequestSchema } from '../../../../../src/server/openai/schemas/completions.js';
import { embeddingRequestSchema } from '../../../../../src/server/openai/schemas/embeddings.js';
import {
  rerankRequestSchema,
  scoreRequestSchema,
} from '../../../../../src/server/openai/schemas/rankings.js';
import { responseRequestSchema } from '../../../../../src/server/openai/schemas/responses.js';
import { tokenizeRequestSchema } from '../../../../../src/server/openai/schemas/tokenize.js';

const SCHEMAS: Record<string, z.ZodType> = {
  chat: chatRequestSchema,
  completions: completionRequestSchema,
  responses: responseRequestSchema,
  messages: messageRequestSchema,
  tokenize: tokenizeRequestSchema,
  embeddings: embeddingRequestSchema,
  rerank: rerankRequestSchema,
  score: scoreRequestSchema,
  classify: classifyRequestSchema,
  predict: predictRequestSchema,
  cohereEmbed: cohereEmbedSchema,
  cohereRerank: cohereRerankSchema,
  ollamaChat: chatSchema,
  ollamaGenerate: generateSchema,
};

/** Paths of fields that an object has and lists among those of other servers too. */
function doubled(node: FieldsNode | null, path: string): string[] {
  if (node === null) return [];
  const own = node.objects.flatMap(({ fields, others }) => [
    ...Object.keys(others)
      .filter((name) => fields.has(name))
      .map((name) => `${path}.${name}`),
    ...[...fields].flatMap(([name, inner]) => doubled(inner, `${path}.${name}`)),
  ]);
  return [...own, ...doubled(node.items, `${path}[]`)];
}

it.each(Object.entries(SCHEMAS))(
  '%s lists no field of its own among those of other servers',
  (name, schema) => {
    expect(doubled(fieldsNode(schema), name)).toEqual([]);
  },
);

/** Names that the objects of a schema have, and that they know of other servers. */
const namesOf = (schema: z.ZodType) =>
  fieldsNode(schema)!.objects.flatMap(({ fields, others }) => [...fields.keys(), ...Object.keys(others)]);

it.each([
  ['messages', messageRequestSchema],
  ['ollamaChat', chatSchema],
  ['ollamaGenerate', generateSchema],
])('%s knows every field of chats and completions, which works or is refused', (_, schema) => {
  const known = new Set(namesOf(schema));
  const asked = [chatRequestSchema, completionRequestSchema].flatMap((one) => namesOf(one));
  expect([...new Set(asked)].filter((name) => !known.has(name))).toEqual([]);
});

it('finds a field that is listed twice', () => {
  const others = { a: { why: '', harmless: [] } };
  const node = {
    objects: [{ fields: new Map([['a', null]]), tags: [], takesAny: false, others }],
    items: null,
  };
  expect(doubled({ objects: [], items: node }, 'x')).toEqual(['x[].a']);
});
