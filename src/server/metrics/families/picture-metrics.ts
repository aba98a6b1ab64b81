import type { Registry } from 'prom-client';
import type { ModelDirectory } from '../../../serving/model-directory.js';
import { MODEL_LABELS, modelLabels } from './families.js';
import { liveCounter } from './live-family.js';

/** What models that see made of pictures, as it is when the metrics are read. */
export function pictureFamilies(registry: Registry, models: ModelDirectory): void {
  liveCounter(registry, {
    name: 'skein:pictures_total',
    help: "Pictures of prompts, by their rows: made by the model's tower, or kept since an earlier prompt",
    labelNames: [...MODEL_LABELS, 'rows'],
    read: () =>
      models.list().flatMap((model) => {
        const counts = model.kind === 'generator' ? model.statistics.pictures?.() : undefined;
        return Object.entries(counts ?? {}).map(([rows, count]) => [
          { ...modelLabels(model.id), rows },
          count,
        ]);
      }),
  });
}
