import { Gauge, type Registry } from 'prom-client';
import type { RateLimits } from '../../../serving/rate-limits.js';

/** The rate limiter as it is when the metrics are read: copies of each resource that a loaded model lists, and instances that wait for their turn. */
export function rateLimitFamilies(registry: Registry, limits: RateLimits): void {
  new Gauge({
    name: 'skein:rate_limit_resource_copies',
    help: 'Copies of a resource of the rate limiter, by state: all that there are (total), and those that executions keep (used)',
    labelNames: ['resource', 'scope', 'state'] as const,
    registers: [registry],
    collect() {
      this.reset();
      for (const { name: resource, isGlobal, limit, used } of limits.uses) {
        const labels = { resource, scope: isGlobal ? 'global' : 'device' };
        this.set({ ...labels, state: 'total' }, limit);
        this.set({ ...labels, state: 'used' }, used);
      }
    },
  });
  new Gauge({
    name: 'skein:rate_limit_waiting_instances',
    help: 'Instances that have a batch to run and wait for their turn',
    registers: [registry],
    collect() {
      this.set(limits.waiting);
    },
  });
}
