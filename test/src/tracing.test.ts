import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GrpcClient } from '../../tools/support/grpc-client.js';
import { tinyModelPath } from '../../tools/support/test-engine.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { postJson } from '../support/post-json.js';
import { grpcAddress, type SkeinProcess, startServer } from './support/skein-process.js';
import { warmCli } from './support/warm-cli.js';
import { type CollectedSpan, TraceCollector } from './trace-collector.js';

const runCli = warmCli();

const folder = temporaryFolder('skein-tracing-');
let collector: TraceCollector;
let server: SkeinProcess;

function put(name: string, code: string, config = ''): void {
  mkdirSync(join(folder, name, '1'), { recursive: true });
  const io =
    'input: [{name: X, data_type: TYPE_INT32, dims: [1]}]\noutput: [{name: Y, data_type: TYPE_INT32, dims: [1]}]\n';
  writeFileSync(join(folder, name, 'config.yaml'), `backend: module\nmax_batch_size: 8\n${io}${config}`);
  writeFileSync(join(folder, name, '1/model.mjs'), code);
}

/** Asks `squares`: for the first of its requests in the batch's name, for all others in their own. Y of -1 is its traceparent's absence. */
const ASKS = `
let infer;
export const initialize = (setup) => { infer = setup.infer; };
export const execute = (requests) => Promise.all(requests.map(async (request, i) => {
  const { X } = request.inputs;
  const { outputs: { Y } } = await infer({ model: 'squares', inputs: { X: { data: X.data, shape: X.shape } }, ...(i > 0 ? { request } : {}) });
  return { outputs: { Y: { data: [...Y.data], shape: Y.shape } }, parameters: { traceparent: request.traceparent ?? 'none' } };
}));`;
const SQUARES = `
export const execute = (requests) => requests.map(({ inputs: { X } }) => {
  if (X.data[0] < 0) throw new Error('no roots here');
  return { outputs: { Y: { data: X.data.map((x) => x * x), shape: X.shape } } };
});`;
const TOGETHER = 'dynamic_batching: {preferred_batch_size: [2], max_queue_delay_microseconds: 30000000}\n';

beforeAll(async () => {
  put('asks', ASKS, TOGETHER);
  put('squares', SQUARES);
  put('kept', SQUARES, 'response_cache: {enable: true}\n');
  collector = await TraceCollector.listen();
  const args = ['--model-repository', folder, '--model', `tiny=${tinyModelPath('gqa')}`, '--trace-rate', '0'];
  const environment = {
    OTEL_BSP_SCHEDULE_DELAY: '20',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
    OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=geese',
  };
  server = await startServer(
    [...args, '--trace-endpoint', collector.url, '--response-cache-bytes', '1000000', '--grpc-port', '0'],
    environment,
  );
});
afterAll(async () => {
  await server?.stop();
  collector?.close();
  rmSync(folder, { recursive: true, force: true });
});

let numTraces = 0;

/** Headers of a client that traces its request, with the ids that it has. */
function traced(flags = '01') {
  const traceId = (++numTraces).toString(16).padStart(32, 'a');
  const headers = { traceparent: `00-${traceId}-b7ad6b7169203331-${flags}`, tracestate: 'vendor=x' };
  return { traceId, headers };
}

const infer = async (model: string, value: number, headers: Record<string, string>, id = '') => {
  const inputs = [{ name: 'X', datatype: 'INT32', shape: [1, 1], data: [value] }];
  const response = await postJson(`${server.url}/v2/models/${model}/infer`, { inputs, id }, { headers });
  return (await response.json()) as { outputs: { data: number[] }[]; parameters?: Record<string, string> };
};

/**
 * The spans of a trace once that of its request has come.
 * @param batch a span that may end after the answer is out, since an instance reports a batch's end after its
 * answers
 */
