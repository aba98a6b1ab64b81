import { defineRoute } from './define-route.js';

export const loadRoute = defineRoute({
  method: 'get',
  path: '/load',
  tags: ['Server'],
  summary: 'Tells how many requests for text are being answered, waiting ones included',
  responses: async () => (await import('../answers/server.js')).loadResponses(),
  handle: (_, { requests }) => Response.json({ server_load: requests.live }),
});
