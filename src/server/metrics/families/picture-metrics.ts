import { Counter, type Registry } from 'prom-client';
import type { ModelDirectory } from '../../../serving/model-directory.js';
import { MODEL_LABELS } from './families.js';

/** What models that see made of pictures, as it is when the metrics are read. */
export function pictureFamilies(registry: Registry, models: ModelDirectory): void {
  new Counter({
    name: 'skein:pictures_total',
    help: "Pictures of prompts, by their rows: made by the model's tower, or kept since an earlier prompt",
    labelNames: [...MODEL_LABELS, 'rows'] as const,
    registers: [registry],
    collect() {
      this.reset();
      for (const model of models.list()) {
        const counts = model.kind === 'generator' ? model.statistics.pictures?.() : undefined;
        for (const [rows, count] of Object.entries(counts ?? {}))
          this.inc({ model_name: model.id, engine: '0', rows }, count);
      }
    },
  });
}
