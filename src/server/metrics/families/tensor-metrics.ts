import type { Registry } from 'prom-client';
import type { InferModel } from '../../../serving/infer-model.js';
import type { RateLimits } from '../../../serving/rate-limits.js';
import { liveGauge } from './live-family.js';

/** Sequences of the models that have them, as they are when the metrics are read. @param models those that are loaded now */
export function sequenceFamilies(registry: Registry, models: () => readonly InferModel[]): void {
  liveGauge(registry, {
    name: 'skein:sequences',
    help: 'Sequences of a model: live ones, for which an instance has a place, and those in the backlog, which wait for one',
    labelNames: ['model', 'version', 'state'],
    read: () =>
      models().flatMap((model) => {
        const { sequences } = model.activity();
        if (sequences === undefined) return [];
        const labels = { model: model.config.name, version: model.version };
        return (['live', 'backlog'] as const).map((state) => [{ ...labels, state }, sequences[state]]);
      }),
  });
}

/** The rate limiter as it is when the metrics are read: copies of each resource that a loaded model lists, and instances that wait for their turn. */
export function rateLimitFamilies(registry: Registry, limits: RateLimits): void {
  liveGauge(registry, {
    name: 'skein:rate_limit_resource_copies',
    help: 'Copies of a resource of the rate limiter, by state: all that there are (total), and those that executions keep (used)',
    labelNames: ['resource', 'scope', 'state'],
    read: () =>
      [...limits.uses].flatMap(({ name: resource, isGlobal, limit, used }) => {
        const labels = { resource, scope: isGlobal ? 'global' : 'device' };
        return [
          [{ ...labels, state: 'total' }, limit] as const,
          [{ ...labels, state: 'used' }, used] as const,
        ];
      }),
  });
  liveGauge(registry, {
    name: 'skein:rate_limit_waiting_instances',
    help: 'Instances that have a batch to run and wait for their turn',
    read: () => [[{}, limits.waiting]],
  });
}
