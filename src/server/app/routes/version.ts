import { defineRoute } from './define-route.js';

export const versionRoute = defineRoute({
  method: 'get',
  path: '/version',
  tags: ['Server'],
  summary: 'Tells the version of the server',
  responses: async () => (await import('../answers/server.js')).versionResponses(),
  handle: (_, { version }) => Response.json({ version }),
});
