import { expect, it } from 'vitest';
import type { IterationStats } from '../../../../../callbacks/gpt-manager-options.js';
import { RoutingCounts } from '../../../../../cluster/gateway/routing-counts.js';
import { ServerMetrics } from '../../../../../src/server/metrics/families/server-metrics.js';
import type { EngineCounts } from '../../../../../src/serving/running-model.js';
import { FakeEngine } from '../../../support/fake-engine.js';
import { directoryOf, ToldStatistics } from '../../../support/served-models.js';
import { toyModel } from '../../../support/toy-server.js';

const COUNTS = { running: 0, waiting: 0, maxBlocks: 1, usedBlocks: 0 };

function metricsOf(counts: RoutingCounts | null, routing: boolean): Promise<string> {
  const statistics = new ToldStatistics<EngineCounts, IterationStats>(() => COUNTS);
  const routed = Object.assign(statistics, { routing: () => counts?.of('key') ?? null });
  const model = toyModel(new FakeEngine(() => []), { id: 'chat', statistics: routed });
  return new ServerMetrics(directoryOf(model), { routing }).text();
}

it('metrics of a gateway tell what became of the requests that it sent where they are cached', async () => {
  const counts = new RoutingCounts();
  counts.note('key', 'taken', 5);
  counts.note('key', 'taken', 0);
  counts.note('key', 'full', 7);
  counts.noteStreamed('key');
  const text = await metricsOf(counts, true);
  const labels = 'model_name="chat",engine="0"';
  for (const line of [
    `skein:queue_sent_requests_total{${labels},answer="taken"} 2`,
    `skein:queue_sent_requests_total{${labels},answer="full"} 1`,
    `skein:queue_sent_requests_total{${labels},answer="silent"} 0`,
    `skein:queue_streamed_requests_total{${labels}} 1`,
    `skein:queue_routed_requests_total{${labels},cache="hit"} 1`,
    `skein:queue_routed_requests_total{${labels},cache="miss"} 1`,
    `skein:queue_routed_blocks_total{${labels}} 5`,
  ])
    expect(text).toContain(`${line}\n`);
  expect(await metricsOf(null, true)).not.toContain('queue_sent_requests_total{');
  expect(await metricsOf(counts, false)).not.toContain('queue_sent');
});
