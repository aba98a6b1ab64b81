import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { ApiKeys } from '../../../../../src/server/web/access/api-keys.js';
import { say, toyServer } from '../../../support/toy-server.js';

const toy = toyServer(() => say('x'), { apiKeys: new ApiKeys([{ name: 'ali', key: 'sesame', weight: 1 }]) });

describe('GET /docs', () => {
  it('is a page that may run and ask nothing but this server, and needs no key', async () => {
    const page = await toy.get('/docs');
    expect(page.status).toBe(200);
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    const policy = new Map(
      page.headers
        .get('content-security-policy')!
        .split('; ')
        .map((rule) => [rule.split(' ')[0]!, rule.split(' ').slice(1)]),
    );
    expect(policy.get('default-src')).toEqual(["'none'"]);
    expect(policy.get('script-src')).toEqual(["'self'"]);
    expect(policy.get('connect-src')).toEqual(["'self'"]);
    const html = await page.text();
    expect(html).not.toMatch(/https?:/);
    // A script within the page would not run.
    expect(html).not.toMatch(/<script>|<script [^>]*>[^<]|\son\w+=/);
  });

  it('finds all its files here', async () => {
    const html = await (await toy.get('/docs')).text();
    const files = Array.from(html.matchAll(/(?:src|href)="(docs\/[^"]+)"/g), ([, path]) => path!);
    expect(files).toHaveLength(3);
    const types: Record<string, string> = { js: 'text/javascript', css: 'text/css' };
    for (const path of files) {
      const response = await toy.get(`/${path}`);
      expect(response.status, path).toBe(200);
      expect(response.headers.get('content-type'), path).toContain(types[path.split('.').at(-1)!]);
      expect(response.headers.get('x-content-type-options')).toBe('nosniff');
      expect((await response.text()).length, path).toBeGreaterThan(100);
    }
    const start = await (await toy.get('/docs/start.js')).text();
    expect(start).not.toMatch(/https?:/);
    expect(start).toContain("url: 'openapi.json'");
    expect((await toy.get('/openapi.json')).status).toBe(200);
  });

  it('compresses its files for who reads that, and for nobody else', async () => {
    const path = '/docs/swagger-ui.css';
    const plain = await toy.get(path);
    expect(plain.headers.get('content-encoding')).toBe(null);
    const packed = await toy.get(path, { headers: { 'accept-encoding': 'gzip, br' } });
    expect(packed.headers.get('content-encoding')).toBe('gzip');
    expect(gunzipSync(await packed.arrayBuffer()).toString()).toBe(await plain.text());
  });

  it('gives out no other file', async () => {
    for (const path of ['/docs/package.json', '/docs/..%2fpackage.json', '/docs/%2e%2e/package.json']) {
      const response = await toy.get(path, { headers: { 'x-api-key': 'sesame' } });
      expect(response.status, path).toBeGreaterThanOrEqual(400);
      expect(response.status, path).toBeLessThan(500);
    }
  });
});
