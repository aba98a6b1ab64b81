import { describe, expect, it } from 'vitest';
import { ROUTES } from '../../../../../src/server/app/routes/index.js';
import { ApiKeys } from '../../../../../src/server/web/access/api-keys.js';
import type { AllowedOrigins } from '../../../../../src/server/web/access/origin-check.js';
import { say, toyServer } from '../../../support/toy-server.js';

const HOST = 'geese.example:8000';
const FOREIGN = 'https://evil.example';

/** Status of a request with these headers, and the number of requests that the engine had for it. */
async function asked(
  headers: Record<string, string>,
  corsOrigins?: AllowedOrigins,
  { path = '/v1/completions', method = 'POST', body = '{"prompt":"x"}' as string | null } = {},
) {
  const toy = toyServer(() => say('ok'), corsOrigins === undefined ? {} : { corsOrigins });
  const response = await toy.app.request(path, { method, headers: { host: HOST, ...headers }, body });
  const text = await response.text();
  return { status: response.status, runs: toy.engine.requests.length, headers: response.headers, text };
}

const ran = async (headers: Record<string, string>, corsOrigins?: AllowedOrigins) => {
  const { status, runs } = await asked(headers, corsOrigins);
  // A refused request has not run, and one that has run was answered.
  expect([
    [200, 1],
    [403, 0],
  ]).toContainEqual([status, runs]);
  return status === 200;
};

