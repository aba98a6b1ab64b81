import { defineRoute } from './route.js';

export const healthRoute = defineRoute({
  method: 'get',
  path: '/health',
  tags: ['Server'],
  summary: 'Tells whether the server should be given work',
  responses: async () => (await import('../openai/answers/server.js')).healthResponses(),
  handle: (_, { state: { status, reason, restarts } }) =>
    Response.json(
      { status, reason: reason ?? undefined, restarts },
      { status: status === 'ready' ? 200 : 503 },
    ),
});

export const liveRoute = defineRoute({
  method: 'get',
  path: '/live',
  tags: ['Server'],
  summary: 'Tells that the process runs',
  responses: async () => (await import('../openai/answers/server.js')).liveResponses(),
  handle: () => Response.json({ status: 'live' }),
});
