import * as z from 'zod';
import { about } from '../../../schemas/fields.js';
import { errors, jsonAnswer } from '../../web/described-answers.js';
import { LIMIT_NAMES, LIMITS } from '../../web/quotas/key-limits.js';
import type { Responses } from '../../web/route.js';

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