describe('who may have something computed, by default', () => {
  it.each([
    ['programs, which say nothing', {}],
    ['a form of curl', { 'content-type': 'application/x-www-form-urlencoded' }],
    ["the server's own page", { origin: 'http://geese.example:8000', 'sec-fetch-site': 'same-origin' }],
    ['the same over HTTPS behind a proxy', { origin: 'https://geese.example:8000' }],
    [
      'the own page behind a proxy that changes Host',
      { origin: 'https://a.example', 'sec-fetch-site': 'same-origin' },
    ],
    ['what its reader typed', { 'sec-fetch-site': 'none' }],
    ['a page of localhost', { origin: 'http://localhost:3000', 'sec-fetch-site': 'cross-site' }],
    ['the same by HTTPS', { origin: 'https://localhost' }],
    ['a page of 127.0.0.1', { origin: 'http://127.0.0.1:5173' }],
    ['a page of the loopback network', { origin: 'http://127.8.9.10:8080' }],
    ['a page of [::1]', { origin: 'http://[::1]:9999' }],
    ['a page below localhost', { origin: 'http://app.localhost:3000' }],
    ['the window of a program', { origin: 'app://obsidian.md' }],
    ['another one', { origin: 'tauri://localhost' }],
  ] as const)('%s may', async (_, headers) => {
    expect(await ran(headers)).toBe(true);
  });

  it.each([
    ['a page of elsewhere', { origin: FOREIGN, 'sec-fetch-site': 'cross-site' }],
    ['one of an old browser', { origin: FOREIGN }],
    ['one with text that needs no preflight', { origin: FOREIGN, 'content-type': 'text/plain' }],
    ['one of a sandbox or a file', { origin: 'null', 'sec-fetch-site': 'cross-site' }],
    ['another port of the same machine', { origin: 'http://geese.example:8001' }],
    ['the same name without the port', { origin: 'http://geese.example' }],
    ['a name that begins as the loopback', { origin: 'http://localhost.evil.example' }],
    ['a name that begins as its address', { origin: 'http://127.0.0.1.evil.example' }],
    ['a name that ends as the loopback', { origin: 'http://evil-localhost' }],
    ['a user called localhost', { origin: 'http://localhost@evil.example' }],
    ['another scheme', { origin: 'chrome-extension://localhost' }],
    ['what is no origin', { origin: 'localhost' }],
    ['two origins', { origin: `http://localhost, ${FOREIGN}` }],
    ['a page that hides its origin', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' }],
    ['a page of the same site that does', { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'no-cors' }],
    [
      'a form that is sent by opening a page',
      { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' },
    ],
  ] as const)('%s may not', async (_, headers) => {
    expect(await ran(headers)).toBe(false);
  });

  it('is asked of extensions by name', async () => {
    const origin = 'chrome-extension://abcdef';
    expect(await ran({ origin }, [origin])).toBe(true);
    expect(await ran({ origin: `${origin}g` }, [origin])).toBe(false);
  });

  it('is told in a sentence, without a word that the page could read', async () => {
    const { text, headers, status } = await asked({ origin: FOREIGN });
    expect(status).toBe(403);
    expect(JSON.parse(text)).toEqual({
      error: {
        message: `Web pages of ${FOREIGN} may not use this server, which was asked as ${HOST}; --cors-origin names those that may, and a proxy in front of it should hand on the Host as it came.`,
        type: 'permission_error',
        param: null,
        code: 'origin_not_allowed',
      },
    });
    expect(headers.get('access-control-allow-origin')).toBeNull();
    expect(headers.get('x-request-id')).toMatch(/^req-/);
  });

  it('is decided for every route, before its key and its body are looked at', async () => {
    const apiKeys = new ApiKeys([{ name: 'a', key: 'ka', weight: 1 }]);
    const toy = toyServer(() => say('ok'), { apiKeys });
    let reads = 0;
    for (const { method, path } of ROUTES) {
      const body = new ReadableStream(
        {
          pull: (controller) => {
            reads++;
            controller.close();
          },
        },
        { highWaterMark: 0 },
      );
      const init = {
        method: method.toUpperCase(),
        headers: { origin: FOREIGN },
        body: method === 'get' ? null : body,
        duplex: 'half',
      };
      const { status } = await toy.app.request(path, init as RequestInit);
      expect([path, status]).toEqual([path, 403]);
    }
    expect(reads).toBe(0);
  });
});

describe('pages that are opened', () => {
  const visit = {
    'sec-fetch-site': 'cross-site',
    'sec-fetch-mode': 'navigate',
    'sec-fetch-dest': 'document',
  };
  const get = async (path: string, headers: Record<string, string>) =>
    (await asked(headers, undefined, { path, method: 'GET', body: null })).status;

  it('from a link elsewhere are shown', async () => {
    for (const path of ['/', '/docs', '/metrics']) expect(await get(path, visit)).toBe(200);
  });

  it('are not shown inside of others, as pictures, or to their scripts', async () => {
    for (const dest of ['iframe', 'image', 'script', 'empty', 'object']) {
      const mode = dest === 'iframe' || dest === 'object' ? 'navigate' : 'no-cors';
      const inside = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': mode, 'sec-fetch-dest': dest };
      expect([dest, await get('/stats/stream', inside)]).toEqual([dest, 403]);
    }
    expect(await get('/stats/stream', { origin: FOREIGN })).toBe(403);
  });
});

describe('origins that are named', () => {
  it('may, and the others, this machine among them, may not', async () => {
    const named = ['https://a.example', 'https://b.example:8443'];
    for (const origin of named) expect(await ran({ origin }, named)).toBe(true);
    for (const origin of [FOREIGN, 'http://localhost:3000', 'http://a.example', 'https://a.example:8443']) {
      expect(await ran({ origin }, named)).toBe(false);
    }
    expect(await ran({ origin: 'http://localhost:3000' }, [...named, 'loopback'])).toBe(true);
  });

  it('are none but the own, or all, null too', async () => {
    expect(await ran({ origin: 'http://localhost:3000' }, [])).toBe(false);
    expect(await ran({ origin: `http://${HOST}` }, [])).toBe(true);
    for (const headers of [
      { origin: FOREIGN },
      { origin: 'null' },
      { 'sec-fetch-site': 'cross-site' },
    ] as const) {
      expect(await ran(headers, '*')).toBe(true);
    }
  });
});

describe('what a page may read', () => {
  const preflight = async (origin: string, corsOrigins?: AllowedOrigins) => {
    const headers = {
      origin,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization,content-type',
    };
    return (await asked(headers, corsOrigins, { method: 'OPTIONS', body: null })).headers;
  };

  it('is told to it before it asks: to those of this machine by default', async () => {
    const headers = await preflight('http://localhost:3000');
    expect(headers.get('access-control-allow-origin')).toBe('http://localhost:3000');
    expect(headers.get('access-control-allow-headers')).toBe('authorization,content-type');
    expect(headers.get('vary')).toContain('Origin');
    for (const origin of [FOREIGN, 'null']) {
      expect((await preflight(origin)).get('access-control-allow-origin')).toBeNull();
    }
  });

  it('is everything for all, and what was named for others', async () => {
    expect((await preflight(FOREIGN, '*')).get('access-control-allow-origin')).toBe('*');
    expect(
      (await preflight('https://a.example', ['https://a.example'])).get('access-control-allow-origin'),
    ).toBe('https://a.example');
    for (const origins of [['https://a.example'], []]) {
      expect((await preflight(FOREIGN, origins)).get('access-control-allow-origin')).toBeNull();
    }
  });

  it('has the headers that clients look at', async () => {
    const { headers } = await asked({ origin: 'http://localhost:3000' });
    expect(headers.get('access-control-allow-origin')).toBe('http://localhost:3000');
    expect(headers.get('access-control-expose-headers')).toBe(
      'X-Request-Id,Request-Id,Retry-After,X-Skein-Warning,X-Skein-Prompt-Parted,X-Unknown-Fields',
    );
  });
});
