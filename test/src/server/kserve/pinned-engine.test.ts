import { expect, it, vi } from 'vitest';
import { InferError } from '../../../../callbacks/infer/infer-error.js';
import type { InferListener, InferRequest } from '../../../../callbacks/infer/infer-types.js';
import type { InferModel } from '../../../../src/serving/infer-model.js';
import { FakeModel, fakeConfig } from './support/fake-models.js';
import { fakePlatform } from './support/fake-platform.js';

const PIN = { 'x-skein-engine': 'fp_a' };
const TENSORS = { inputs: [{ name: 'INPUT0', datatype: 'INT32', shape: [1], data: [7] }] };

/** A model whose request the test plays, over the whole HTTP side. */
function played(kind: InferModel['kind']) {
  const config = fakeConfig({ name: 'm', type: 'TYPE_INT32', dims: [-1] });
  const model = Object.assign(new FakeModel(config), { kind });
  const taken: { request: InferRequest; on: InferListener }[] = [];
  let asked = 0;
  model.infer = (request, on) => {
    taken.push({ request, on });
    request.terms!.onBegun?.(() => {
      asked += 1;
      return true;
    });
  };
  const platform = fakePlatform([model as FakeModel], { eventStream: { keepAliveMs: 2 } });
  const untilTaken = () => vi.waitFor(() => expect(taken).toHaveLength(1), 120_000);
  return { platform, taken, untilTaken, timesAsked: () => asked };
}

it('a model that generates text is told which engine is to answer', async () => {
  const { platform, taken, untilTaken } = played('generator');
  const answer = platform.infer('m', TENSORS, PIN);
  await untilTaken();
  const { request, on } = taken[0]!;
  expect(request.terms!.engine).toBe('fp_a');
  on.fail(new InferError('There is no engine fp_a.', 'invalid'));
  expect((await answer).status).toBe(400);
});

it('a model without engines of a name refuses a request that names one, however it comes', async () => {
  const { platform, taken } = played('tensors');
  const generate = (path: string) => platform.post(`/v2/models/m/${path}`, { INPUT0: [7] }, { headers: PIN });
  for (const answer of [
    platform.infer('m', TENSORS, PIN),
    ...['generate', 'generate_stream'].map(generate),
  ]) {
    const { status } = await answer;
    expect([status, await (await answer).json()]).toEqual([
      ...[400, { error: expect.stringContaining("X-Skein-Engine is for models that generate text; 'm'") }],
    ]);
  }
  expect(taken).toEqual([]);
});

it('an empty header names no engine', async () => {
  const { platform, taken, untilTaken } = played('generator');
  const answer = platform.infer('m', TENSORS, { 'x-skein-engine': '' });
  await untilTaken();
  expect(taken[0]!.request.terms!.engine).toBeUndefined();
  taken[0]!.on.fail(new InferError('Enough.', 'invalid'));
  await answer;
});

it('a stream of generate has no head while its request waits for an engine elsewhere', async () => {
  const { platform, taken, untilTaken, timesAsked } = played('generator');
  const answer = platform.post('/v2/models/m/generate_stream', { INPUT0: [7] });
  let hasAnswered = false;
  void answer.then(() => {
    hasAnswered = true;
  });
  await untilTaken();
  // Its silence was to be broken, and more than once.
  await vi.waitFor(() => expect(timesAsked()).toBeGreaterThan(2), 120_000);
  expect(hasAnswered).toBe(false);
  taken[0]!.on.fail(new InferError('No worker has the model.', 'unavailable'));
  expect((await answer).status).toBe(503);
});
