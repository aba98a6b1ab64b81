import * as z from 'zod';
import { about, component } from '../../schemas/fields.js';
import { modelInfoSchema, modelPageSchema } from '../anthropic/answers.js';
import { modelSchema } from '../openai/answers/server.js';
import { errors, jsonAnswer } from '../web/described-answers.js';
import { LIMIT_NAMES, LIMITS } from '../web/quotas/key-limits.js';
import type { Responses } from '../web/route.js';

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

const model = about(z.string(), 'The model whose engine it is.');

export function statsResponses(): Responses {
  const answer = z.looseObject({ model, 'Iteration Counter': z.int(), 'Active Request Count': z.int() });
  return {
    200: jsonAnswer("The batch manager's keys, and the name of the model.", answer),
    ...errors(400, 401, 404),
  };
}

export function statsStreamResponses(): Responses {
  const event = z.looseObject({ model });
  const example = 'event: stats\ndata: {"model":"m","Iteration Counter":7}\n\n';
  return {
    200: {
      description: 'Events of the types stats and formation.',
      content: { 'text/event-stream': { schema: event, example } },
    },
    ...errors(400, 401, 404, 503),
  };
}

export function modelsStreamResponses(): Responses {
  const event = z.looseObject({
    models: about(z.int(), 'Number of versions of all models.'),
    rows: about(z.array(z.looseObject({ name: z.string() })), 'A row for each, or for the foremost.'),
  });
  const example =
    'event: models\ndata: {"v":1,"timeMs":1763783400123,"models":1,"states":{"READY":1},"waiting":0,"running":0,"rows":[...]}\n\n';
  return {
    200: {
      description: 'Events of the type models.',
      content: { 'text/event-stream': { schema: event, example } },
    },
    ...errors(400, 401, 503),
  };
}

const usage = {
  requests: about(z.int(), 'Requests that models of text were given.'),
  prompt_tokens: about(z.int(), 'Tokens of their prompts.'),
  cached_prompt_tokens: about(z.int(), 'Those of them that were found in the cache.'),
  completion_tokens: about(z.int(), 'Tokens that were generated for them.'),
};

const left = z.object({
  of: about(z.enum(LIMIT_NAMES as [string]), 'The limit of which least is left.'),
  limit: z.int(),
  remaining: about(z.int(), 'What may still be taken, by all servers that share the limit.'),
  reset_seconds: about(z.int(), 'Seconds until nothing of it is taken any more.'),
});

const limits = Object.fromEntries(
  LIMIT_NAMES.map((name) => [name, about(z.int().optional(), `Most ${LIMITS[name].words}.`)]),
);

export function usageResponses(): Responses {
  const key = z.object({
    key: about(z.string(), 'The name of the key.'),
    limits: z.object(limits),
    left: z.object({ requests: left.optional(), tokens: left.optional() }),
    today: about(z.object(usage), 'On this day in UTC, at all gateways that share the limits.'),
    since_start: about(
      z.object({
        ...usage,
        refused_requests: about(z.int(), 'Requests that a limit of the key has refused.'),
      }),
      'At this server, since it was started.',
    ),
  });
  const list = z.object({ object: z.literal('list'), data: z.array(key) });
  return { 200: jsonAnswer('The keys.', list), ...errors(401, 503) };
}

const weights = () =>
  jsonAnswer(
    'The weights.',
    z.object({
      object: z.literal('pool_weights'),
      weights: about(z.record(z.string(), z.number()), 'By system_fingerprint; {}: nothing is shared.'),
    }),
  );

export function poolWeightsResponses(): Responses {
  return { 200: weights(), ...errors(401, 404) };
}

export function setPoolWeightsResponses(): Responses {
  return { 200: weights(), ...errors(400, 401, 403, 404, 413) };
}

const IN_ANTHROPICS_FORM = ", in Anthropic's form where the request has an anthropic-version header.";

export function modelListResponses(): Responses {
  const list = z.object({ object: z.literal('list'), data: z.array(modelSchema) });
  return {
    200: jsonAnswer(`The models${IN_ANTHROPICS_FORM}`, z.union([list, modelPageSchema])),
    ...errors(401),
  };
}

export function modelResponses(): Responses {
  return {
    200: jsonAnswer(`The model${IN_ANTHROPICS_FORM}`, z.union([modelSchema, modelInfoSchema])),
    ...errors(401, 404),
  };
}

const file = (description: string, type: string): Responses[string] => ({
  description,
  content: { [type]: { schema: z.string() } },
});

export function openApiResponses(): Responses {
  return { 200: jsonAnswer('The description.', z.looseObject({ openapi: z.literal('3.1.0') })) };
}

export function docsResponses(): Responses {
  return { 200: file('The page. It needs nothing from any other server.', 'text/html') };
}

export function docsFileResponses(): Responses {
  return {
    200: {
      description: 'The file.',
      content: { 'text/javascript': { schema: z.string() }, 'text/css': { schema: z.string() } },
    },
    ...errors(400, 404),
  };
}

const NOT_CHANGED = { 304: { description: 'What If-None-Match names is what there is.' } };

export function dashboardResponses(): Responses {
  return {
    200: file('The page. It needs nothing from any other server.', 'text/html'),
    ...NOT_CHANGED,
    ...errors(404),
  };
}

export function dashboardFileResponses(): Responses {
  const text = { schema: z.string() };
  return {
    200: {
      description: 'The file.',
      content: { 'text/javascript': text, 'text/css': text, 'image/svg+xml': text, 'font/woff2': text },
    },
    ...NOT_CHANGED,
    ...errors(400, 404),
  };
}
