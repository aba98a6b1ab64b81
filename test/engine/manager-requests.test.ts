import { type InferenceRequest, type OptionalParams, RequestIdError, type Tensor } from 'skein';
import { afterEach, describe, expect, it } from 'vitest';
import type { Response } from '../../callbacks/unpack-responses.js';
import {
  bool,
  collectResult,
  f32,
  i32,
  LoopHarness,
  makeRequest,
  runAlone,
  tensorOf,
} from '../../tools/support/loop-harness.js';
import { fakeEngine } from '../support/fake-engine.js';
import { ManagerClient } from '../support/manager-client.js';
import { collectReturned } from '../support/returned-tensors.js';

const clients: ManagerClient[] = [];
afterEach(async () => {
  for (const { manager } of clients.splice(0)) await manager.shutdown();
});

function start(params: OptionalParams = {}, overrides: Record<string, unknown> = {}): ManagerClient {
  const client = new ManagerClient({ ...fakeEngine('', params), ...overrides });
  clients.push(client);
  return client;
}

describe('the id of a request', () => {
  it('may be any number of 64 bits without sign, as a bigint', async () => {
    const client = start();
    const ids = [0n, 1n, 2n ** 63n, 2n ** 64n - 1n];
    await Promise.all(ids.map((id) => client.submit(makeRequest(id, [Number(id % 97n)], 5))));
    for (const id of ids) {
      const expected = runAlone(makeRequest(id, [Number(id % 97n)], 5));
      expect(collectResult(client.responses.get(id)!)).toEqual(expected);
    }
  });

  it('of a request that is being processed is refused through onError, and the first request gets all its responses', async () => {
    const errors: Error[] = [];
    const client = start({}, { onError: (error: Error) => void errors.push(error) });
    await client.manager.ready;
    client.waiting.push(makeRequest(7n, [5], 3), makeRequest(7n, [6], 3));
    await client.submit(makeRequest(7n, [1, 2, 3], 60));
    const first = client.responses.get(7n)!;
    expect(collectResult(first)).toEqual(runAlone(makeRequest(7n, [5], 3)));
    expect(first.filter(({ final }) => final)).toHaveLength(1);
    for (const error of errors) {
      expect(error).toBeInstanceOf(RequestIdError);
      expect(error).toMatchObject({ code: 'SKEIN_REQUEST_ID', reason: 'duplicate', requestId: 7n });
    }
    expect(errors).toHaveLength(2);
  });

  it('of more than 64 bits is refused through onError, and its low bits end no other request', async () => {
    const errors: Error[] = [];
    const client = start({}, { onError: (error: Error) => void errors.push(error) });
    await client.manager.ready;
    client.waiting.push(makeRequest(2n ** 64n + 7n, [5], 3), makeRequest(-1n, [6], 3));
    await client.submit(makeRequest(7n, [1, 2, 3], 10));
    expect([...client.responses.keys()]).toEqual([7n]);
    expect(collectResult(client.responses.get(7n)!)).toEqual(runAlone(makeRequest(7n, [1, 2, 3], 10)));
    expect(errors).toMatchObject([
      { code: 'SKEIN_REQUEST_ID', reason: 'invalid', requestId: 2n ** 64n + 7n },
      { code: 'SKEIN_REQUEST_ID', reason: 'invalid', requestId: -1n },
    ]);
  });

  it('is free again within the call that brings its final response', async () => {
    const answers: number[][] = [];
    let tokens: number[] = [];
    let ended!: () => void;
    const done = new Promise<void>((resolve) => {
      ended = resolve;
    });
    const sendResponse = (_id: bigint, outputs: Response['outputs'], final: boolean, error: string) => {
      expect(error).toBe('');
      tokens.push(...Array.from(tensorOf(outputs, 'output_ids')!.data, Number));
      if (!final) return;
      answers.push(tokens);
      tokens = [];
      if (answers.length === 3) ended();
      else client.waiting.push(makeRequest(7n, [answers.length], 4));
    };
    const client = start({}, { sendResponse });
    client.waiting.push(makeRequest(7n, [0], 4));
    await done;
    expect(answers).toEqual([0, 1, 2].map((token) => runAlone(makeRequest(7n, [token], 4)).tokens));
    expect(client.errors).toEqual([]);
  });

  it.each([-1n, 2n ** 64n, 5, '5', null, undefined, {}])(
    '%s goes to onError, and nothing else happens',
    async (id) => {
      const client = start();
      const good = client.submit(makeRequest(1n, [1], 4));
      client.waiting.unshift({ ...makeRequest(2n, [1], 4), requestId: id } as InferenceRequest);
      await good;
      expect(client.errors).toHaveLength(1);
      expect(client.errors[0]).toMatch(
        /^requestId is .+; it must be a bigint from 0 to 18446744073709551615\.$/,
      );
      expect([...client.responses.keys()]).toEqual([1n]);
    },
  );
});

