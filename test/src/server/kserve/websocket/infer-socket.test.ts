import { WebSocket as NodeSocket } from 'undici';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { FakeModel, failing, fakeConfig } from '../support/fake-models.js';
import {
  answer,
  asked,
  MAX_BYTES,
  output,
  SocketClient,
  scripted,
  socketServer,
  type Taken,
} from './support/socket-server.js';

const ints = new FakeModel(fakeConfig({ name: 'ints', type: 'TYPE_INT32', dims: [-1] }));
const broken = new FakeModel(fakeConfig({ name: 'broken', type: 'TYPE_INT32', dims: [-1] }), failing);
const slow = scripted('slow');
const many = scripted('many', true);

let served: Awaited<ReturnType<typeof socketServer>>;
const clients: SocketClient[] = [];
beforeAll(async () => {
  served = await socketServer([ints, broken, slow.model, many.model]);
});
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()));
  await expect.poll(() => served.ledger.held).toBe(0);
});
afterAll(() => served.server.close());

async function open(path: string): Promise<SocketClient> {
  const client = await SocketClient.open(`${served.url}${path}`);
  clients.push(client);
  return client;
}

/** The requests that a model gets from now on. */
async function taken({ taken: all }: { taken: Taken[] }, count: number): Promise<Taken[]> {
  await expect.poll(() => all.length).toBe(count);
  return all.splice(0);
}

const told = (id: string, data: readonly number[], parameters: object = { triton_final_response: true }) => ({
  id,
  model_name: 'ints',
  model_version: '1',
  parameters,
  outputs: [{ name: 'OUTPUT0', datatype: 'INT32', shape: [data.length], data }],
});

