import { Counter, type Registry } from 'prom-client';
import type { ModelRouting } from '../../../../cluster/routing/model-routing.js';
import type { ModelDirectory } from '../../../serving/model-directory.js';
import { MODEL_LABELS, type ModelLabels } from './families.js';

/** What becomes of requests that a gateway sends where they are cached, as it is when the metrics are read. */
export function routingFamilies(registry: Registry, models: ModelDirectory): void {
  const routings = (): [ModelLabels, ModelRouting][] =>
    models.list().flatMap((model) => {
      const routing = model.kind === 'generator' ? (model.statistics.routing?.() ?? null) : null;
      return routing === null ? [] : [[{ model_name: model.id, engine: '0' }, routing]];
    });
  const registers = [registry];
  new Counter({
    name: 'skein:queue_sent_requests_total',
    help: 'Requests that were sent to a worker that was chosen for them, by its answer: taken, full, nobody (it has ended), silent, or unsent',
    labelNames: [...MODEL_LABELS, 'answer'] as const,
    registers,
    collect() {
      this.reset();
      for (const [labels, { direct }] of routings())
        for (const [answer, count] of Object.entries(direct)) this.inc({ ...labels, answer }, count);
    },
  });
  new Counter({
    name: 'skein:queue_streamed_requests_total',
    help: 'Requests that went into the stream, for whoever asks first, also those that the chosen worker did not take',
    labelNames: MODEL_LABELS,
    registers,
    collect() {
      this.reset();
      for (const [labels, { streamed }] of routings()) this.inc(labels, streamed);
    },
  });
  new Counter({
    name: 'skein:queue_routed_requests_total',
    help: 'Requests that the chosen worker took, by whether a beginning of the prompt was known to be in its cache (hit) or not (miss)',
    labelNames: [...MODEL_LABELS, 'cache'] as const,
    registers,
    collect() {
      this.reset();
      for (const [labels, { cached, uncached }] of routings()) {
        this.inc({ ...labels, cache: 'hit' }, cached);
        this.inc({ ...labels, cache: 'miss' }, uncached);
      }
    },
  });
  new Counter({
    name: 'skein:queue_routed_blocks_total',
    help: 'Blocks of the prompts of these requests that were known to be in the cache of the chosen worker',
    labelNames: MODEL_LABELS,
    registers,
    collect() {
      this.reset();
      for (const [labels, { cachedBlocks }] of routings()) this.inc(labels, cachedBlocks);
    },
  });
}