async function spansOf(traceId: string, batch?: string): Promise<CollectedSpan[]> {
  const has = (wanted: (span: CollectedSpan) => boolean) => collector.trace(traceId).some(wanted);
  const isWhole = () =>
    has(({ kind }) => kind === 2) && (batch === undefined || has(({ name }) => name === batch));
  await expect.poll(isWhole).toBe(true);
  return collector.trace(traceId);
}

const named = (spans: readonly CollectedSpan[], name: string) => {
  const found = spans.filter((span) => span.name === name);
  expect(found.map((span) => span.name)).toEqual([name]);
  return found[0]!;
};

describe('the trace of a request for tensors', () => {
  it('goes on where its client has begun it, through queue, batch and computing', async () => {
    const { traceId, headers } = traced();
    await infer('squares', 3, headers, 'mine');
    const spans = await spansOf(traceId, 'batch squares');
    const http = named(spans, 'POST /v2/models/{model}/infer');
    const model = named(spans, 'infer squares');
    const compute = named(spans, 'compute');
    expect(http).toMatchObject({
      parentSpanId: 'b7ad6b7169203331',
      kind: 2,
      status: 0,
      traceState: 'vendor=x',
    });
    expect(http.attributes).toMatchObject({
      'http.request.method': 'POST',
      'http.route': '/v2/models/{model}/infer',
      'url.path': '/v2/models/squares/infer',
      'http.response.status_code': 200,
    });
    expect(model).toMatchObject({ parentSpanId: http.spanId });
    expect(model.attributes).toMatchObject({
      'triton.model_name': 'squares',
      'triton.model_version': '1',
      'triton.request_id': 'mine',
    });
    expect(named(spans, 'queue')).toMatchObject({ parentSpanId: model.spanId });
    expect(compute).toMatchObject({ parentSpanId: model.spanId });
    for (const part of ['compute input', 'compute infer', 'compute output'])
      expect(named(spans, part)).toMatchObject({ parentSpanId: compute.spanId });
    expect(named(spans, 'batch squares')).toMatchObject({
      parentSpanId: compute.spanId,
      links: [compute.spanId],
      attributes: { 'skein.batch.requests': 1, 'skein.batch.rows': 1 },
    });
    for (const span of spans) {
      expect(span.endMs).toBeGreaterThanOrEqual(span.startMs);
      const parent = spans.find(({ spanId }) => spanId === span.parentSpanId);
      if (parent !== undefined) expect(span.startMs).toBeGreaterThanOrEqual(parent.startMs);
    }
    expect(collector.resources[0]).toMatchObject({
      'service.name': 'skein',
      'deployment.environment.name': 'test',
    });
    expect(collector.headers[0]).toMatchObject({ 'x-tenant': 'geese' });
  });

  it('goes on over gRPC, also for a request of a stream, and tells what failed', async () => {
    const asked = (value: number) => ({
      model_name: 'squares',
      inputs: [{ name: 'X', datatype: 'INT32', shape: [1, 1], contents: { int_contents: [value] } }],
    });
    for (const [value, status] of [
      [3, 0],
      [-1, 13],
    ] as const) {
      for (const method of ['ModelInfer', 'ModelStreamInfer']) {
        const { traceId, headers } = traced();
        const client = new GrpcClient(grpcAddress(server), { metadata: headers });
        if (method === 'ModelInfer') await client.call(method, asked(value));
        else await client.exchange(method, [asked(value)]);
        client.close();
        const spans = await spansOf(traceId);
        const call = named(spans, `inference.GRPCInferenceService/${method}`);
        expect(call).toMatchObject({ parentSpanId: 'b7ad6b7169203331', status: status === 0 ? 0 : 2 });
        expect(call.attributes).toMatchObject({ 'rpc.system': 'grpc', 'rpc.grpc.status_code': status });
        expect(named(spans, 'infer squares')).toMatchObject({ parentSpanId: call.spanId });
      }
    }
  });

  it('holds what its model asks of others, and is linked with the batch that it shares', async () => {
    const [a, b] = [traced(), traced()];
    const first = infer('asks', 2, a.headers);
    await expect
      .poll(async () => {
        const text = await (await fetch(`${server.url}/metrics`)).text();
        return /nv_inference_pending_request_count\{model="asks",version="1"\} 1/.test(text);
      })
      .toBe(true);
    const [one, two] = await Promise.all([first, infer('asks', 5, b.headers)]);
    expect([one.outputs[0]!.data, two.outputs[0]!.data]).toEqual([[4], [25]]);
    const [ofA, ofB] = [await spansOf(a.traceId, 'batch asks'), await spansOf(b.traceId)];
    const computes = [ofA, ofB].map(
      (spans) =>
        spans.find(
          ({ name, parentSpanId }) =>
            name === 'compute' && parentSpanId === named(spans, 'infer asks').spanId,
        )!,
    );
    const batch = named(ofA, 'batch asks');
    expect(batch).toMatchObject({
      parentSpanId: computes[0]!.spanId,
      links: computes.map(({ spanId }) => spanId),
    });
    expect(batch.attributes).toEqual({ 'skein.batch.requests': 2, 'skein.batch.rows': 2 });
    // The first names no request, so that the batch asks; the second asks for its own.
    expect(named(ofA, 'infer squares')).toMatchObject({ parentSpanId: batch.spanId });
    expect(named(ofB, 'infer squares')).toMatchObject({ parentSpanId: computes[1]!.spanId });
    const parent = (spans: CollectedSpan[]) => named(spans, 'infer asks').spanId;
    expect(one.parameters).toEqual({ traceparent: `00-${a.traceId}-${parent(ofA)}-01` });
    expect(two.parameters).toEqual({ traceparent: `00-${b.traceId}-${parent(ofB)}-01` });
  });

  it('tells what failed, and what was found in the cache', async () => {
    const [bad, miss, hit] = [traced(), traced(), traced()];
    await infer('squares', -1, bad.headers);
    const failed = await spansOf(bad.traceId);
    expect(named(failed, 'infer squares')).toMatchObject({
      status: 2,
      message: expect.stringContaining('no roots here'),
    });
    expect(named(failed, 'POST /v2/models/{model}/infer')).toMatchObject({
      status: 2,
      message: 'HTTP status 500',
    });
    await infer('kept', 4, miss.headers);
    await infer('kept', 4, hit.headers);
    expect(named(await spansOf(miss.traceId, 'batch kept'), 'compute')).toBeDefined();
    const found = await spansOf(hit.traceId);
    expect(found.map(({ name }) => name)).toEqual(['POST /v2/models/{model}/infer', 'infer kept']);
    expect(found[1]!.attributes).toMatchObject({ 'skein.cache.hit': true });
  });
});

