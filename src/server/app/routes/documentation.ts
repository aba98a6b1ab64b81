import * as z from 'zod';
import { about } from '../../../schemas/fields.js';
import type { PageFile } from '../documentation/docs-page.js';
import { defineRoute, type ServerRoute } from '../server-context.js';

const documents = new WeakMap<readonly ServerRoute[], Promise<string>>();

/** The document, made once, when it is first asked for. */
async function documentOf(routes: readonly ServerRoute[], version: string): Promise<string> {
  let document = documents.get(routes);
  if (document === undefined) {
    document = import('../documentation/description.js').then(({ describeRoutes }) =>
      describeRoutes(routes, version),
    );
    documents.set(routes, document);
  }
  return document;
}

export const openApiRoute = defineRoute({
  method: 'get',
  path: '/openapi.json',
  tags: ['Documentation'],
  summary: 'This description, as OpenAPI 3.1',
  open: true,
  responses: async () => (await import('../answers.js')).openApiResponses(),
  handle: async (_, { routes, version }) =>
    new Response(await documentOf(routes, version), { headers: { 'content-type': 'application/json' } }),
});

export const docsRoute = defineRoute({
  method: 'get',
  path: '/docs',
  tags: ['Documentation'],
  summary: 'This description as a page, on which requests can be tried',
  open: true,
  responses: async () => (await import('../answers.js')).docsResponses(),
  handle: async () => (await import('../documentation/docs-page.js')).docsPage(),
});

const files = ['start.js', 'swagger-ui-bundle.js', 'swagger-ui.css'] as const satisfies PageFile[];

export const docsFileRoute = defineRoute({
  method: 'get',
  path: '/docs/{file}',
  tags: ['Documentation'],
  summary: "The page's scripts and styles",
  open: true,
  params: z.object({ file: about(z.enum(files), 'The name of the file.') }),
  responses: async () => (await import('../answers.js')).docsFileResponses(),
  handle: async ({ params, takesGzip }) =>
    (await import('../documentation/docs-page.js')).docsFile(params.file, takesGzip),
});
