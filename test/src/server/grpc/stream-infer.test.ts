import type { ClientDuplexStream } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { onAbort } from '../../../../base/on-abort.js';
import type { InferListener, InferRequest, InferResponse } from '../../../../callbacks/infer/infer-types.js';
import { MemoryLedger } from '../../../../src/server/web/memory/held-memory.js';
import { asInferError } from '../../../../src/serving/infer-failure.js';
import { FakeModel, failing, fakeConfig } from '../kserve/support/fake-models.js';
import { grpcPlatform } from './support/grpc-platform.js';
import { inferMessage, rawStream } from './support/raw-stream.js';

const floats = (...values: number[]) => Buffer.from(Float32Array.from(values).buffer);
const asked = (model: string, id: string, fields: object = {}) => ({
  model_name: model,
  id,
  inputs: [{ name: 'INPUT0', datatype: 'FP32', shape: [1] }],
  raw_input_contents: [floats(Number(id) || 0)],
  ...fields,
});

/** A request that a model has, to be answered by the test. */
interface Taken {
  request: InferRequest;
  on: InferListener;
}

/** A model that answers when the test says so. */
function scripted(name: string, decoupled = false): { model: FakeModel; taken: Taken[] } {
  const model = new FakeModel(fakeConfig({ name, type: 'TYPE_FP32', dims: [-1], decoupled }));
  const taken: Taken[] = [];
  model.infer = (request, on) => {
    taken.push({ request, on });
    onAbort(request.signal!, () => on.fail(asInferError(request.signal!.reason)));
  };
  return { model, taken };
}

const tensor = (data: Uint8Array): InferResponse => ({
  outputs: [{ name: 'OUTPUT0', datatype: 'FP32', shape: [data.length / 4], data }],
});
const output = (...values: number[]) => tensor(floats(...values));

/** Answers once. */
function answer({ request, on }: Taken): void {
  void on.response(output(Number(request.id)));
  on.end();
}

type Answer = { error_message?: string; infer_response: Record<string, unknown> };
type Stream = ClientDuplexStream<object, Record<string, unknown>>;

function gather(stream: Stream): {
  answers: Answer[];
  ids: () => unknown[];
  status: Promise<{ code: number }>;
} {
  const answers: Answer[] = [];
  stream.on('data', (one: unknown) => answers.push(one as Answer));
  stream.on('error', () => {});
  return {
    answers,
    ids: () => answers.map(({ infer_response: { id } }) => id),
    status: new Promise((resolve) => stream.on('status', resolve)),
  };
}

const finals = (answers: readonly Answer[]) =>
  answers.map(
    ({ infer_response: { parameters } }) =>
      (parameters as { triton_final_response?: { bool_param: boolean } } | undefined)?.triton_final_response
        ?.bool_param,
  );

