import type { Registry } from 'prom-client';
import type { ModelDirectory } from '../../../serving/model-directory.js';
import type { WorkerCounts } from '../../../serving/running-model.js';
import type { TargetWatch } from '../scaling/target-watch.js';
import { MODEL_LABELS, type ModelLabels, modelLabels } from './families.js';
import { liveCounter, liveGauge } from './live-family.js';

const STATES = ['ready', 'loading'] as const;

/** The workers of each model, also of one that has none, as they are when the metrics are read. */
export function workerFamilies(registry: Registry, models: ModelDirectory): void {
  const all = (): [ModelLabels, WorkerCounts][] =>
    models.list().flatMap((model) => {
      const workers = model.kind === 'generator' ? model.statistics.workers?.() : undefined;
      return workers === undefined ? [] : [[modelLabels(model.id), workers]];
    });
  liveGauge(registry, {
    name: 'skein:workers',
    help: 'Workers of the model, by state: ready, they take requests; loading, they do not yet',
    labelNames: [...MODEL_LABELS, 'state'],
    read: () =>
      all().flatMap(([labels, workers]) =>
        STATES.map((state) => [{ ...labels, state }, workers[state]] as const),
      ),
  });
  liveGauge(registry, {
    name: 'skein:worker_loading_fraction',
    help: 'How far the foremost worker that loads is with what it downloads or converts; absent: none says',
    labelNames: MODEL_LABELS,
    read: () => all().flatMap(([labels, { fraction }]) => (fraction === null ? [] : [[labels, fraction]])),
  });
  liveCounter(registry, {
    name: 'skein:worker_loads_total',
    help: 'Workers that have loaded the model since the gateway began',
    labelNames: MODEL_LABELS,
    read: () => all().map(([labels, { loads }]) => [labels, loads]),
  });
  liveCounter(registry, {
    name: 'skein:worker_load_seconds_total',
    help: 'Seconds that these took for it together, from their start until they took requests',
    labelNames: MODEL_LABELS,
    read: () => all().map(([labels, { loadMs }]) => [labels, loadMs / 1000]),
  });
}

/** Requests for models that are known by name alone. */
export function expectedFamilies(registry: Registry, { expected }: ModelDirectory): void {
  if (expected === undefined) return;
  liveCounter(registry, {
    name: 'skein:wanted_requests_total',
    help: 'Requests that were refused because no worker has had the model yet, by name',
    labelNames: MODEL_LABELS,
    read: () => [...expected.refused].map(([name, count]) => [modelLabels(name), count]),
  });
}

/** How many workers there should be, by the times of a gateway's own requests. */
export function scalingFamilies(registry: Registry, watch: TargetWatch): void {
  liveGauge(registry, {
    name: 'skein:desired_workers',
    help: 'Workers that the model should have, by the times to the first token and between tokens against their targets; 0: no requests',
    labelNames: MODEL_LABELS,
    read: () => watch.signals().map(({ model, desired }) => [modelLabels(model), desired]),
  });
  liveGauge(registry, {
    name: 'skein:target_ratio',
    help: 'Time that nine of ten stay below, over its target, by what is timed: first_token, between_tokens; above 1 the target is missed',
    labelNames: [...MODEL_LABELS, 'time'],
    read: () =>
      watch
        .signals()
        .flatMap(({ model, ratios: { firstToken, betweenTokens } }) =>
          [['first_token', firstToken] as const, ['between_tokens', betweenTokens] as const].flatMap(
            ([time, ratio]) =>
              ratio === undefined ? [] : [[{ ...modelLabels(model), time }, ratio] as const],
          ),
        ),
  });
}
