import type { Registry } from 'prom-client';
import type { KeyUsage } from '../../web/quotas/key-usage.js';
import type { KeyReport } from '../../web/quotas/quotas.js';
import { liveCounter } from './live-family.js';

type Total = Pick<KeyReport, 'name' | 'total' | 'refused'>;

/** Keys with series of their own; those beyond share one, or a long file of keys would flood the scraper. */
const MAX_KEYS = 1000;
const OTHERS = 'others';

const FAMILIES = {
  'skein:key_requests_total': ['requests', 'Requests that models of text were given for an API key'],
  'skein:key_prompt_tokens_total': [
    'promptTokens',
    'Prompt tokens of these requests, cached ones among them',
  ],
  'skein:key_cached_prompt_tokens_total': [
    'cachedTokens',
    'Prompt tokens of these requests that were found in the cache',
  ],
  'skein:key_completion_tokens_total': ['completionTokens', 'Tokens generated for these requests'],
} as const satisfies Readonly<Record<string, readonly [keyof KeyUsage, string]>>;

/** What the requests of each API key have taken, as it is when the metrics are read. */
export function keyFamilies(registry: Registry, totals: () => readonly Total[]): void {
  const family = (name: string, help: string, countOf: (total: Total) => number) =>
    liveCounter(registry, {
      name,
      help,
      labelNames: ['key'],
      read: () => totals().map((total, i) => [{ key: i < MAX_KEYS ? total.name : OTHERS }, countOf(total)]),
    });
  for (const [name, [field, help]] of Object.entries(FAMILIES))
    family(name, help, ({ total }) => total[field]);
  family(
    'skein:key_refused_total',
    'Requests that were refused since a limit of their API key was reached',
    ({ refused }) => refused,
  );
}
