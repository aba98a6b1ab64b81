import type { LimitState } from '../../web/quotas/key-limits.js';
import type { KeyUsage } from '../../web/quotas/key-usage.js';
import type { KeyReport } from '../../web/quotas/quotas.js';
import { defineRoute } from '../server-context.js';

/** Keys of one answer. */
const MAX_KEYS = 10_000;

export const usageRoute = defineRoute({
  method: 'get',
  path: '/usage',
  tags: ['Server'],
  summary: 'Reports what API keys have taken, and what is left of their limits',
  description:
    "An admin's key is told of all keys, another one of itself. `today` is of the day in UTC and of all gateways that share the limits; `since_start` is of this server.",
  responses: async () => (await import('../answers.js')).usageResponses(),
  handle: async ({ exchange }, { apiKeys, quotas }) => {
    const { caller } = exchange.terms;
    const callers = caller.isAdmin ? apiKeys.callers.slice(0, MAX_KEYS) : [caller];
    return Response.json({ object: 'list', data: (await quotas.reports(callers)).map(written) });
  },
});

function written({ name, limits, requests, tokens, today, total, refused }: KeyReport) {
  return {
    key: name,
    limits,
    left: {
      ...(requests === null ? {} : { requests: left(requests) }),
      ...(tokens === null ? {} : { tokens: left(tokens) }),
    },
    today: usage(today),
    since_start: { ...usage(total), refused_requests: refused },
  };
}

const left = ({ name, limit, remaining, resetMs }: LimitState) => ({
  of: name,
  limit,
  remaining,
  reset_seconds: Math.ceil(resetMs / 1000),
});

const usage = ({ requests, promptTokens, cachedTokens, completionTokens }: KeyUsage) => ({
  requests,
  prompt_tokens: promptTokens,
  cached_prompt_tokens: cachedTokens,
  completion_tokens: completionTokens,
});
