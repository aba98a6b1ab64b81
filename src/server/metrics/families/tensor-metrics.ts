import { Gauge, type Registry } from 'prom-client';
import type { InferModel } from '../../../serving/infer-model.js';
import type { RateLimits } from '../../../serving/rate-limits.js';

/** Sequences of the models that have them, as they are when the metrics are read. @param models those that are loaded now */
export function sequenceFamilies(registry: Registry, models: () => readonly InferModel[]): void {
  new Gauge({
    name: 'skein:sequences',
    help: 'Sequences of a model: live ones, for which an instance has a place, and those in the backlog, which wait for one',
    labelNames: ['model', 'version', 'state'] as const,
    registers: [registry],
    collect() {
      this.reset();
      for (const model of models()) {
        const { sequences } = model.activity();
        if (sequences === undefined) continue;
        const labels = { model: model.config.name, version: model.version };
        for (const state of ['live', 'backlog'] as const) this.set({ ...labels, state }, sequences[state]);
      }
    },
  });
}

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