describe('the trace of a request for text', () => {
  const about = {
    model: 'tiny',
    prompt: 'ab',
    max_tokens: 12,
    temperature: 0.5,
    top_p: 0.9,
    ignore_eos: true,
  };

  it.each([
    ['whole', {}],
    ['streamed', { stream: true }],
  ])('has its phases, and the numbers that dashboards of vLLM read: %s', async (_, more) => {
    const { traceId, headers } = traced();
    const asked = { headers: { ...headers, 'x-request-id': 'abc' } };
    await (await postJson(`${server.url}/v1/completions`, { ...about, ...more }, asked)).text();
    const spans = await spansOf(traceId);
    const http = named(spans, 'POST /v1/completions');
    const text = named(spans, 'llm_request');
    expect(text).toMatchObject({ parentSpanId: http.spanId, status: 0 });
    expect(text.events).toEqual(['first_token', 'tokens', 'tokens', 'tokens']);
    expect(text.attributes).toMatchObject({
      'gen_ai.operation.name': 'text_completion',
      'gen_ai.request.id': 'abc',
      'gen_ai.request.model': 'tiny',
      'gen_ai.response.model': 'tiny',
      'gen_ai.request.max_tokens': 12,
      'gen_ai.request.temperature': 0.5,
      'gen_ai.request.top_p': 0.9,
      'gen_ai.request.n': 1,
      'gen_ai.usage.completion_tokens': 12,
      'gen_ai.usage.output_tokens': 12,
      'gen_ai.response.finish_reasons': ['length'],
      'skein.iterations': 12,
    });
    const latency = (name: string) => text.attributes[`gen_ai.latency.${name}`] as number;
    expect(latency('time_to_first_token')).toBeCloseTo(
      latency('time_in_queue') + latency('time_in_model_prefill'),
      6,
    );
    expect(latency('e2e')).toBeGreaterThan(0);
    for (const phase of ['queue', 'context phase', 'generation phase'])
      expect(named(spans, phase)).toMatchObject({ parentSpanId: text.spanId });
    expect(named(spans, 'generation phase').startMs).toBeGreaterThanOrEqual(
      named(spans, 'context phase').startMs,
    );
    expect(JSON.stringify(spans)).not.toContain('"ab"');
  });

  it('is the same by the protocol of tensors, and bounded where many answers are asked for', async () => {
    const [tensors, many] = [traced(), traced()];
    const inputs = [
      { name: 'text_input', datatype: 'BYTES', shape: [1], data: ['ab'] },
      { name: 'max_tokens', datatype: 'INT32', shape: [1], data: [3] },
    ];
    await postJson(`${server.url}/v2/models/tiny/infer`, { inputs, id: '7' }, { headers: tensors.headers });
    const spans = await spansOf(tensors.traceId);
    const text = named(spans, 'llm_request');
    expect(text).toMatchObject({ parentSpanId: named(spans, 'infer tiny').spanId });
    expect(text.attributes).toMatchObject({ 'gen_ai.request.id': '7', 'gen_ai.request.max_tokens': 3 });
    await (
      await postJson(`${server.url}/v1/completions`, { ...about, n: 20 }, { headers: many.headers })
    ).text();
    const choices = (await spansOf(many.traceId)).filter(({ name }) => name === 'llm_request');
    expect(choices).toHaveLength(16);
  });
});

