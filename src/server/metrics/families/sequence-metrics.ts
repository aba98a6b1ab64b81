import { Gauge, type Registry } from 'prom-client';
import type { InferModel } from '../../../serving/infer-model.js';

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
