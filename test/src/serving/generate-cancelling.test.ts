import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { tinyModelPath } from '../../../tools/support/test-engine.js';
import { repository } from '../../support/documents.js';
import { postJson } from '../../support/post-json.js';
import { type SkeinProcess, startFakeServer } from '../support/skein-process.js';
import { readFrames } from '../support/toy-server.js';

let server: SkeinProcess;
beforeAll(async () => {
  server = await startFakeServer(
    {
      model: [`llm=${tinyModelPath('gqa')}`],
      modelRepository: [join(repository, 'examples/ensemble')],
      apiKey: ['alice', 'bob'],
    },
    { vocabSize: 320, maxSeqLen: 2048, stepMs: 10 },
  );
});
afterAll(() => server?.stop());

const LONG = { text_input: 'ab', max_tokens: 1500, end_id: -1, stream: true };
const post = (
  path: string,
  body: object,
  { key = 'alice', signal }: { key?: string; signal?: AbortSignal } = {},
) =>
  postJson(`${server.url}${path}`, body, {
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    signal: signal ?? null,
  });
const stream = (model: string, body: object, options = {}) =>
  post(`/v2/models/${model}/generate_stream`, body, options);
const stop = (model: string, id: string, options = {}) =>
  post(`/v2/models/${model}/generate`, { text_input: '', id, stop: true }, options);
const running = async () => {
  const response = await fetch(`${server.url}/metrics`, { headers: { authorization: 'Bearer alice' } });
  return Number(/^vllm:num_requests_running\{.*\} (\d+)/m.exec(await response.text())![1]);
};
const nothingRuns = () => vi.waitFor(async () => expect(await running()).toBe(0), 120_000);
const lastOf = async (response: Response) => {
  const { data } = await readFrames(response);
  return { count: data.length, last: JSON.parse(data.at(-1)!) as Record<string, unknown> };
};

describe.each(['llm', 'ensemble'])('a request of %s', (model) => {
  it('ends by its id, with what there was of it, and no other does', async () => {
    const [ended, other] = await Promise.all(['ended', 'other'].map((id) => stream(model, { ...LONG, id })));
    const stopping = await stop(model, 'ended');
    expect(await stopping.json()).toMatchObject({ id: 'ended', text_output: '', finish_reason: 'cancelled' });
    const { last, count } = await lastOf(ended!);
    expect(last).toMatchObject({ id: 'ended', finish_reason: 'cancelled' });
    expect(count).toBeLessThan(1500);
    expect(await running()).toBe(1);
    await other!.body!.cancel();
    await nothingRuns();
  });

  it('does not end by the id of another key, or an id that nobody has', async () => {
    const response = await stream(model, { ...LONG, id: 'mine' });
    expect((await stop(model, 'mine', { key: 'bob' })).status).toBe(200);
    expect((await stop(model, 'nobody')).status).toBe(200);
    expect(await running()).toBe(1);
    expect((await stop(model, 'mine')).status).toBe(200);
    expect((await lastOf(response)).last).toMatchObject({ finish_reason: 'cancelled' });
    const nameless = await stop(model, '');
    expect([nameless.status, await nameless.text()]).toEqual([
      400,
      expect.stringContaining('Trying to stop a request but request ID is not provided'),
    ]);
  });

  it('ends when its client leaves, while it streams and before it answers', async () => {
    const streamed = new AbortController();
    expect((await stream(model, LONG, { signal: streamed.signal })).status).toBe(200);
    streamed.abort();
    await nothingRuns();
    const whole = new AbortController();
    const { stream: _, ...asked } = LONG;
    const answer = post(`/v2/models/${model}/generate`, asked, { signal: whole.signal });
    const failed = expect(answer).rejects.toThrow(/abort/);
    await vi.waitFor(async () => expect(await running()).toBe(1), 120_000);
    whole.abort();
    await failed;
    await nothingRuns();
  });
});