it('requests of a client that does not trace, or has decided not to, are not traced; settings change it', async () => {
  const dropped = traced('00');
  await infer('squares', 2, dropped.headers);
  await fetch(`${server.url}/v1/models`);
  const setting = await postJson(`${server.url}/v2/models/squares/trace/setting`, {
    trace_rate: '1',
    trace_count: '1',
  });
  expect(await setting.json()).toMatchObject({
    trace_level: ['TIMESTAMPS'],
    trace_rate: '1',
    trace_count: '1',
  });
  const before = collector.spans.length;
  await infer('squares', 2, {});
  await infer('squares', 2, {});
  await infer('squares', 2, dropped.headers);
  const last = traced();
  await infer('squares', 2, last.headers);
  await spansOf(last.traceId);
  const own = collector.spans
    .slice(before)
    .filter(({ kind, traceId }) => kind === 2 && traceId !== last.traceId);
  expect(own).toHaveLength(1);
  expect(own[0]).toMatchObject({ parentSpanId: '' });
  expect(collector.trace(dropped.traceId)).toEqual([]);
});

it('an address that is none is refused before anything is loaded', async () => {
  const { code, stderr } = await runCli(['serve', '--trace-endpoint', 'grpc://localhost:4317']);
  expect([code, stderr]).toEqual([
    2,
    'skein: --trace-endpoint is "grpc://localhost:4317"; the address of a receiver of OTLP over HTTP is expected, such as http://localhost:4318.\n',
  ]);
  for (const address of ['http://u:hunter2@localhost:4318', 'u:hunter2@localhost']) {
    const secret = await runCli(['serve', '--trace-endpoint', address]);
    expect(secret.code).toBe(2);
    expect(secret.stderr).toMatch(
      /^skein: --trace-endpoint holds a user or a password; OTEL_EXPORTER_OTLP_HEADERS /,
    );
    expect(secret.stderr).not.toContain('hunter2');
  }
});