describe('a request that is at fault', () => {
  it.each<[string, Record<string, Tensor>, RegExp]>([
    ['an unknown tensor', { temprature: f32(1) }, /temprature is not the name .* did you mean temperature\?/],
    ['a wrong type', { temperature: i32(1) }, /temperature holds Int32Array; Float32Array \(f32\)/],
    [
      'a wrong shape',
      { end_id: { shape: [2], data: new Int32Array(2) } },
      /end_id has the shape \[2\]; \[1\]/,
    ],
    ['a value out of range', { runtime_top_p: f32(2) }, /runtime_top_p is 2; .* from 0 to 1/],
    ['later work', { lora_task_id: { shape: [1], data: BigUint64Array.of(1n) } }, /lora_task_id is refused/],
    ['more than the context', { request_output_len: i32(1000) }, /1000/],
  ])(
    'for %s gets its reason as its final response; its neighbour notices nothing',
    async (_, inputs, why) => {
      const client = start();
      await Promise.all([
        client.submit(makeRequest(1n, [4, 5], 20)),
        client.submit(makeRequest(2n, [1], 20, inputs)),
      ]);
      const [refusal, ...more] = client.responses.get(2n)!;
      expect(more).toEqual([]);
      expect(refusal!.error).toMatch(why);
      expect(refusal!.final).toBe(true);
      expect(refusal!.outputs).toEqual([{ name: 'invalid_request', shape: [1], data: Uint8Array.of(1) }]);
      expect(collectResult(client.responses.get(1n)!)).toEqual(runAlone(makeRequest(1n, [4, 5], 20)));
      expect(client.errors).toEqual([]);
      expect(client.manager.numInFlight).toBe(0);
    },
  );
});

describe('logits across the threads', () => {
  const prompt = Array.from({ length: 21 }, (_, i) => (5 * i + 2) % 100);
  const inputs = {
    return_context_logits: bool(true),
    return_generation_logits: bool(true),
    top_context_log_probs: i32(3),
  };

  function expected() {
    const harness = new LoopHarness().run(makeRequest(1n, prompt, 20, inputs));
    return collectReturned(harness.responses);
  }

  it.each([
    ['streamed', true, {}],
    ['whole', false, {}],
    ['in chunks', true, { enableChunkedContext: true, maxNumTokens: 8 }],
    ['with block reuse', true, { kvCacheConfig: { enableBlockReuse: true } }],
  ])('are those of the request alone, %s', async (_, streaming, params: OptionalParams) => {
    const client = start(params);
    await Promise.all([
      client.submit(makeRequest(1n, prompt, 20, { ...inputs, streaming: bool(streaming) })),
      client.submit(makeRequest(2n, prompt, 30)),
      client.submit(makeRequest(3n, prompt, 20, { ...inputs, streaming: bool(!streaming) })),
    ]);
    const alone = expected();
    expect(alone.generationLogits.length).toBe(20);
    expect(collectReturned(client.responses.get(1n)!)).toEqual(alone);
    expect(collectReturned(client.responses.get(3n)!)).toEqual(alone);
  });

  it('are refused beyond maxReturnedLogitsBytes, with the numbers', async () => {
    const client = start({ maxReturnedLogitsBytes: 1000 });
    await client.submit(makeRequest(1n, prompt, 20, inputs));
    const [refusal] = client.responses.get(1n)!;
    expect(refusal!.error).toBe(
      'return_context_logits of 21 prompt tokens and return_generation_logits of 1 token held at once are 8800 bytes; maxReturnedLogitsBytes is 1000.',
    );
    expect(tensorOf(refusal!.outputs, 'invalid_request')).toBeDefined();
  });

  it('refuses a maxReturnedLogitsBytes that is no count', () => {
    expect(() => start({ maxReturnedLogitsBytes: -1 })).toThrow(/maxReturnedLogitsBytes is -1/);
    clients.length = 0;
  });
});

