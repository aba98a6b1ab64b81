import { defineRoute } from './define-route.js';

export const metricsRoute = defineRoute({
  method: 'get',
  path: '/metrics',
  tags: ['Server'],
  summary: 'Metrics for Prometheus',
  responses: async () => (await import('../answers/server.js')).metricsResponses(),
  handle: async (_, { metrics }) =>
    new Response(await metrics.text(), { headers: { 'content-type': metrics.contentType } }),
});
