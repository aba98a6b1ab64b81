import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HttpServer } from '../../../../../src/server/listening/http-server.js';
import { DEFAULT_MAX_BODY_BYTES } from '../../../../../src/server/web/bodies/read-json.js';
import { say, toyServer } from '../../../support/toy-server.js';

const toy = toyServer(() => say('Paris'));
let server: HttpServer;

beforeAll(async () => {
  server = await HttpServer.listen({ app: toy.app, state: toy.state, host: '127.0.0.1', port: 0 });
});

afterAll(async () => {
  await server.close();
});

/** Sends chunks, and no length before them. */
function send(
  method: string,
  path: string,
  chunks: readonly string[] = [],
): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const outgoing = request(`${server.url}${path}`, { method, agent: false }, (incoming) => {
      let body = '';
      incoming.setEncoding('utf8').on('data', (text: string) => {
        body += text;
      });
      incoming.on('end', () => resolve({ status: incoming.statusCode!, body }));
    });
    // A server that has refused a body may close while more of it is sent.
    outgoing.on('error', reject);
    for (const chunk of chunks) outgoing.write(chunk);
    outgoing.end();
  });
}

describe('a body without a declared length', () => {
  it('is read as it comes', async () => {
    const answer = await send('POST', '/v1/completions', ['{"prompt": ', '"abc"', '}']);
    expect(answer.status, answer.body).toBe(200);
    expect(answer.body).toContain('Paris');
  });

  it('is refused once it is too long', async () => {
    const chunk = ' '.repeat(1024 * 1024);
    const chunks = Array.from({ length: DEFAULT_MAX_BODY_BYTES / chunk.length + 1 }, () => chunk);
    const answer = await send('POST', '/v1/completions', chunks);
    expect(answer.status).toBe(413);
    expect(JSON.parse(answer.body)).toMatchObject({ error: { code: 'body_too_large' } });
  });

  it('may be none at all', async () => {
    const { body } = await send('POST', '/v1/responses', ['{"input": "Hi"}']);
    const { id } = JSON.parse(body) as { id: string };
    expect((await send('DELETE', `/v1/responses/${id}`)).status).toBe(200);
    expect((await send('POST', `/v1/responses/${id}/cancel`)).status).toBe(404);
    expect((await send('POST', '/v1/completions')).status).toBe(400);
  });
});
