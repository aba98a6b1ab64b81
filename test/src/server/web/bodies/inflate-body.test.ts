import { randomBytes } from 'node:crypto';
import * as zlib from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  ACCEPTED_CODINGS,
  bodyCoding,
  inflated,
  inflatedBody,
} from '../../../../../src/server/web/bodies/inflate-body.js';
import { MemoryLedger } from '../../../../../src/server/web/memory/held-memory.js';
import { draws } from '../../../../support/scale.js';
import { say, type ToyOptions, toyServer } from '../../../support/toy-server.js';

const { createZstdDecompress, zstdCompressSync } = zlib as unknown as {
  createZstdDecompress?: unknown;
  zstdCompressSync?: (bytes: Uint8Array) => Buffer;
};

const COMPRESS: Record<string, (bytes: Uint8Array) => Buffer> = {
  gzip: (bytes) => zlib.gzipSync(bytes),
  deflate: (bytes) => zlib.deflateSync(bytes),
  br: (bytes) => zlib.brotliCompressSync(bytes, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 4 } }),
  ...(zstdCompressSync && { zstd: zstdCompressSync }),
};
const CODINGS = Object.keys(COMPRESS);
const NO_LIMIT = { maxBytes: 2 ** 26, hold: () => {} };

describe('bodyCoding', () => {
  it('knows the codings that this Node.js has, whatever their case', () => {
    expect(ACCEPTED_CODINGS).toBe(`gzip, deflate, br${createZstdDecompress === undefined ? '' : ', zstd'}`);
    expect(CODINGS.join(', ')).toBe(ACCEPTED_CODINGS);
    for (const coding of CODINGS) expect(bodyCoding(` ${coding.toUpperCase()} `)).toBe(coding);
    expect(bodyCoding('x-gzip')).toBe('gzip');
    for (const none of [undefined, '', 'identity', 'Identity, identity']) expect(bodyCoding(none)).toBeNull();
  });

  it.each(['compress', 'gzip, gzip', 'br,gzip', 'gzip;q=1', '__proto__', 'toString'])(
    'refuses %s',
    (name) => {
      expect(() => bodyCoding(name)).toThrow(
        expect.objectContaining({ status: 415, headers: { 'accept-encoding': ACCEPTED_CODINGS } }),
      );
    },
  );
});

describe.each(CODINGS)('a body in %s', (coding) => {
  const compress = COMPRESS[coding]!;

  it('is what its sender had', async () => {
    for (const bytes of [
      Buffer.alloc(0),
      Buffer.from('{}'),
      randomBytes(200_000),
      Buffer.alloc(3_000_000, 'ab'),
    ]) {
      const found = await inflatedBody(compress(bytes), coding, NO_LIMIT);
      expect(Buffer.compare(found, bytes)).toBe(0);
      expect(found.buffer.byteLength).toBe(bytes.length);
    }
  });

  it('ends where it is longer than a body may be, or has no memory, and what is longer is never made', async () => {
    const bomb = compress(Buffer.alloc(20_000_000));
    expect(bomb.length).toBeLessThan(30_000);
    const held: number[] = [];
    const hold = (bytes: number) => void held.push(bytes);
    await expect(inflatedBody(bomb, coding, { maxBytes: 1_000_000, hold })).rejects.toMatchObject({
      status: 413,
    });
    expect(Math.max(...held)).toBeLessThanOrEqual(3_000_000);
    const full = new Error('no memory');
    const holdNone = () => {
      throw full;
    };
    await expect(inflatedBody(bomb, coding, { maxBytes: 2 ** 30, hold: holdNone })).rejects.toBe(full);
  });

  it('that is cut off anywhere is refused', async () => {
    const whole = compress(Buffer.from('{"prompt": "Name a goose of the north, please."}'));
    for (let length = 0; length < whole.length; length++) {
      const cut = inflatedBody(whole.subarray(0, length), coding, NO_LIMIT);
      await expect(cut, `${length} of ${whole.length}`).rejects.toMatchObject({
        status: 400,
        apiCode: 'invalid_encoding',
      });
    }
  });

  it('that is damaged is refused, or another text, and nothing else', async () => {
    const whole = compress(Buffer.from('{"prompt": "Name a goose of the north, please."}'));
    await fc.assert(
      fc.asyncProperty(
        fc.nat(whole.length - 1),
        fc.nat(255),
        fc.uint8Array({ maxLength: 4 }),
        async (at, byte, more) => {
          const spoilt = Buffer.concat([whole, more]);
          spoilt[at] = byte;
          const limits = { maxBytes: 2 ** 20, hold: () => {} };
          const found = await inflatedBody(spoilt, coding, limits).catch((error: unknown) => error);
          if (!(found instanceof Uint8Array))
            expect(found).toMatchObject({ status: expect.toBeOneOf([400, 413]) });
        },
      ),
      { numRuns: draws(100) },
    );
  });

  it('fails as its source does', async () => {
    const gone = new Error('the client has left');
    async function* leaving() {
      yield compress(randomBytes(100_000)).subarray(0, 50_000);
      throw gone;
    }
    const read = async () => {
      for await (const _ of inflated(leaving(), coding));
    };
    await expect(read()).rejects.toBe(gone);
  });
});

