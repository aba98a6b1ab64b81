import { Gauge, type Registry } from 'prom-client';
import type { ModelDirectory } from '../../../serving/model-directory.js';
import { MODEL_LABELS } from './families.js';

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
  new Gauge({
    name: 'vllm:lora_requests_info',
    help: 'LoRA adapters of the requests in the batch and of those that wait, by name; the value is the time',
    labelNames: ['max_lora', 'running_lora_adapters', 'waiting_lora_adapters'] as const,
    registers: [registry],
    collect() {
      this.reset();
      for (const { adapters } of adaptersOf()) {
        const { running, waiting } = adapters.inFlight();
        const labels = {
          max_lora: String(adapters.room.maxAdapters),
          running_lora_adapters: running.join(','),
          waiting_lora_adapters: waiting.join(','),
        };
        this.set(labels, Date.now() / 1000);
      }
    },
  });
  new Gauge({
    name: 'skein:lora_adapters',
    help: 'LoRA adapters that are loaded',
    labelNames: MODEL_LABELS,
    registers: [registry],
    collect() {
      this.reset();
      for (const { id, adapters } of adaptersOf()) {
        this.set({ model_name: id, engine: '0' }, adapters.list().length);
      }
    },
  });
}
