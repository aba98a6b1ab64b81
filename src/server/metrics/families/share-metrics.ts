import { Counter, Gauge, type Registry } from 'prom-client';
import type { EngineShare } from '../../../../cluster/routing/model-routing.js';
import type { ModelDirectory } from '../../../serving/model-directory.js';
import { MODEL_LABELS, type ModelLabels } from './families.js';

/** How a gateway's requests were shared among engines of one model, as it is when the metrics are read. */
export function shareFamilies(registry: Registry, models: ModelDirectory): void {
  const registers = [registry];
  const shares = (): [ModelLabels, string, EngineShare][] =>
    models.list().flatMap((model) => {
      const of = model.kind === 'generator' ? [...(model.statistics.shares?.() ?? [])] : [];
      const labels = { model_name: model.id, engine: '0' };
      return of.map(([engine, share]): [ModelLabels, string, EngineShare] => [labels, engine, share]);
    });
  new Counter({
    name: 'skein:queue_engine_requests_total',
    help: 'New requests that workers with this engine were given',
    labelNames: [...MODEL_LABELS, 'system_fingerprint'] as const,
    registers,
    collect() {
      this.reset();
      for (const [labels, system_fingerprint, { requests }] of shares())
        this.inc({ ...labels, system_fingerprint }, requests);
    },
  });
  new Gauge({
    name: 'skein:queue_engine_weight',
    help: 'Weight of an engine among those of its model (--pool-weights); only where requests are shared by weights',
    labelNames: [...MODEL_LABELS, 'system_fingerprint'] as const,
    registers,
    collect() {
      this.reset();
      for (const [labels, system_fingerprint, { weight }] of shares())
        if (weight !== null) this.set({ ...labels, system_fingerprint }, weight);
    },
  });
}
