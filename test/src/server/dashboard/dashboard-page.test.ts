import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { ApiKeys } from '../../../../src/server/web/access/api-keys.js';
import { say, toyServer } from '../../support/toy-server.js';

const toy = toyServer(() => say('x'), { apiKeys: new ApiKeys([{ name: 'ali', key: 'sesame', weight: 1 }]) });

/** Sources that each directive of the page's policy allows. */
async function policyOf(path: string): Promise<Map<string, string[]>> {
  const policy = (await toy.get(path)).headers.get('content-security-policy')!;
  return new Map(policy.split('; ').map((rule) => [rule.split(' ')[0]!, rule.split(' ').slice(1)] as const));
}

describe('GET /', () => {
  it('is a page that needs no key, runs this server’s own scripts only, and stands in no frame', async () => {
    const page = await toy.get('/');
    expect(page.status).toBe(200);
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(page.headers.get('x-content-type-options')).toBe('nosniff');
    expect(page.headers.get('referrer-policy')).toBe('no-referrer');
    const policy = await policyOf('/');
    const sources = [...policy.values()].flat();
    expect(policy.get('default-src')).toEqual(["'none'"]);
    expect(policy.get('frame-ancestors')).toEqual(["'none'"]);
    expect(policy.get('require-trusted-types-for')).toEqual(["'script'"]);
    expect(policy.get('script-src')).toEqual(["'self'"]);
    expect(policy.get('img-src')).toEqual(["'self'", 'blob:']);
    expect(policy.get('worker-src')).toEqual(["'self'"]);
    expect(policy.get('style-src')).toEqual(["'self'"]);
    expect(policy.get('font-src')).toEqual(["'self'"]);
    expect(policy.get('manifest-src')).toEqual(["'self'"]);
    expect(policy.get('connect-src')).toEqual(["'self'"]);
    expect(policy.get('trusted-types')).toEqual(['skein-worker']);
    const known = ["'none'", "'self'", "'script'", 'blob:', 'skein-worker'];
    expect(new Set(sources)).toEqual(new Set(known));
    const html = await page.text();
    expect(html).not.toMatch(/https?:|<style|style=|<script>|<script [^>]*>[^<]|\son\w+=/);
  });

  it('finds all its files here', async () => {
    const html = await (await toy.get('/')).text();
    const files = Array.from(html.matchAll(/(?:src|href)="(dashboard\/[^"]+)"/g), ([, path]) => path!);
    expect(files).toHaveLength(6);
    const types: Record<string, string> = {
      ...{ js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml' },
      ...{ bin: 'application/octet-stream', png: 'image/png', json: 'application/manifest+json' },
      woff2: 'font/woff2',
    };
    const styles = await (await toy.get('/dashboard/math.css')).text();
    const fonts = Array.from(styles.matchAll(/url\(([^)]+)\)/g), ([, name]) => `dashboard/${name}`);
    expect(fonts).toHaveLength(20);
    const { icons, start_url } = await (await toy.get('/dashboard/manifest.json')).json();
    expect(new URL(start_url, 'http://a/b/dashboard/manifest.json').href).toBe('http://a/b/');
    // The page asks for them by itself: with its first PDF, code or formula, and where it is installed.
    const later = ['pdf-worker.js', 'cmaps.bin', 'code-worker.js', 'math.js', 'math.css'];
    const named = [...later, ...icons.map(({ src }: { src: string }) => src)].map(
      (name) => `dashboard/${name}`,
    );
    for (const path of [...files, ...fonts, ...named]) {
      const response = await toy.get(`/${path}`);
      expect(response.status, path).toBe(200);
      expect(response.headers.get('content-type'), path).toContain(types[path.split('.').at(-1)!]);
      expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    }
  });

  it('compresses its files for who reads that', async () => {
    const plain = await toy.get('/dashboard/page.js');
    expect(plain.headers.get('content-encoding')).toBe(null);
    const packed = await toy.get('/dashboard/page.js', { headers: { 'accept-encoding': 'gzip, br' } });
    expect(packed.headers.get('content-encoding')).toBe('gzip');
    expect(gunzipSync(await packed.arrayBuffer()).toString()).toBe(await plain.text());
  });

  it('sends nothing again that the browser has', async () => {
    for (const path of ['/', '/dashboard/page.css']) {
      for (const encoding of ['gzip', 'identity']) {
        const headers = { 'accept-encoding': encoding };
        const tag = (await toy.get(path, { headers })).headers.get('etag')!;
        const again = await toy.get(path, { headers: { ...headers, 'if-none-match': tag } });
        expect(again.status).toBe(304);
        expect(await again.text()).toBe('');
        const other = await toy.get(path, { headers: { ...headers, 'if-none-match': '"another"' } });
        expect(other.status).toBe(200);
      }
    }
  });

  it('gives out no other file', async () => {
    for (const path of [
      '/dashboard/NOTICES.txt',
      '/dashboard/KaTeX_Other.woff2',
      '/dashboard/KaTeX_..woff2',
      '/dashboard/..%2fpackage.json',
      '/dashboard/index.html',
    ]) {
      const response = await toy.get(path, { headers: { 'x-api-key': 'sesame' } });
      expect(response.status, path).toBeGreaterThanOrEqual(400);
      expect(response.status, path).toBeLessThan(500);
    }
  });
});
