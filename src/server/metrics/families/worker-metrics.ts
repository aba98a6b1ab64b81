import { Counter, Gauge, type Registry } from 'prom-client';
import type { ModelDirectory } from '../../../serving/model-directory.js';
import type { WorkerCounts } from '../../../serving/running-model.js';
import type { TargetWatch } from '../scaling/target-watch.js';
import { MODEL_LABELS, type ModelLabels } from './families.js';

const STATES = ['ready', 'loading'] as const;

/** The workers of each model, also of one that has none, as they are when the metrics are read. */
export function workerFamilies(registry: Registry, models: ModelDirectory): void {
  const all = (): [ModelLabels, WorkerCounts][] =>
    models.list().flatMap((model) => {
      const workers = model.kind === 'generator' ? model.statistics.workers?.() : undefined;
      return workers === undefined ? [] : [[{ model_name: model.id, engine: '0' }, workers]];
    });
  const registers = [registry];
  new Gauge({
    name: 'skein:workers',
    help: 'Workers of the model, by state: ready, they take requests; loading, they do not yet',
    labelNames: [...MODEL_LABELS, 'state'] as const,
    registers,
    collect() {
      this.reset();
      for (const [labels, workers] of all())
        for (const state of STATES) this.set({ ...labels, state }, workers[state]);
    },
  });
  new Gauge({
    name: 'skein:worker_loading_fraction',
    help: 'How far the foremost worker that loads is with what it downloads or converts; absent: none says',
    labelNames: MODEL_LABELS,
    registers,
    collect() {
      this.reset();
      for (const [labels, { fraction }] of all()) if (fraction !== null) this.set(labels, fraction);
    },
  });
  new Counter({
    name: 'skein:worker_loads_total',
    help: 'Workers that have loaded the model since the gateway began',
    labelNames: MODEL_LABELS,
    registers,
    collect() {
      this.reset();
      for (const [labels, { loads }] of all()) this.inc(labels, loads);
    },
  });
  new Counter({
    name: 'skein:worker_load_seconds_total',
    help: 'Seconds that these took for it together, from their start until they took requests',
    labelNames: MODEL_LABELS,
    registers,
    collect() {
      this.reset();
      for (const [labels, { loadMs }] of all()) this.inc(labels, loadMs / 1000);
    },
  });
}

/** Requests for models that are known by name alone. */
export function expectedFamilies(registry: Registry, { expected }: ModelDirectory): void {
  if (expected === undefined) return;
  new Counter({
    name: 'skein:wanted_requests_total',
    help: 'Requests that were refused because no worker has had the model yet, by name',
    labelNames: MODEL_LABELS,
    registers: [registry],
    collect() {
      this.reset();
      for (const [model_name, count] of expected.refused) this.inc({ model_name, engine: '0' }, count);
    },
  });
}

/** How many workers there should be, by the times of a gateway's own requests. */
export function scalingFamilies(registry: Registry, watch: TargetWatch): void {
  const registers = [registry];
  new Gauge({
    name: 'skein:desired_workers',
    help: 'Workers that the model should have, by the times to the first token and between tokens against their targets; 0: nobody asks',
    labelNames: MODEL_LABELS,
    registers,
    collect() {
      this.reset();
      for (const { model, desired } of watch.signals()) this.set({ model_name: model, engine: '0' }, desired);
    },
  });
  new Gauge({
    name: 'skein:target_ratio',
    help: 'Time that nine of ten stay below, over its target, by what is timed: first_token, between_tokens; above 1 the target is missed',
    labelNames: [...MODEL_LABELS, 'time'] as const,
    registers,
    collect() {
      this.reset();
      for (const { model, ratios } of watch.signals()) {
        const labels = { model_name: model, engine: '0' };
        if (ratios.firstToken !== undefined) this.set({ ...labels, time: 'first_token' }, ratios.firstToken);
        if (ratios.betweenTokens !== undefined)
          this.set({ ...labels, time: 'between_tokens' }, ratios.betweenTokens);
      }
    },
  });
}
