import { Gauge, type Registry } from 'prom-client';
import type { ModelDirectory } from '../../../serving/model-directory.js';
import type { TargetWatch } from '../scaling/target-watch.js';
import { MODEL_LABELS } from './families.js';

const STATES = ['ready'] as const;

/** The workers of each model, also of one that has none, as they are when the metrics are read. */
export function workerFamilies(registry: Registry, models: ModelDirectory): void {
  new Gauge({
    name: 'skein:workers',
    help: 'Workers of the model, by state: ready, they take requests',
    labelNames: [...MODEL_LABELS, 'state'] as const,
    registers: [registry],
    collect() {
      this.reset();
      for (const model of models.list()) {
        const workers = model.kind === 'generator' ? model.statistics.workers?.() : undefined;
        if (workers === undefined) continue;
        for (const state of STATES) this.set({ model_name: model.id, engine: '0', state }, workers[state]);
      }
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
