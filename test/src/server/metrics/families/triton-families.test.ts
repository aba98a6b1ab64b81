import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import {
  rateLimitFamilies,
  sequenceFamilies,
} from '../../../../../src/server/metrics/families/tensor-metrics.js';
import { tritonFamilies } from '../../../../../src/server/metrics/families/triton-families.js';
import type { InferModel, TimeCounts } from '../../../../../src/serving/infer-model.js';
import { InferenceCounters } from '../../../../../src/serving/inference-counters.js';
import { RateLimits } from '../../../../../src/serving/rate-limits.js';
import { parseExposition } from '../../../../../tools/monitoring/exposition.js';

it('tells what models count under the names of Triton, and forgets models that are gone', async () => {
  const counters = new InferenceCounters();
  const times = { inputNs: 1000, inferNs: 5000, outputNs: 2000 };
  counters.noteExecution(4, times);
  counters.noteSuccess(3, 20_000, 7000, times);
  counters.noteSuccess(1, 10_000, 1000, times);
  counters.noteFailure('REJECTED', 100);
  const model = {
    config: { name: 'm' },
    version: '2',
    statistics: () => counters.read(),
    failures: () => counters.failures(),
    activity: () => ({ waiting: 5, running: 2 }),
  } as unknown as InferModel;
  let loaded = [model];
  const registry = new Registry();
  tritonFamilies(registry, () => loaded);
  const text = await registry.metrics();
  const of = (name: string, more = '') =>
    new RegExp(`^${name}\\{model="m",version="2"${more}\\} (\\S+)$`, 'm').exec(text)?.[1];
  expect(of('nv_inference_request_success')).toBe('2');
  expect(of('nv_inference_count')).toBe('4');
  expect(of('nv_inference_exec_count')).toBe('1');
  expect(of('nv_inference_request_duration_us')).toBe('30');
  expect(of('nv_inference_queue_duration_us')).toBe('8');
  expect(of('nv_inference_compute_infer_duration_us')).toBe('10');
  expect(of('nv_inference_pending_request_count')).toBe('5');
  expect(of('nv_inference_request_failure', ',reason="REJECTED"')).toBe('1');
  expect(of('nv_inference_request_failure', ',reason="BACKEND"')).toBe('0');
  expect(text).toMatch(/^nv_cpu_memory_total_bytes [1-9]/m);
  expect(text).toMatch(/^nv_cpu_utilization \S+$/m);
  loaded = [];
  expect(await registry.metrics()).not.toContain('model="m"');
});

it('tells how many sequences a model has that has them', async () => {
  const model = (name: string, sequences?: { live: number; backlog: number }) =>
    ({ config: { name }, version: '1', activity: () => ({ sequences }) }) as unknown as InferModel;
  const registry = new Registry();
  sequenceFamilies(registry, () => [model('m', { live: 4, backlog: 2 }), model('without')]);
  const lines = (await registry.metrics()).split('\n').filter((line) => line.startsWith('skein:sequences{'));
  expect(lines).toEqual([
    'skein:sequences{model="m",version="1",state="live"} 4',
    'skein:sequences{model="m",version="1",state="backlog"} 2',
  ]);
});

it('tells which resources of the rate limiter are in use', async () => {
  const limits = new RateLimits(new Map([['R', 5]]));
  const needs = (name: string, isGlobal: boolean) => [{ name, isGlobal, count: 2 }];
  const [one, other, third] = [{ onTurn: () => true }, { onTurn: () => true }, { onTurn: () => true }];
  limits.add(one, { needs: needs('R', false), priority: 1 });
  limits.add(other, { needs: needs('G', true), priority: 1 });
  limits.add(third, { needs: needs('G', true), priority: 1 });
  for (const limited of [other, third]) limits.want(limited, true);
  limits.go();
  const registry = new Registry();
  rateLimitFamilies(registry, limits);
  const text = await registry.metrics();
  expect(text.split('\n').filter((line) => line.startsWith('skein:rate'))).toEqual([
    'skein:rate_limit_resource_copies{resource="R",scope="device",state="total"} 5',
    'skein:rate_limit_resource_copies{resource="R",scope="device",state="used"} 0',
    'skein:rate_limit_resource_copies{resource="G",scope="global",state="total"} 2',
    'skein:rate_limit_resource_copies{resource="G",scope="global",state="used"} 2',
    'skein:rate_limit_waiting_instances 1',
  ]);
});

it('tells how soon models that send several responses send the first', async () => {
  const counters = new InferenceCounters();
  for (const ms of [100, 101, 6000]) counters.noteFirstResponse(1e6 * ms);
  const model = (name: string, firstResponses?: () => TimeCounts) =>
    ({
      config: { name },
      version: '1',
      statistics: () => counters.read(),
      failures: () => counters.failures(),
      activity: () => ({ waiting: 0, running: 0 }),
      firstResponses,
    }) as unknown as InferModel;
  const registry = new Registry();
  tritonFamilies(registry, () => [model('several', () => counters.firstResponses()), model('one')]);
  const family = parseExposition(await registry.metrics()).get('nv_inference_first_response_histogram_ms')!;
  expect(family.type).toBe('histogram');
  expect(family.samples.map(({ labels: { model: name, le }, value }) => [name, le, value])).toEqual([
    ['several', '100', 1],
    ['several', '500', 2],
    ['several', '2000', 2],
    ['several', '5000', 2],
    ['several', '+Inf', 3],
    ['several', undefined, 6201],
    ['several', undefined, 3],
  ]);
});
