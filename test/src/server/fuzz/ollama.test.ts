import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  chatSchema,
  deleteSchema,
  embeddingsSchema,
  embedSchema,
  generateSchema,
  pullSchema,
  showSchema,
} from '../../../../src/server/ollama/schemas.js';
import { say, toyServer } from '../../support/toy-server.js';

const messages = [{ role: 'user', content: 'a' }];
const options = fc.dictionary(
  fc.constantFrom('temperature', 'top_k', 'seed', 'num_predict', 'stop', 'mirostat', 'num_ctx', 'x'),
  fc.jsonValue({ maxDepth: 1 }),
);
/** Values of a field: what a client may mean, and anything else. */
const values = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  options,
  fc.constantFrom(
    'json',
    '',
    'toy',
    'toy:latest',
    -1,
    0,
    true,
    '5m',
    messages,
    '{{ .Prompt }}',
    '{{ if',
    [97],
  ),
  fc.array(fc.record({ role: fc.constantFrom('user', 'assistant', 'tool', 'x'), content: fc.jsonValue() })),
);

it.each([
  ['POST', '/api/chat', chatSchema, { model: 'toy', messages }],
  ['POST', '/api/generate', generateSchema, { model: 'toy', prompt: 'a' }],
  ['POST', '/api/embed', embedSchema, { model: 'toy', input: 'a' }],
  ['POST', '/api/embeddings', embeddingsSchema, { model: 'toy', prompt: 'a' }],
  ['POST', '/api/show', showSchema, { model: 'toy' }],
  ['POST', '/api/pull', pullSchema, { model: 'a/b' }],
  ['DELETE', '/api/delete', deleteSchema, { model: 'toy' }],
] as const)(
  '%s %s answers any body, or says in its form that it is at fault',
  async (method, path, schema, valid) => {
    const toy = toyServer(() => say('{}'));
    const fields = fc.dictionary(fc.constantFrom(...Object.keys(schema.shape), 'unknown'), values, {
      maxKeys: 3,
    });
    await fc.assert(
      fc.asyncProperty(fields, async (given) => {
        const body = JSON.stringify({ ...valid, ...given });
        const headers = { 'content-type': 'application/json' };
        const response = await toy.app.request(path, { method, headers, body });
        const text = await response.text();
        expect(response.status, `${body} is answered with ${text}`).toBeLessThan(500);
        if (response.status >= 400)
          expect(JSON.parse(text), body).toEqual({ error: expect.stringMatching(/\S{3}/) });
      }),
      { numRuns: 150 },
    );
  },
);