describe('the final response', () => {
  it('says what was reused, what was missed, and how often the request was paused', async () => {
    const client = start({ kvCacheConfig: { enableBlockReuse: true } });
    const prompt = Array.from({ length: 21 }, (_, i) => i);
    const counts: number[][] = [];
    for (const id of [1n, 2n]) {
      await client.submit(makeRequest(id, prompt, 3));
      const { outputs } = client.responses.get(id)!.at(-1)!;
      counts.push(
        ['reused_blocks', 'missed_blocks', 'num_pauses', 'num_iterations'].map((name) =>
          Number(tensorOf(outputs, name)!.data[0]),
        ),
      );
    }
    expect(counts).toEqual([
      [0, 2, 0, 3],
      [2, 0, 0, 3],
    ]);
  });

  it('keeps what a salt divides apart', async () => {
    const client = start({ kvCacheConfig: { enableBlockReuse: true } });
    const prompt = Array.from({ length: 21 }, (_, i) => i);
    const salt = (value: bigint) => ({ cache_salt: { shape: [1], data: BigUint64Array.of(value) } });
    const reused: number[] = [];
    for (const [id, of] of [1n, 2n, 1n, 2n ** 64n - 1n].entries()) {
      await client.submit(makeRequest(BigInt(id), prompt, 2, salt(of)));
      const { outputs } = client.responses.get(BigInt(id))!.at(-1)!;
      reused.push(Number(tensorOf(outputs, 'reused_blocks')!.data[0]));
    }
    expect(reused).toEqual([0, 0, 2, 0]);
  });

  it('lets retention decide what stays in a cache that is too small for all', async () => {
    // 16 blocks of 8: every prompt leaves 2 full blocks, and 20 prompts do not fit.
    const run = async (first: Record<string, Tensor>) => {
      const client = start({
        maxNumSequences: 1,
        maxSeqLen: 64,
        kvCacheConfig: { enableBlockReuse: true, maxTokens: 128 },
      });
      const prompt = (start: number) => Array.from({ length: 17 }, (_, i) => (start + 3 * i) % 100);
      await client.submit(makeRequest(1n, prompt(0), 2, first));
      for (let id = 2n; id < 20n; id++) await client.submit(makeRequest(id, prompt(Number(id)), 2));
      await client.submit(makeRequest(99n, prompt(0), 2));
      const { outputs } = client.responses.get(99n)!.at(-1)!;
      return Number(tensorOf(outputs, 'reused_blocks')!.data[0]);
    };
    const ranges = (priority: number) => ({
      retention_ranges: { shape: [1, 1, 4], data: Int32Array.of(0, -1, priority, 0) },
    });
    expect(await run({})).toBe(0);
    expect(await run(ranges(90))).toBe(2);
    expect(await run(ranges(10))).toBe(0);
  });
});
