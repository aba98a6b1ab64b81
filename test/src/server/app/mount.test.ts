import { describe, expect, it } from 'vitest';
import { canonicalPaths } from '../../../../src/server/app/mount.js';
import { ROUTES } from '../../../../src/server/app/routes/index.js';
import { KSERVE_ROUTES } from '../../../../src/server/kserve/routes.js';
import { ApiKeys } from '../../../../src/server/web/access/api-keys.js';
import { say, toyServer } from '../../support/toy-server.js';

const canonical = canonicalPaths([...ROUTES, ...KSERVE_ROUTES]);

describe('a path', () => {
  it.each([
    ['/chat/completions', '/v1/chat/completions'],
    ['/v1/chat/completions/', '/v1/chat/completions'],
    ['/models/a/b', '/v1/models/a/b'],
    ['/responses/resp_1/cancel', '/v1/responses/resp_1/cancel'],
    ['/rerank', '/v1/rerank'],
    ['/v2/rerank/', '/v2/rerank'],
    ['/ping', '/health'],
    ['/health/', '/health'],
    ['/tokenize/', '/tokenize'],
    ['/v1/models/a/', '/v1/models/a'],
    ['/models/org/a/', '/v1/models/org/a'],
    ['/v2/models/m/infer/', '/v2/models/m/infer'],
  ])('%s is that of the route %s', (path, of) => {
    expect(canonical(path)).toBe(of);
  });

  it.each(['/', '/v1/models/a', '/nothing', '/v1/v1/models', '/v1/', '', '/constructor', '/tokenize//'])(
    '%s stays',
    (path) => {
      expect(canonical(path)).toBe(path);
    },
  );

  it.each(ROUTES.map(({ path }) => path))('%s of a route stays', (path) => {
    expect(canonical(path)).toBe(path);
  });

  it('without /v1, or with a slash, is answered, counted and guarded as its route', async () => {
    const apiKeys = new ApiKeys([{ name: 'a', weight: 1, key: 'secret' }]);
    const toy = toyServer(() => say('x'), { apiKeys });
    const messages = [{ role: 'user', content: 'Hi' }];
    for (const path of ['/chat/completions', '/v1/chat/completions/']) {
      expect((await toy.post(path, { messages })).status).toBe(401);
      const headers = { 'content-type': 'application/json', 'api-key': 'secret' };
      expect((await toy.post(path, { messages }, { headers })).status).toBe(200);
      const wrong = { 'content-type': 'application/json', 'api-key': 'wrong' };
      expect((await toy.post(path, { messages }, { headers: wrong })).status).toBe(401);
    }
    for (const path of ['/health/', '/ping']) expect((await toy.get(path)).status).toBe(200);
    const metrics = await (await toy.get('/metrics/', { headers: { 'api-key': 'secret' } })).text();
    expect(metrics).toContain('handler="/v1/chat/completions"');
    expect(metrics).not.toMatch(/handler="(unmatched|\/chat)/);
    const unknown = await toy.get('/nothing/', { headers: { 'api-key': 'secret' } });
    expect(await unknown.text()).toContain('There is no GET /nothing/ on this server.');
  });
});
