import * as z from 'zod';
import { about } from '../../../schemas/fields.js';
import type { ModelState } from '../../../serving/model-state.js';
import { findModel } from '../../answering/find-model.js';
import type { ServerState } from '../../web/server-state.js';
import { defineRoute } from '../server-context.js';

/** Models that are being loaded, as far as an answer names them. */
const MAX_NAMES = 100;

export const healthRoute = defineRoute({
  method: 'get',
  path: '/health',
  tags: ['Server'],
  summary: 'Reports whether the server should be given work',
  description:
    'With several models it is 200 as long as one of them runs: the others are listed. While the models of the start are loaded it is 503, and names them. `model` asks for one model. Other parameters, which get past caches, are ignored.',
  open: true,
  query: z.object({ model: about(z.string().optional(), 'The name of a model.') }),
  ignoresUnknownQuery: true,
  responses: async () => (await import('../answers.js')).healthResponses(),
  handle: ({ query }, { state, models }) => {
    if (query.model === undefined) {
      const loading = state.loading.slice(0, MAX_NAMES);
      return answer({
        ...report(state),
        ...(loading.length > 0 && { loading }),
        models: modelReports(state),
      });
    }
    const of = modelReport(findModel({ models }, query.model).state);
    return answer(state.status === 'draining' ? { ...of, status: 'draining' } : of);
  },
});

function report({ status, reason, restarts }: ModelState | ServerState) {
  return { status, reason: reason ?? undefined, restarts };
}

function modelReports({ models }: ServerState) {
  return Object.fromEntries([...models].map(([id, state]) => [id, modelReport(state)]));
}

function modelReport(state: ModelState) {
  const { name, fallback } = state.executor ?? {};
  const pid = state.pid() ?? undefined;
  return { ...report(state), executor: name, executorFallback: fallback ?? undefined, pid };
}

function answer(body: ReturnType<typeof report> & { models?: object }): Response {
  const takesWork = body.status === 'ready' || body.status === 'degraded';
  return Response.json(body, { status: takesWork ? 200 : 503 });
}

export const liveRoute = defineRoute({
  method: 'get',
  path: '/live',
  tags: ['Server'],
  summary: 'Reports that the process runs',
  open: true,
  responses: async () => (await import('../answers.js')).liveResponses(),
  handle: () => Response.json({ status: 'live' }),
});

export const loadRoute = defineRoute({
  method: 'get',
  path: '/load',
  tags: ['Server'],
  summary: 'Reports how many requests for text are being answered, waiting ones included',
  responses: async () => (await import('../answers.js')).loadResponses(),
  handle: (_, { requests }) => Response.json({ server_load: requests.live }),
});

export const versionRoute = defineRoute({
  method: 'get',
  path: '/version',
  tags: ['Server'],
  summary: 'Reports the version of the server',
  responses: async () => (await import('../answers.js')).versionResponses(),
  handle: (_, { version }) => Response.json({ version }),
});

export const metricsRoute = defineRoute({
  method: 'get',
  path: '/metrics',
  tags: ['Server'],
  summary: 'Metrics for Prometheus',
  responses: async () => (await import('../answers.js')).metricsResponses(),
  handle: async ({ exchange }, { metrics }) => {
    const text = await metrics.text(exchange.terms.caller.isAdmin);
    return new Response(text, { headers: { 'content-type': metrics.contentType } });
  },
});
