import { Gauge, type Registry } from 'prom-client';
import type { ModelDirectory } from '../../../serving/model-directory.js';
import { enginesOf } from '../../../serving/served-model.js';
import { MODEL_LABELS } from './families.js';

/** The engines that answer for each model, as they are when the metrics are read. */
export function engineFamilies(registry: Registry, models: ModelDirectory): void {
  new Gauge({
    name: 'skein:engines',
    help: 'Engines that answer for the model, by fingerprint: more than one fingerprint means different answers',
    labelNames: [...MODEL_LABELS, 'system_fingerprint'] as const,
    registers: [registry],
    collect() {
      this.reset();
      for (const model of models.list()) {
        if (model.kind !== 'generator') continue;
        for (const [system_fingerprint, count] of enginesOf(model))
          this.set({ model_name: model.id, engine: '0', system_fingerprint }, count);
      }
    },
  });
}