function serve(options: ToyOptions = {}) {
  const toy = toyServer(() => say('Paris'), options);
  const post = (path: string, body: Uint8Array<ArrayBuffer>, coding: string, headers = {}) =>
    toy.app.request(path, { method: 'POST', body, headers: { 'content-encoding': coding, ...headers } });
  return { toy, post };
}

describe('routes', () => {
  const asked = (fields: object) => Buffer.from(JSON.stringify({ model: 'toy', max_tokens: 9, ...fields }));
  const messages = [{ role: 'user', content: 'Hi' }];

  it.each([
    ['/v1/completions', { prompt: 'Hi' }],
    ['/v1/chat/completions', { messages }],
    ['/v1/responses', { input: 'Hi', max_tokens: undefined }],
    ['/v1/messages', { messages }],
    ['/api/chat', { messages, max_tokens: undefined, stream: false }],
    ['/tokenize', { prompt: 'Hi', max_tokens: undefined }],
    ['/invocations', { messages }],
  ])('read it: %s', async (path, fields) => {
    const { toy, post } = serve();
    for (const coding of CODINGS) {
      const response = await post(path, new Uint8Array(COMPRESS[coding]!(asked(fields))), coding);
      expect(response.status, await response.clone().text()).toBe(200);
      await response.text();
    }
    const plain = await toy.post(path, asked(fields).toString());
    expect(plain.status).toBe(200);
  });

  it.each(['/v1/completions', '/v1/messages', '/api/chat'])(
    'refuse what they cannot read: %s',
    async (path) => {
      const ledger = new MemoryLedger({ limit: 2 ** 26 });
      const { toy, post } = serve({ maxBodyBytes: 100_000, ledger });
      const status = async (body: Uint8Array, coding: string) => {
        const response = await post(path, new Uint8Array(body), coding);
        expect(await response.text()).toContain('"error"');
        return [response.status, response.headers.get('accept-encoding')];
      };
      expect(await status(asked({ prompt: 'Hi' }), 'compress')).toEqual([415, ACCEPTED_CODINGS]);
      expect(await status(zlib.gzipSync(zlib.gzipSync('{}')), 'gzip, gzip')).toEqual([415, ACCEPTED_CODINGS]);
      for (const coding of CODINGS) {
        expect(await status(asked({ prompt: 'Hi' }), coding)).toEqual([400, null]);
        expect(await status(COMPRESS[coding]!(Buffer.alloc(20_000_000, ' ')), coding)).toEqual([413, null]);
        expect(await status(COMPRESS[coding]!(Buffer.from('{"a"')), coding)).toEqual([400, null]);
      }
      expect(toy.engine.requests).toHaveLength(0);
      expect(ledger.held).toBe(0);
    },
  );

  it('hold the memory of what a body becomes, and give it back', async () => {
    const ledger = new MemoryLedger({ limit: 2_000_000 });
    const { post } = serve({ ledger });
    for (const coding of CODINGS) {
      const response = await post(
        '/v1/completions',
        new Uint8Array(COMPRESS[coding]!(Buffer.alloc(5_000_000, ' '))),
        coding,
      );
      expect(response.status).toBe(413);
      expect(await response.text()).toContain('--max-held-memory-bytes');
    }
    expect(ledger.held).toBe(0);
  });

  it('store a file that was compressed, and no form that is a bomb around it', async () => {
    const { post, toy } = serve();
    const part = (headers: string, body: string) =>
      `--b\r\nContent-Disposition: form-data; ${headers}\r\n\r\n${body}\r\n`;
    const line = '{"custom_id": "a"}\n'.repeat(100_000);
    const file = part('name="file"; filename="a.jsonl"', line);
    const form = (before: string) =>
      Buffer.from(`${before}${part('name="purpose"', 'batch')}${file}--b--\r\n`);
    const multipart = { 'content-type': 'multipart/form-data; boundary=b' };
    for (const coding of CODINGS) {
      const sent = await post('/v1/files', new Uint8Array(COMPRESS[coding]!(form(''))), coding, multipart);
      const { id, bytes } = (await sent.json()) as { id: string; bytes: number };
      expect(bytes).toBe(line.length);
      expect(await (await toy.get(`/v1/files/${id}/content`)).text()).toBe(line);
      const bomb = COMPRESS[coding]!(form(`${' '.repeat(20_000_000)}\r\n`));
      const refused = await post('/v1/files', new Uint8Array(bomb), coding, multipart);
      expect([refused.status, await refused.text()]).toEqual([
        400,
        expect.stringContaining('besides its file'),
      ]);
    }
  });
});
