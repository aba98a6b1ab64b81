// The API's description of itself, imported when it is asked for, since it needs the generator.
import { createRoute, OpenAPIHono } from '@hono/zod-openapi';
import * as z from 'zod';
import { optional } from '../../../../schemas/fields.js';
import { errors } from '../../../web/described-answers.js';
import { TAGS } from '../../../web/tags.js';
import type { ServerRoute } from '../../server-context.js';

export type OpenApiDocument = ReturnType<OpenAPIHono['getOpenAPI31Document']>;

const DESCRIPTION = [
  'The API of OpenAI on models that run on this machine, with the fields of vLLM for what the engine can do besides.',
  'A known field works, has no bearing on the answer, or is refused by its name. Unknown fields are left out, and told in',
  'the header X-Unknown-Fields; with --unknown-fields refuse they are refused.',
  'Numbers of tokens count what the model reads and writes, not characters.',
].join(' ');

const requestHeaders = z.object({
  'X-Request-Id': optional(
    z.string(),
    'A name for the request, up to 128 printable characters, that comes back with the answer and is in the log.',
  ),
});

/** OpenAPI 3.1 document of all routes, made of the schemas that validate them. */
export async function openApiDocument(
  routes: readonly ServerRoute[],
  version: string,
): Promise<OpenApiDocument> {
  const app = new OpenAPIHono();
  const { openAPIRegistry: registry } = app;
  registry.registerComponent('securitySchemes', 'Bearer', {
    type: 'http',
    scheme: 'bearer',
    description: 'Authorization: Bearer KEY, where the server was started with a key.',
  });
  registry.registerComponent('securitySchemes', 'ApiKey', {
    type: 'apiKey',
    in: 'header',
    name: 'X-Api-Key',
    description: 'X-Api-Key: KEY, or Api-Key: KEY, the same key in another header.',
  });
  for (const route of routes) {
    const config = await route.describe();
    const request = { ...config.request, headers: requestHeaders };
    // These refusals happen before a route gets the request.
    const responses = { ...errors(403), ...(request.body && errors(408)), ...config.responses };
    const security = route.open ? [] : [{ Bearer: [] }, { ApiKey: [] }];
    registry.registerPath(createRoute({ ...config, request, responses, security }));
  }
  return app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: {
      title: 'Skein',
      version,
      description: DESCRIPTION,
      license: { name: 'Apache 2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
    },
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
  });
}
