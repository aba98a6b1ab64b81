import { describe, expect, it } from 'vitest';
import type { AllowedHosts } from '../../../../../src/server/web/access/host-check.js';
import { say, toyServer } from '../../../support/toy-server.js';

async function statusFor(host: string | null, allowedHosts: AllowedHosts, path = '/v1/models') {
  const toy = toyServer(() => say('ok'), { allowedHosts });
  return (await toy.get(path, { headers: host === null ? {} : { host } })).status;
}

describe('the name by which a server is asked', () => {
  it.each([
    'localhost',
    'localhost:8000',
    'LocalHost:9999',
    '127.0.0.1',
    '127.0.0.1:8000',
    '127.9.8.7:1',
    '[::1]',
    '[::1]:8000',
    null,
  ])('may be %s', async (host) => {
    expect(await statusFor(host, [])).toBe(200);
  });

  it.each([
    'evil.example',
    'evil.example:8000',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    'evil-localhost',
    'localhost.',
    '10.0.0.1:8000',
    '0.0.0.0',
    '[::]',
    '128.0.0.1',
    'localhost@evil.example',
    'evil.example/localhost',
    'localhost:99999',
    '',
  ])("may not be '%s', for any page of the server", async (host) => {
    for (const path of ['/v1/models', '/', '/health', '/v1/nothing']) {
      expect(await statusFor(host, [], path)).toBe(403);
    }
  });

  it('may be one that was named, whatever the port, or below one', async () => {
    const names = ['host.docker.internal', '.ngrok.example'];
    for (const host of [
      'host.docker.internal:8000',
      'HOST.docker.internal',
      'a.ngrok.example',
      'b.a.ngrok.example:443',
      'localhost',
    ]) {
      expect([host, await statusFor(host, names)]).toEqual([host, 200]);
    }
    for (const host of [
      'docker.internal',
      'a.host.docker.internal',
      'ngrok.example',
      'xngrok.example',
      'evil.example',
    ]) {
      expect([host, await statusFor(host, names)]).toEqual([host, 403]);
    }
    expect(await statusFor('evil.example', '*')).toBe(200);
  });

  it('is refused in a sentence that says what would do, before anything runs', async () => {
    const toy = toyServer(() => say('ok'), { allowedHosts: [] });
    // A page whose name was rebound to this address: for the browser, these requests are of the same origin.
    const headers = {
      host: 'evil.example:8000',
      origin: 'http://evil.example:8000',
      'sec-fetch-site': 'same-origin',
    };
    const refused = await toy.post('/v1/completions', { prompt: 'x' }, { headers });
    expect(refused.status).toBe(403);
    expect(await refused.json()).toMatchObject({
      error: {
        type: 'permission_error',
        code: 'host_not_allowed',
        message: expect.stringMatching(
          /^This server is not known as 'evil\.example:8000': .*--allowed-host.*\.$/,
        ),
      },
    });
    expect(toy.engine.requests).toHaveLength(0);
  });
});
