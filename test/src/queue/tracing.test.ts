import { afterAll, beforeAll, expect, it } from 'vitest';
import { QueueLab, until } from '../../../tools/support/queue/queue-lab.js';
import { tinyModelPath } from '../../../tools/support/test-engine.js';
import { postJson } from '../../support/post-json.js';
import {
  cleanEnvironment,
  cliPath,
  type SkeinProcess,
  start,
  testCacheDir,
} from '../support/skein-process.js';
import { describeWithNats, testNats } from '../support/test-nats.js';
import { type CollectedSpan, TraceCollector } from '../trace-collector.js';

const CACHE = ['--cache-dir', testCacheDir];
const WORKER = [
  ...['--model', `tiny=${tinyModelPath('gqa')}`, '--weights', 'f32', '--threads', '1', ...CACHE],
  ...['--kv-cache-tokens', '8192', '--max-active-requests', '4', '--log-level', 'info'],
];
const ASKED = { model: 'tiny', prompt: 'ab'.repeat(40), temperature: 1, seed: 5, ignore_eos: true };

const named = (spans: readonly CollectedSpan[], name: string) => {
  const found = spans.filter((span) => span.name === name);
  expect(found.map((span) => span.name)).toEqual([name]);
  return found[0]!;
};
const below = (spans: readonly CollectedSpan[], { spanId }: CollectedSpan) =>
  spans.filter(({ parentSpanId }) => parentSpanId === spanId).map(({ name }) => name);

/** Objects of a log's lines about the request of a client. */
const linesOf = (output: string, requestId: string): Record<string, unknown>[] =>
  output
    .split('\n')
    .filter((line) => line.startsWith('{') && line.includes(requestId))
    .map((line) => JSON.parse(line));