describe('a stream of requests', () => {
  it('is answered in their order, whichever is ready first', async () => {
    const { model, taken } = scripted('m');
    const { client } = await grpcPlatform([model]);
    const stream = client.stream('ModelStreamInfer');
    const { answers, ids, status } = gather(stream);
    for (const id of ['1', '2', '3']) stream.write(asked('m', id));
    await expect.poll(() => taken.map(({ request }) => request.id)).toEqual(['1', '2', '3']);
    answer(taken[2]!);
    answer(taken[1]!);
    stream.write(asked('nope', '4'));
    stream.end();
    expect(answers).toEqual([]);
    answer(taken[0]!);
    await expect.poll(ids).toEqual(['1', '2', '3', '4']);
    expect(finals(answers)).toEqual([true, true, true, undefined]);
    expect(answers[0]).toEqual({
      infer_response: {
        model_name: 'm',
        model_version: '1',
        id: '1',
        parameters: { triton_final_response: { bool_param: true } },
        outputs: [{ name: 'OUTPUT0', datatype: 'FP32', shape: ['1'] }],
        raw_output_contents: [floats(1)],
      },
    });
    expect(answers[3]!.error_message).toBe("Request for unknown model: 'nope' is not found");
    expect((await status).code).toBe(0);
  });

  it('is answered as answers come, where the model is decoupled', async () => {
    const many = scripted('many', true);
    const one = scripted('one');
    const { client } = await grpcPlatform([many.model, one.model]);
    const stream = client.stream('ModelStreamInfer');
    const { answers, ids, status } = gather(stream);
    const wantsFinal = { parameters: { triton_enable_empty_final_response: { bool_param: true } } };
    stream.write(asked('many', '1'));
    stream.write(asked('one', '2'));
    stream.write(asked('many', '3', wantsFinal));
    stream.end();
    await expect.poll(() => many.taken.length).toBe(2);
    const [first, second] = many.taken as [Taken, Taken];
    await first.on.response(output(1));
    await second.on.response(output(2));
    answer(one.taken[0]!);
    await expect.poll(ids).toEqual(['1', '3', '2']);
    await second.on.response(output(3));
    second.on.end();
    first.on.end();
    expect((await status).code).toBe(0);
    expect(ids()).toEqual(['1', '3', '2', '3', '3']);
    expect(finals(answers)).toEqual([false, false, true, false, true]);
    expect(answers.at(-1)).toEqual({
      infer_response: {
        model_name: 'many',
        id: '3',
        parameters: { triton_final_response: { bool_param: true } },
      },
    });
  });

  it('goes on behind an error', async () => {
    const broken = new FakeModel(fakeConfig({ name: 'broken', type: 'TYPE_FP32', dims: [-1] }), failing);
    const good = new FakeModel(fakeConfig({ name: 'good', type: 'TYPE_FP32', dims: [-1] }));
    const { client, metrics } = await grpcPlatform([broken, good]);
    const messages = [
      asked('broken', '1'),
      asked('good', '2', { raw_input_contents: [] }),
      asked('good', '3', { model_version: 'x' }),
      asked('good', '4', { inputs: Array(1025).fill({}) }),
      asked('good', '5'),
    ];
    const { answers, code } = await client.exchange('ModelStreamInfer', messages);
    const told = answers as unknown as Answer[];
    expect(code).toBe('OK');
    expect(told.map(({ error_message }) => error_message ?? '')).toEqual([
      'this model always fails',
      "unable to find data for input tensor 'INPUT0' for model 'good' in request.",
      expect.stringContaining('failed to get model version'),
      'the request has more than 1024 inputs, which is the limit',
      '',
    ]);
    // What no model has had yet is identified by its id alone, and what could not be read by nothing.
    expect(told.map(({ infer_response: { id, model_name } }) => [id, model_name])).toEqual([
      ['1', 'broken'],
      ['2', undefined],
      ['3', undefined],
      [undefined, undefined],
      ['5', 'good'],
    ]);
    expect(await metrics.text()).toContain('skein:requests_refused_total{code="grpc_INVALID_ARGUMENT"} 3');
  });

  it('ends at the first error, with its code, where the client asks for that', async () => {
    const { model, taken } = scripted('m');
    const { connect, ledger } = await grpcPlatform([model]);
    const client = connect({ metadata: { triton_grpc_error: 'true' } });
    const stream = client.stream('ModelStreamInfer');
    const { answers, status } = gather(stream);
    stream.write(asked('m', '1'));
    await expect.poll(() => taken.length).toBe(1);
    taken[0]!.on.fail(asInferError(new Error('no luck')));
    expect(await status).toMatchObject({ code: 13, details: 'no luck' });
    expect(answers).toEqual([]);
    await expect.poll(() => ledger.held).toBe(0);
  });

  it('ends at what is no message: where the next begins nobody knows', async () => {
    const { model, taken } = scripted('m');
    const { client, ledger } = await grpcPlatform([model]);
    const stream = client.stream('ModelStreamInfer');
    const { status } = gather(stream);
    stream.write(asked('m', '1'));
    stream.write(Buffer.from('ff', 'hex'));
    expect(await status).toMatchObject({ code: 13 });
    expect(taken[0]!.request.signal!.aborted).toBe(true);
    await expect.poll(() => ledger.held).toBe(0);
  });

  it('cancels what runs where its client leaves', async () => {
    const many = scripted('many', true);
    const one = scripted('one');
    const { client, ledger } = await grpcPlatform([many.model, one.model]);
    const stream = client.stream('ModelStreamInfer');
    gather(stream);
    stream.write(asked('many', '1'));
    stream.write(asked('one', '2'));
    await expect.poll(() => one.taken.length).toBe(1);
    expect(ledger.held).toBeGreaterThan(0);
    stream.cancel();
    await expect.poll(() => many.taken[0]!.request.signal!.aborted).toBe(true);
    expect(one.taken[0]!.request.signal!.aborted).toBe(true);
    await expect.poll(() => ledger.held).toBe(0);
  });

  it('takes no more requests at once than it may have', async () => {
    const { model, taken } = scripted('m');
    const { client } = await grpcPlatform([model]);
    const stream = client.stream('ModelStreamInfer');
    const { ids, status } = gather(stream);
    for (let id = 1; id <= 300; id++) stream.write(asked('m', String(id)));
    stream.end();
    await expect.poll(() => taken.length).toBe(256);
    answer(taken[0]!);
    await expect.poll(() => taken.length).toBe(257);
    for (let i = 1; i < 300; i++) {
      await expect.poll(() => taken.length).toBeGreaterThan(i);
      answer(taken[i]!);
    }
    expect((await status).code).toBe(0);
    expect(ids()).toEqual(Array.from({ length: 300 }, (_, i) => String(i + 1)));
  });

  it('has a model with many answers wait for a client that does not read, and holds no more than these', async () => {
    const { model, taken } = scripted('many', true);
    const { address, ledger } = await grpcPlatform([model]);
    const stream = rawStream(address, 'ModelStreamInfer');
    stream.write(inferMessage(asked('many', '1')));
    await expect.poll(() => taken.length).toBe(1);
    const { on } = taken[0]!;
    const large = tensor(new Uint8Array(2 ** 18));
    let sent = 0;
    let isWaiting = false;
    const send = async () => {
      while (sent < 200) {
        const room = on.response(large);
        sent++;
        isWaiting = true;
        await room;
        isWaiting = false;
      }
      on.end();
    };
    const sending = send();
    const standsStill = async () => {
      const before = sent;
      for (let turn = 0; turn < 200; turn++) await new Promise(setImmediate);
      return isWaiting && sent === before;
    };
    await expect.poll(standsStill).toBe(true);
    expect(ledger.held).toBeGreaterThan(2 ** 18);
    expect(sent).toBeLessThan(200);
    let bytes = 0;
    stream.on('data', (part: Buffer) => {
      bytes += part.length;
    });
    stream.end();
    await sending;
    await new Promise((resolve) => stream.on('close', resolve));
    expect(bytes).toBeGreaterThan(200 * 2 ** 18);
    await expect.poll(() => ledger.held).toBe(0);
  });

  it('cuts a client off that does not read, and its model', async () => {
    const { model, taken } = scripted('many', true);
    const { address, ledger, metrics } = await grpcPlatform([model], { stallLimitMs: 100 });
    const stream = rawStream(address, 'ModelStreamInfer');
    stream.write(inferMessage(asked('many', '1')));
    await expect.poll(() => taken.length).toBe(1);
    const { request, on } = taken[0]!;
    const large = tensor(new Uint8Array(2 ** 20));
    while (!request.signal!.aborted) await on.response(large);
    await expect.poll(() => ledger.held).toBe(0);
    expect(await metrics.text()).toContain('skein:stalled_readers_total 1');
  });

  it('fails a request whose answers there is no memory for, alone', async () => {
    const many = scripted('many', true);
    const one = scripted('one');
    const ledger = new MemoryLedger({ limit: 2 ** 20 });
    const { client } = await grpcPlatform([many.model, one.model], { ledger });
    const stream = client.stream('ModelStreamInfer');
    const { answers, ids } = gather(stream);
    stream.write(asked('many', '1'));
    stream.write(asked('one', '2'));
    await expect.poll(() => one.taken.length).toBe(1);
    void many.taken[0]!.on.response(tensor(new Uint8Array(2 ** 21)));
    await expect.poll(ids).toEqual(['1']);
    expect(answers[0]!.error_message).toContain('--max-held-memory-bytes');
    expect(many.taken[0]!.request.signal!.aborted).toBe(true);
    answer(one.taken[0]!);
    stream.end();
    await expect.poll(ids).toEqual(['1', '2']);
    await expect.poll(() => ledger.held).toBe(0);
  });

  it('is refused requests while the server is shutting down, and ends with it', async () => {
    const { model, taken } = scripted('m');
    const { client, server, state } = await grpcPlatform([model]);
    const stream = client.stream('ModelStreamInfer');
    const { answers, status } = gather(stream);
    stream.write(asked('m', '1'));
    await expect.poll(() => taken.length).toBe(1);
    state.drain(60_000);
    const drained = server.drain(60_000);
    stream.write(asked('m', '2'));
    answer(taken[0]!);
    await expect.poll(() => answers.length).toBe(2);
    expect(answers[1]!.error_message).toContain('shutting down');
    // A stream on which nothing is under way is not waited for.
    expect(await drained).toBe(true);
    await server.close(60_000);
    expect(await status).toMatchObject({ code: 14 });
  });
});
