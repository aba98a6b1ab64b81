import type { Context } from 'hono';
import type { AppEnv } from '../app-env.js';
import type { Quotas } from './quotas.js';
import { anthropicHeaders, openAiHeaders } from './rate-limit-headers.js';

/**
 * Counts what each caller with a key takes, and states in headers what is left of its limits, also in a
 * refusal.
 * @param isAnthropic true for clients that look for the headers of Anthropic's API
 */
export function limitExchange(quotas: Quotas, isAnthropic: (c: Context<AppEnv>) => boolean) {
  return async (c: Context<AppEnv>, next: () => Promise<void>): Promise<void> => {
    const caller = c.get('caller');
    const admit = quotas.admitOf(caller);
    if (admit === undefined) return next();
    let hasAsked = false;
    c.set('admit', (...asked) => {
      hasAsked = true;
      return admit(...asked);
    });
    await next();
    if (!hasAsked || caller.limits === undefined) return;
    const left = quotas.stateOf(caller);
    const headers = isAnthropic(c) ? anthropicHeaders(left, Date.now()) : openAiHeaders(left);
    for (const [name, value] of Object.entries(headers)) c.res.headers.set(name, value);
    // Pages read only what is named here.
    const shown = c.res.headers.get('access-control-expose-headers');
    if (shown !== null)
      c.res.headers.set('access-control-expose-headers', [shown, ...Object.keys(headers)].join(','));
  };
}