describeWithNats('a request through gateway and workers', () => {
  let collector: TraceCollector;
  let lab: QueueLab;
  let gateway: SkeinProcess;
  let numTraces = 0;

  /** Headers of a client that traces its request. */
  const traced = (requestId: string) => {
    const traceId = (++numTraces).toString(16).padStart(32, 'b');
    const traceparent = `00-${traceId}-b7ad6b7169203331-01`;
    return { traceId, headers: { traceparent, tracestate: 'vendor=x', 'x-request-id': requestId } };
  };
  /** The spans of a trace, once those of the client's request and of its last worker have come. */
  const spansOf = async (traceId: string): Promise<CollectedSpan[]> => {
    const has = (wanted: string) => collector.trace(traceId).some(({ name }) => name === wanted);
    await until('the spans', () => has('POST /v1/completions') && has('work'));
    return collector.trace(traceId);
  };

  beforeAll(async () => {
    collector = await TraceCollector.listen();
    const environment = { OTEL_BSP_SCHEDULE_DELAY: '20' };
    lab = await QueueLab.start({ nats: testNats!, environment: cleanEnvironment(environment) });
    const tracing = ['--trace-endpoint', collector.url];
    const listening = ['gateway', '--nats', lab.nats.url, '--port', '0', '--log-level', 'debug', ...CACHE];
    gateway = await start([cliPath, ...listening, ...tracing], environment);
    for (let i = 0; i < 2; i++) await lab.startWorker([...WORKER, ...tracing]);
    const isThere = async () => /"tiny"/.test(await (await fetch(`${gateway.url}/v1/models`)).text());
    await until('the model', isThere);
  });
  afterAll(async () => {
    await gateway?.stop();
    await lab?.close();
    collector?.close();
  });

  it('is one trace, with the spans of its worker below those of its gateway', async () => {
    const { traceId, headers } = traced('goose-1');
    const answer = await postJson(`${gateway.url}/v1/completions`, { ...ASKED, max_tokens: 6 }, { headers });
    expect(answer.status).toBe(200);
    const spans = await spansOf(traceId);
    const http = named(spans, 'POST /v1/completions');
    expect(http).toMatchObject({ parentSpanId: 'b7ad6b7169203331', traceState: 'vendor=x', kind: 2 });
    expect(below(spans, http).sort()).toEqual(['attempt 1', 'llm_request']);
    const attempt = named(spans, 'attempt 1');
    expect(attempt).toMatchObject({ kind: 3, status: 0, traceState: 'vendor=x', links: [] });
    const work = named(spans, 'work');
    const { 'skein.worker': worker } = work.attributes;
    expect(lab.find(String(worker))).toBeDefined();
    expect(attempt.attributes).toMatchObject({
      'skein.request_id': 'goose-1',
      'skein.attempt': 1,
      'skein.worker': worker,
      'skein.outcome': 'answered',
      'skein.accepted_tokens': 6,
    });
    expect(below(spans, attempt).sort()).toEqual(['queue', 'route', 'work']);
    expect(named(spans, 'route').attributes['skein.route']).toMatch(/chosen|stream/);
    expect(work).toMatchObject({ kind: 2, status: 0, traceState: 'vendor=x' });
    expect(work.attributes).toMatchObject({
      'skein.request_id': 'goose-1',
      'skein.queue.request': attempt.attributes['skein.queue.request'],
      'skein.attempt': 1,
      'skein.outcome': 'answered',
      'skein.iterations': expect.any(Number),
      'gen_ai.request.max_tokens': 6,
      'gen_ai.usage.output_tokens': 6,
    });
    expect(below(spans, work)).toEqual(['queue', 'context phase', 'generation phase']);
    const ofWorker = spans.filter(({ parentSpanId }) => parentSpanId === work.spanId);
    const prompt = work.attributes['gen_ai.usage.input_tokens'];
    expect(prompt).toBeGreaterThan(40);
    expect(named(ofWorker, 'context phase').attributes).toMatchObject({
      'gen_ai.usage.input_tokens': prompt,
      'skein.usage.cached_tokens': 0,
    });
    expect(named(ofWorker, 'generation phase').attributes).toEqual({ 'gen_ai.usage.output_tokens': 6 });
    for (const span of spans) expect(span.endMs).toBeGreaterThanOrEqual(span.startMs);
    expect(JSON.stringify(spans)).not.toContain('abab');
  });

  it('goes on under its id and in its trace where its worker is killed: there are two attempts', async () => {
    const { traceId, headers } = traced('goose-2');
    let killed = '';
    const stop = lab.onFrame(({ worker, index }) => {
      const found = lab.find(worker);
      if (index < 3 || found === undefined) return;
      stop();
      killed = worker;
      void lab.kill(found);
    });
    const asked = { ...ASKED, max_tokens: 150, stream: true };
    const answer = await postJson(`${gateway.url}/v1/completions`, asked, { headers });
    expect(await answer.text()).toContain('[DONE]');
    const spans = await spansOf(traceId);
    const [first, second] = [named(spans, 'attempt 1'), named(spans, 'attempt 2')];
    expect(first.attributes).toMatchObject({ 'skein.worker': killed, 'skein.outcome': 'lost' });
    expect(first).toMatchObject({ status: 2, message: 'the attempt ended: lost' });
    expect(second).toMatchObject({ status: 0, links: [first.spanId] });
    expect(second.attributes).toMatchObject({ 'skein.outcome': 'answered', 'skein.accepted_tokens': 150 });
    expect(second.startMs).toBeGreaterThanOrEqual(first.endMs);
    // The first worker's span has died with it.
    const work = named(spans, 'work');
    expect(work.parentSpanId).toBe(second.spanId);
    const known = work.attributes['skein.known_tokens'] as number;
    expect(known).toBe(first.attributes['skein.accepted_tokens']);
    expect(work.attributes).toMatchObject({
      'skein.attempt': 2,
      'gen_ai.usage.output_tokens': 150 - known,
      'skein.request_id': 'goose-2',
    });
    const { worker } = { worker: lab.find(String(work.attributes['skein.worker']))! };
    expect(worker.id).not.toBe(killed);
    const ofGateway = linesOf(gateway.output().stderr, 'goose-2');
    for (const line of ofGateway) expect(line.requestId).toBe('goose-2');
    const messages = ofGateway.map(({ msg }) => msg);
    expect(messages).toContain('request routed');
    expect(messages.at(-1)).toBe('request');
    expect(ofGateway.find(({ msg }) => msg === 'attempt given up')).toMatchObject({
      worker: killed,
      attempt: 1,
      why: 'lost',
    });
    await until('the line', () => linesOf(worker.output(), 'goose-2').length > 0);
    expect(linesOf(worker.output(), 'goose-2')).toEqual([
      expect.objectContaining({
        msg: 'request',
        requestId: 'goose-2',
        worker: worker.id,
        attempt: 2,
        end: 'answered',
        completionTokens: 150 - known,
      }),
    ]);
  });

  it('has its id in an answer that is an error, and no trace where its client has decided so', async () => {
    const traceparent = `00-${'c'.repeat(32)}-b7ad6b7169203331-00`;
    const headers = { traceparent, 'x-request-id': 'goose-3' };
    const refused = await postJson(
      `${gateway.url}/v1/completions`,
      { ...ASKED, max_tokens: 1e6 },
      { headers },
    );
    expect([refused.status, refused.headers.get('x-request-id')]).toEqual([400, 'goose-3']);
    await postJson(`${gateway.url}/v1/completions`, { ...ASKED, max_tokens: 2 }, { headers });
    const { traceId, headers: after } = traced('goose-4');
    await postJson(`${gateway.url}/v1/completions`, { ...ASKED, max_tokens: 2 }, { headers: after });
    await spansOf(traceId);
    // Spans leave in their order.
    expect(collector.trace('c'.repeat(32))).toEqual([]);
  });
});
