import type { Registry } from 'prom-client';
import type { ModelDirectory } from '../../../serving/model-directory.js';
import { MODEL_LABELS, modelLabels } from './families.js';
import { liveGauge } from './live-family.js';

/**
 * LoRA adapters of all models, as they are when the metrics are read. vLLM's metric has the names in its labels and the time as its
 * value: routers take the newest series.
 */
export function adapterFamilies(registry: Registry, models: ModelDirectory): void {
  const adaptersOf = () =>
    models.list().flatMap((model) => {
      const adapters = model.kind === 'generator' ? (model.adapters ?? null) : null;
      return adapters === null || adapters.room.maxAdapters === 0 ? [] : [{ id: model.id, adapters }];
    });
  liveGauge(registry, {
    name: 'vllm:lora_requests_info',
    help: 'LoRA adapters of the requests in the batch and of those that wait, by name; the value is the time',
    labelNames: ['max_lora', 'running_lora_adapters', 'waiting_lora_adapters'],
    read: () =>
      adaptersOf().map(({ adapters }) => {
        const { running, waiting } = adapters.inFlight();
        const labels = {
          max_lora: String(adapters.room.maxAdapters),
          running_lora_adapters: running.join(','),
          waiting_lora_adapters: waiting.join(','),
        };
        return [labels, Date.now() / 1000];
      }),
  });
  liveGauge(registry, {
    name: 'skein:lora_adapters',
    help: 'LoRA adapters that are loaded',
    labelNames: MODEL_LABELS,
    read: () => adaptersOf().map(({ id, adapters }) => [modelLabels(id), adapters.list().length]),
  });
}
