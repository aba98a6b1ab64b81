import type { Registry } from 'prom-client';
import type { ModelDirectory } from '../../../serving/model-directory.js';
import type { PictureCounts } from '../../../serving/pictures/model-sight.js';
import { MODEL_LABELS, modelLabels } from './families.js';
import { liveCounter } from './live-family.js';

/** What models that see made of pictures, as it is when the metrics are read. */
export function pictureFamilies(registry: Registry, models: ModelDirectory): void {
  const family = (label: keyof PictureCounts, name: string, help: string) =>
    liveCounter(registry, {
      ...{ name, help, labelNames: [...MODEL_LABELS, label] },
      read: () =>
        models.list().flatMap((model) => {
          const counts = model.kind === 'generator' ? model.statistics.pictures?.()[label] : undefined;
          return Object.entries(counts ?? {}).map(([value, count]) => [
            { ...modelLabels(model.id), [label]: value },
            count,
          ]);
        }),
    });
  family(
    'rows',
    'skein:pictures_total',
    "Pictures of prompts, by their rows: made by the model's tower, or kept since an earlier prompt",
  );
  family('files', 'skein:picture_files_total', 'Files of pictures: read, or known since an earlier prompt');
}
