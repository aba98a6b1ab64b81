import * as z from 'zod';
import { about, component } from '../../../schemas/fields.js';
import { errors, jsonAnswer } from '../../web/described-answers.js';
import type { Responses } from '../../web/route.js';

const fares = {
  reason: about(z.string().optional(), 'Why the engine is not ready.'),
  restarts: about(z.int(), 'How often the engine was started again after it had died.'),
};
const computes = {
  executor: about(z.string().optional(), 'The executor: native, or another one.'),
  executorFallback: about(
    z.string().optional(),
    'Where that is not the fastest one: why, and how to get that.',
  ),
  pid: about(z.int().optional(), "The id of the engine's process, where it runs in one of its own."),
};
export function loadResponses(): Responses {
  const answer = z.object({ server_load: about(z.int(), 'Requests for text that are being answered.') });
  return { 200: jsonAnswer('The load.', answer), ...errors(401) };
}

const health = component(
  'Health',
  z.object({
    status: about(
      z.enum(['ready', 'degraded', 'loading', 'restarting', 'draining', 'failed', 'disconnected']),
      'Only ready and degraded should be given work; degraded has models that do not run.',
    ),
    loading: about(
      z.array(z.string()).optional(),
      'Models of the start that are not loaded yet, the first hundred of them.',
    ),
    ...fares,
    ...computes,
    models: about(
      z
        .record(
          z.string(),
          z.object({ status: z.enum(['ready', 'restarting', 'failed']), ...fares, ...computes }),
        )
        .optional(),
      'Each model by its name; not there where one was asked for.',
    ),
  }),
  'How the server fares.',
);

export function healthResponses(): Responses {
  return {
    200: jsonAnswer('The server is ready.', health),
    ...errors(404),
    503: jsonAnswer('It is not.', health),
  };
}

export function liveResponses(): Responses {
  return { 200: jsonAnswer('The process runs.', z.object({ status: z.literal('live') })) };
}

export function versionResponses(): Responses {
  return { 200: jsonAnswer('The version.', z.object({ version: z.string() })), ...errors(401) };
}

export function metricsResponses(): Responses {
  return {
    200: {
      description: "The text format of Prometheus: vLLM's names, and those of this server.",
      content: { 'text/plain': { schema: z.string() } },
    },
    ...errors(401),
  };
}