describe('a WebSocket', () => {
  it('answers many requests on one connection', async () => {
    const client = await open('/v2/models/ints/infer');
    for (const id of ['a', 'b', 'c']) client.send(asked(id, [id.charCodeAt(0)]));
    await expect.poll(() => client.messages.length).toBe(3);
    expect(client.messages).toEqual([told('a', [97]), told('b', [98]), told('c', [99])]);
  });

  it('answers by version, and requests for any model', async () => {
    const [one, any] = await Promise.all([open('/v2/models/ints/versions/1/infer'), open('/models/infer')]);
    one.send(asked('v'));
    any.send(asked('a', [1], { model: 'ints' }));
    any.send(asked('b', [2], { model: 'ints', model_version: '1' }));
    any.send(asked('c', [3], { model: 'ints', model_version: '7' }));
    any.send(asked('d'));
    await expect.poll(() => any.messages.length).toBe(4);
    expect(one.messages).toEqual([told('v', [1, 2])]);
    expect(any.messages).toEqual([
      told('a', [1]),
      told('b', [2]),
      { id: 'c', error: "Request for unknown model: 'ints' version 7 is not found", code: 404 },
      { id: 'd', error: "Unable to parse 'model': the name of a model is expected", code: 400 },
    ]);
  });

  it('answers in the order of requests, whichever is ready first', async () => {
    const client = await open('/models/infer');
    client.send(asked('1', [1], { model: 'slow' }));
    client.send(asked('2', [2], { model: 'ints' }));
    client.send(asked('3', [3], { model: 'slow' }));
    const [first, third] = await taken(slow, 2);
    answer(third!);
    await expect.poll(() => ints.requests.some(({ id }) => id === '2')).toBe(true);
    expect(client.messages).toEqual([]);
    answer(first!);
    await expect
      .poll(() => client.messages.map((one) => (one as { id: string }).id))
      .toEqual(['1', '2', '3']);
  });

  it('sends the answers of a decoupled model as they come, and tells their end', async () => {
    const client = await open('/v2/models/many/infer');
    client.send(asked('1'));
    client.send(asked('2', [1], { parameters: { triton_enable_empty_final_response: true } }));
    const [first, second] = await taken(many, 2);
    expect(second!.request.parameters).toEqual({});
    await second!.on.response(output(5));
    await first!.on.response(output(6));
    await first!.on.response({ ...output(7), isLast: true });
    first!.on.end();
    second!.on.end();
    await expect.poll(() => client.messages.length).toBe(4);
    const seen = client.messages as { id: string; parameters: object; outputs: unknown[] }[];
    expect(seen.map(({ id, parameters, outputs }) => [id, parameters, outputs.length])).toEqual([
      ['2', { triton_final_response: false }, 1],
      ['1', { triton_final_response: false }, 1],
      ['1', { triton_final_response: true }, 1],
      ['2', { triton_final_response: true }, 0],
    ]);
  });

  it('takes and gives tensors as bytes', async () => {
    const client = await open('/v2/models/ints/infer');
    const json = Buffer.from(
      JSON.stringify({
        id: 'raw',
        inputs: [{ name: 'INPUT0', shape: [2], datatype: 'INT32', parameters: { binary_data_size: 8 } }],
        parameters: { binary_data_output: true },
      }),
    );
    const length = Buffer.alloc(4);
    length.writeUInt32BE(json.length);
    const tensor = Buffer.from(Int32Array.of(7, -1).buffer);
    client.send(Buffer.concat([length, json, tensor]));
    await expect.poll(() => client.messages.length).toBe(1);
    const bytes = client.messages[0] as Buffer;
    const end = 4 + bytes.readUInt32BE(0);
    expect(JSON.parse(bytes.subarray(4, end).toString())).toEqual({
      ...told('raw', []),
      outputs: [{ name: 'OUTPUT0', datatype: 'INT32', shape: [2], parameters: { binary_data_size: 8 } }],
    });
    expect(bytes.subarray(end)).toEqual(tensor);
  });

  it('goes on behind an error', async () => {
    const client = await open('/v2/models/ints/infer');
    const wrong = [
      'no JSON',
      '[]',
      asked('bad', [1], { inputs: 7 }),
      asked('other', [1], { model: 'slow' }),
      Buffer.from([0, 0]),
      Buffer.from([255, 255, 255, 255, 123, 125]),
      Buffer.from([0, 0, 0, 0, 123, 125]),
    ];
    for (const one of wrong) client.send(one);
    client.send(asked('good'));
    await expect.poll(() => client.messages.length).toBe(wrong.length + 1);
    expect(client.messages.at(-1)).toEqual(told('good', [1, 2]));
    const errors = client.messages.slice(0, -1) as { id?: string; error: string; code: number }[];
    expect(errors.map(({ code }) => code)).toEqual(wrong.map(() => 400));
    expect(errors.map(({ id }) => id)).toEqual([
      undefined,
      undefined,
      'bad',
      'other',
      ...Array(3).fill(undefined),
    ]);
    expect(errors[3]!.error).toBe(
      "this socket is for the model 'ints'; /models/infer takes requests for any model",
    );
    expect(errors[5]!.error).toBe(
      'the length of the JSON in front of a binary message is 4294967295; from 1 to 2 is expected',
    );
    const other = await open('/v2/models/broken/infer');
    other.send(asked('x'));
    await expect
      .poll(() => other.messages)
      .toEqual([{ id: 'x', error: 'this model always fails', code: 500 }]);
  });

  it('cancels what is under way when it is closed', async () => {
    const client = await SocketClient.open(`${served.url}/models/infer`);
    client.send(asked('1', [1], { model: 'slow' }));
    client.send(asked('2', [1], { model: 'many' }));
    const [[one], [two]] = await Promise.all([taken(slow, 1), taken(many, 1)]);
    await two!.on.response(output(5));
    client.socket.terminate();
    await expect.poll(() => [one, two].map((each) => each!.request.signal!.aborted)).toEqual([true, true]);
  });

  it('is closed at what no message may be, and others go on', async () => {
    const other = await open('/v2/models/ints/infer');
    const long = await open('/v2/models/ints/infer');
    long.send('x'.repeat(MAX_BYTES + 1));
    expect((await long.closed())[0]).toBe(1009);
    const noText = await open('/v2/models/ints/infer');
    noText.socket.send(Buffer.from([0xff]), { binary: false });
    expect((await noText.closed())[0]).toBe(1007);
    other.send(asked('still'));
    await expect.poll(() => other.messages).toEqual([told('still', [1, 2])]);
    const metrics = await served.metrics.text();
    expect(metrics).toContain('skein:websockets_closed_total{reason="too_long"} 1');
    expect(metrics).toContain('skein:websockets_closed_total{reason="not_utf8"} 1');
    expect(metrics).toContain('skein:websockets_open 1');
  });

  it('answers pings', async () => {
    const client = await open('/v2/models/ints/infer');
    const pong = new Promise<Buffer>((resolve) => client.socket.once('pong', resolve));
    client.socket.ping('here?');
    expect((await pong).toString()).toBe('here?');
  });

  it('is opened by the WebSocket of Node.js, too', async () => {
    const socket = new NodeSocket(`${served.url}/v2/models/ints/infer`);
    await new Promise((resolve) => socket.addEventListener('open', resolve, { once: true }));
    const first = new Promise<{ data: string }>((resolve) =>
      socket.addEventListener('message', (event) => resolve(event as { data: string }), { once: true }),
    );
    socket.send(JSON.stringify(asked('n')));
    expect(JSON.parse((await first).data)).toEqual(told('n', [1, 2]));
    const closed = new Promise<{ code: number }>((resolve) =>
      socket.addEventListener('close', (event) => resolve(event as { code: number }), { once: true }),
    );
    socket.close(1000);
    expect((await closed).code).toBe(1000);
  });

  it('is an exchange and a line in the log', async () => {
    const client = await open('/v2/models/ints/infer');
    client.send(asked('a'));
    await expect.poll(() => client.messages.length).toBe(1);
    await client.close();
    const path = '/v2/models/ints/infer';
    await expect
      .poll(() => served.lines.filter((line) => line.path === path).slice(-2))
      .toEqual([
        expect.objectContaining({ method: 'GET', status: 101, isWhole: true }),
        expect.objectContaining({ received: 1, sent: 1, code: 1005, reason: 'client' }),
      ]);
    expect(await served.metrics.text()).toMatch(
      /skein:http_responses_total\{handler="\/v2\/models\/\{model\}\/infer",status="101"\} \d+/,
    );
  });
});
