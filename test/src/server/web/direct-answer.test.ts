import { Agent, type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { InferError } from '../../../../callbacks/infer/infer-error.js';
import type { InferRequest } from '../../../../callbacks/infer/infer-types.js';
import { listen } from '../../support/toy-server.js';
import { FakeModel, fakeConfig } from '../kserve/support/fake-models.js';
import { fakePlatform } from '../kserve/support/fake-platform.js';

/** Answers when it is asked to, or when its client has left. */
class SlowModel extends FakeModel {
  readonly left: Promise<void>;
  readonly begun: Promise<void>;
  #begin = () => {};
  #leave = () => {};

  constructor() {
    super(fakeConfig({ name: 'slow', type: 'TYPE_INT32', dims: [-1] }));
    this.begun = new Promise((resolve) => {
      this.#begin = resolve;
    });
    this.left = new Promise((resolve) => {
      this.#leave = resolve;
    });
  }

  override infer(asked: InferRequest, on: Parameters<FakeModel['infer']>[1]): void {
    this.#begin();
    asked.signal!.addEventListener('abort', () => {
      on.fail(new InferError('the client has left', 'unavailable'));
      this.#leave();
    });
  }
}

const slow = new SlowModel();
const model = new FakeModel(fakeConfig({ name: 'm', type: 'TYPE_INT32', dims: [-1] }));
const platform = fakePlatform([model, slow]);
let url: string;
let close: () => Promise<void>;
const agent = new Agent({ keepAlive: true, maxSockets: 1 });

beforeAll(async () => {
  ({ url, close } = await listen(platform));
});
afterAll(async () => {
  agent.destroy();
  await close();
});

function post(path: string, body: string, headers: Record<string, string> = {}) {
  return new Promise<{ response: IncomingMessage; body: Buffer }>((resolve, reject) => {
    const sent = request(url + path, { method: 'POST', agent, headers });
    sent.on('error', reject);
    sent.on('response', (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('end', () => resolve({ response, body: Buffer.concat(parts) }));
    });
    sent.end(body);
  });
}

const asked = (values: readonly number[], more = '') =>
  `{"inputs":[{"name":"INPUT0","shape":[${values.length}],"datatype":"INT32","data":[${values}]}]${more}}`;

describe('an answer that goes to the connection as it is', () => {
  it('has the headers of every answer, and leaves the connection open', async () => {
    const headers = { 'x-request-id': 'abc', origin: 'http://localhost:9' };
    const { response, body } = await post('/v2/models/m/infer', asked([1, 2]), headers);
    expect(JSON.parse(body.toString())).toMatchObject({ outputs: [{ data: [1, 2] }] });
    expect(response.statusCode).toBe(200);
    expect(response.headers).toMatchObject({
      'content-type': 'application/json',
      'content-length': String(body.length),
      'x-request-id': 'abc',
      'access-control-allow-origin': 'http://localhost:9',
    });
    const again = await post('/v2/models/m/infer', asked([3]));
    expect(again.response.socket).toBe(response.socket);
  });

  it('may hold characters of several bytes, and tensors', async () => {
    const { response, body } = await post('/v2/models/m/infer', asked([1], ',"id":"\u00e9"'));
    expect(response.headers['content-length']).toBe(String(body.length));
    expect(JSON.parse(body.toString())).toMatchObject({ id: '\u00e9' });
    const binary = await post('/v2/models/m/infer', asked([7], ',"parameters":{"binary_data_output":true}'));
    const length = Number(binary.response.headers['inference-header-content-length']);
    expect([...binary.body.subarray(length)]).toEqual([7, 0, 0, 0]);
  });

  it('is counted, and refusals are sent as they were', async () => {
    const { response, body } = await post('/v2/models/m/infer', '{}');
    expect([response.statusCode, Object.keys(JSON.parse(body.toString()))]).toEqual([400, ['error']]);
    const text = await platform.metrics.text();
    const path = '/v2/models/{model}/infer';
    expect(text).toMatch(
      new RegExp(`http_requests_total\\{handler="${path}",method="POST",status="2xx"\\} [1-9]`),
    );
    expect(text).toMatch(
      new RegExp(`http_requests_total\\{handler="${path}",method="POST",status="4xx"\\} 1`),
    );
  });

  it('is sent in parts where it is long', async () => {
    const values = Array.from({ length: 300_000 }, (_, i) => i);
    const { response, body } = await post('/v2/models/m/infer', asked(values));
    expect(response.headers['content-length']).toBe(String(body.length));
    expect(JSON.parse(body.toString())).toMatchObject({ outputs: [{ data: values }] });
  });

  it('is not made for a client that has left', async () => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    const body = asked([1]);
    socket.write(
      `POST /v2/models/slow/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    await slow.begun;
    socket.destroy();
    await slow.left;
  });
});
