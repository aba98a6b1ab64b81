import { Gauge, type Registry } from 'prom-client';
import type { ModelDirectory } from '../../../serving/model-directory.js';
import { MODEL_LABELS } from './families.js';

/** Prefill workers of a gateway that are of no use; models that are no gateway's have no series. */
export function prefillFamilies(registry: Registry, models: ModelDirectory): void {
  new Gauge({
    name: 'skein:queue_unused_prefill_workers',
    help: 'Prefill workers whose blocks no worker that answers can use',
    labelNames: MODEL_LABELS,
    registers: [registry],
    collect() {
      this.reset();
      for (const model of models.list()) {
        const unused = model.kind === 'generator' ? model.statistics.unusedPrefillers?.() : undefined;
        if (unused !== undefined) this.set({ model_name: model.id, engine: '0' }, unused);
      }
    },
  });
}
