import type { Registry } from 'prom-client';
import type { EngineShare, ModelRouting } from '../../../../cluster/routing/model-routing.js';
import type { ModelDirectory } from '../../../serving/model-directory.js';
import { MODEL_LABELS, type ModelLabels, modelLabels } from './families.js';
import { liveCounter, liveGauge } from './live-family.js';

/** What becomes of requests that a gateway sends where they are cached, as it is when the metrics are read. */
export function routingFamilies(registry: Registry, models: ModelDirectory): void {
  const routings = (): [ModelLabels, ModelRouting][] =>
    models.list().flatMap((model) => {
      const routing = model.kind === 'generator' ? (model.statistics.routing?.() ?? null) : null;
      return routing === null ? [] : [[modelLabels(model.id), routing]];
    });
  liveCounter(registry, {
    name: 'skein:queue_sent_requests_total',
    help: 'Requests that were sent to a worker that was chosen for them, by its answer: taken, full, nobody (it has ended), silent, or unsent',
    labelNames: [...MODEL_LABELS, 'answer'],
    read: () =>
      routings().flatMap(([labels, { direct }]) =>
        Object.entries(direct).map(([answer, count]) => [{ ...labels, answer }, count] as const),
      ),
  });
  liveCounter(registry, {
    name: 'skein:queue_streamed_requests_total',
    help: 'Requests that went into the stream, for the worker that asks first, also those that the chosen worker did not take',
    labelNames: MODEL_LABELS,
    read: () => routings().map(([labels, { streamed }]) => [labels, streamed]),
  });
  liveCounter(registry, {
    name: 'skein:queue_routed_requests_total',
    help: 'Requests that the chosen worker took, by whether a beginning of the prompt was known to be in its cache (hit) or not (miss)',
    labelNames: [...MODEL_LABELS, 'cache'],
    read: () =>
      routings().flatMap(([labels, { cached, uncached }]) => [
        [{ ...labels, cache: 'hit' }, cached] as const,
        [{ ...labels, cache: 'miss' }, uncached] as const,
      ]),
  });
  liveCounter(registry, {
    name: 'skein:queue_routed_blocks_total',
    help: 'Blocks of the prompts of these requests that were known to be in the cache of the chosen worker',
    labelNames: MODEL_LABELS,
    read: () => routings().map(([labels, { cachedBlocks }]) => [labels, cachedBlocks]),
  });
}

/** How a gateway's requests were shared among engines of one model, as it is when the metrics are read. */
export function shareFamilies(registry: Registry, models: ModelDirectory): void {
  const shares = (): [ModelLabels & { system_fingerprint: string }, EngineShare][] =>
    models.list().flatMap((model) => {
      const of = model.kind === 'generator' ? [...(model.statistics.shares?.() ?? [])] : [];
      return of.map(([engine, share]) => [{ ...modelLabels(model.id), system_fingerprint: engine }, share]);
    });
  const labelNames = [...MODEL_LABELS, 'system_fingerprint'] as const;
  liveCounter(registry, {
    name: 'skein:queue_engine_requests_total',
    help: 'New requests that workers with this engine were given',
    labelNames,
    read: () => shares().map(([labels, { requests }]) => [labels, requests]),
  });
  liveGauge(registry, {
    name: 'skein:queue_engine_weight',
    help: 'Weight of an engine among those of its model (--pool-weights); only where requests are shared by weights',
    labelNames,
    read: () => shares().flatMap(([labels, { weight }]) => (weight === null ? [] : [[labels, weight]])),
  });
}

/** Prefill workers of a gateway that are of no use; models that are no gateway's have no series. */
export function prefillFamilies(registry: Registry, models: ModelDirectory): void {
  liveGauge(registry, {
    name: 'skein:queue_unused_prefill_workers',
    help: 'Prefill workers whose blocks no worker that answers can use',
    labelNames: MODEL_LABELS,
    read: () =>
      models.list().flatMap((model) => {
        const unused = model.kind === 'generator' ? model.statistics.unusedPrefillers?.() : undefined;
        return unused === undefined ? [] : [[modelLabels(model.id), unused]];
      }),
  });
}
