import { describe, expect, it } from 'vitest';
import { InferError } from '../../../../callbacks/infer/infer-error.js';
import type { InferListener, InferRequest, InferTensor } from '../../../../callbacks/infer/infer-types.js';
import { CachedModel, cachedModel } from '../../../../src/serving/cache/cached-model.js';
import { ResponseCache } from '../../../../src/serving/cache/response-cache.js';
import type { InferModel } from '../../../../src/serving/infer-model.js';
import { InferenceCounters } from '../../../../src/serving/inference-counters.js';

const tensor = (name: string, value: number): InferTensor => ({
  name,
  datatype: 'INT32',
  shape: [1],
  data: new Uint8Array(Int32Array.of(value).buffer),
});
const requestOf = (value: number, fields: Partial<InferRequest> = {}): InferRequest => ({
  id: '',
  inputs: [tensor('X', value)],
  outputs: null,
  parameters: {},
  sequence: null,
  priority: 0,
  timeoutUs: 0,
  ...fields,
});

/** A model that answers when the test says so: X and the number of the request. */
class SlowModel {
  readonly counters = new InferenceCounters();
  readonly waiting: { value: number; on: InferListener }[] = [];
  readonly memory = new Uint8Array(8);
  numAsked = 0;
  refuses = false;
  config: object = { name: 'slow', response_cache: { enable: true } };

  get model(): InferModel {
    return this as never;
  }

  statistics() {
    return this.counters.read();
  }

  activity() {
    return { waiting: this.waiting.length, running: 0, instances: [], restarts: 0, lastInference: 0 };
  }

  infer({ inputs }: InferRequest, on: InferListener): void {
    if (this.refuses) throw new InferError('the queue is full', 'unavailable');
    this.numAsked++;
    this.waiting.push({ value: new Int32Array(inputs[0]!.data.slice().buffer)[0]!, on });
  }

  /** Answers a request, from memory that is used again at once. */
  answer(index = 0): void {
    const [{ value, on }] = this.waiting.splice(index, 1) as [SlowModel['waiting'][0]];
    new Int32Array(this.memory.buffer).set([value, this.numAsked]);
    const output = { name: 'Y', datatype: 'INT32', shape: [2], data: this.memory } as const;
    this.counters.noteSuccess(1, 100, 10, { inputNs: 1, inferNs: 2, outputNs: 3 });
    on.response({ outputs: [output], release: () => this.memory.fill(255) });
    on.end();
  }

  fail(): void {
    this.waiting.shift()!.on.fail(new InferError('it failed', 'internal'));
  }
}

function open(order = false) {
  const slow = new SlowModel();
  if (order) slow.config = { ...slow.config, dynamic_batching: { preserve_ordering: true } };
  const cache = new ResponseCache(2 ** 20);
  const model = new CachedModel(slow.model, cache, true);
  const told: string[] = [];
  const ask = (value: number, fields: Partial<InferRequest> = {}) => {
    const name = `${value}`;
    model.infer(requestOf(value, fields), {
      response: ({ outputs: [output], release }) => {
        told.push(`${name}: ${[...new Int32Array(output!.data.slice().buffer)]}`);
        release?.();
      },
      end: () => told.push(`${name} ended`),
      fail: ({ message }) => told.push(`${name} failed: ${message}`),
    });
  };
  const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
  return { slow, cache, model, told, ask, turn };
}

const counted = (model: InferModel) => {
  const { inference_count, inference_stats } = model.statistics();
  return {
    inference_count,
    ...Object.fromEntries(Object.entries(inference_stats).map(([name, { count }]) => [name, count])),
  };
};

describe('a model with a cache', () => {
  it('answers the same request again without the model, with what was in the memory then', async () => {
    const { slow, model, told, ask, turn } = open();
    ask(7);
    slow.answer();
    ask(7);
    expect(told).toEqual(['7: 7,1', '7 ended']);
    await turn();
    expect(told).toEqual(['7: 7,1', '7 ended', '7: 7,1', '7 ended']);
    expect(slow.numAsked).toBe(1);
    expect(counted(model)).toEqual({
      inference_count: 1,
      success: 2,
      fail: 0,
      queue: 2,
      compute_input: 1,
      compute_infer: 1,
      compute_output: 1,
      cache_hit: 1,
      cache_miss: 1,
    });
    expect(model.activity().lastInference).toBeGreaterThan(0);
  });

  it('runs equal requests that come at once, and keeps the first answer', async () => {
    const { slow, model, told, ask, turn } = open();
    ask(7);
    ask(7);
    slow.answer(1);
    slow.answer(0);
    ask(7);
    await turn();
    expect(told.filter((line) => line.includes(':'))).toEqual(['7: 7,2', '7: 7,2', '7: 7,2']);
    expect(counted(model)).toMatchObject({ success: 3, cache_hit: 1, cache_miss: 1 });
  });

  it('keeps no failure, no refusal, and nothing of a sequence', async () => {
    const { slow, cache, told, ask, turn } = open();
    ask(7);
    slow.fail();
    slow.refuses = true;
    expect(() => ask(7)).toThrow('the queue is full');
    slow.refuses = false;
    const sequence = { id: 1n, start: true, end: false };
    ask(7, { sequence });
    slow.answer();
    ask(7, { sequence });
    expect(slow.numAsked).toBe(3);
    await turn();
    expect(told[0]).toBe('7 failed: it failed');
    expect(cache.counts().entries).toBe(0);
  });

  it('asks the model where the client has left already: it knows what is to be said', () => {
    const { slow, ask } = open();
    ask(7);
    slow.answer();
    ask(7, { signal: AbortSignal.abort() });
    expect(slow.numAsked).toBe(2);
  });

  it('preserves the order of requests where the model does, those that are found too', async () => {
    const { slow, told, ask, turn } = open(true);
    ask(1);
    slow.answer();
    ask(2);
    ask(1);
    ask(3);
    await turn();
    expect(told).toEqual(['1: 1,1', '1 ended']);
    slow.answer(1);
    expect(told).toHaveLength(2);
    slow.fail();
    expect(told.slice(2)).toEqual(['2 failed: it failed', '1: 1,1', '1 ended', '3: 3,3', '3 ended']);
    slow.refuses = true;
    expect(() => ask(4)).toThrow('the queue is full');
    ask(1);
    await turn();
    expect(told.slice(7)).toEqual(['1: 1,1', '1 ended']);
  });

  it('forgets its answers when it is closed, and keeps none of those that are still to come', async () => {
    const { slow, cache, model, ask } = open();
    const other = new CachedModel(slow.model, cache, true);
    other.infer(requestOf(7), { response: () => {}, end: () => {}, fail: () => {} });
    slow.answer();
    ask(7);
    expect(slow.numAsked).toBe(2);
    slow.answer();
    ask(8);
    expect(cache.counts().entries).toBe(2);
    model.close();
    slow.answer();
    expect(cache.counts().entries).toBe(1);
  });

  it('is none where nobody wants it', () => {
    const { slow, cache } = open();
    expect(cachedModel(slow.model, cache)).toBeInstanceOf(CachedModel);
    expect(cachedModel(slow.model, null)).toBe(null);
    slow.config = { name: 'slow' };
    expect(cachedModel(slow.model, cache)).toBe(null);
  });
});
