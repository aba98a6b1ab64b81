import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, createServer as createForward, type Server as Forward } from 'node:net';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { HttpServer } from '../../../../src/server/listening/http-server.js';
import { certificateFixture } from '../../support/tls.js';
import { say, type ToyOptions, toyServer } from '../../support/toy-server.js';
import { visit } from './support/browser.js';

/**
 * Names under .example lead to this machine, as those of an attacker may; a page that asks for a permission
 * gets none of it.
 */
export const PAGES_OF_ELSEWHERE = [
  '--host-resolver-rules=MAP *.example 127.0.0.1',
  // These tests are of the server: protections that some browsers add are off.
  '--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests,HttpsUpgrades',
];

/** Sends all that a page can send to a server without asking it; returns the parts of the answers that the page could read. */
async function attack(page: Page, target: string): Promise<Record<string, string>> {
  return await page.evaluate(async (url) => {
    const body = JSON.stringify({ prompt: 'x', max_tokens: 2 });
    const ask = async (path: string, init: RequestInit) => {
      try {
        const response = await fetch(url + path, { ...init, signal: AbortSignal.timeout(120_000) });
        return response.type === 'opaque' ? 'sent' : `read ${response.status}`;
      } catch {
        return 'failed';
      }
    };
    const text = { method: 'POST', body, headers: { 'content-type': 'text/plain' } };
    const json = { method: 'POST', body, headers: { 'content-type': 'application/json' } };
    const socket = new Promise<string>((resolve) => {
      const opened = new WebSocket(`${url.replace('http', 'ws')}/v1/completions`);
      opened.addEventListener('open', () => resolve('open'));
      opened.addEventListener('error', () => resolve('failed'));
    });
    return {
      models: await ask('/v1/models', {}),
      json: await ask('/v1/completions', json),
      text: await ask('/v1/completions', text),
      blind: await ask('/v1/completions', { ...text, mode: 'no-cors' }),
      beacon: String(navigator.sendBeacon(`${url}/v1/completions`, body)),
      socket: await socket,
    };
  }, target);
}

/** A form that a page sends by itself; the status of the answer that its reader then sees. */
async function sendForm(page: Page, target: string): Promise<number> {
  const answered = page.waitForResponse((response) => response.url() === `${target}/v1/completions`);
  await page.evaluate((url) => {
    const form = document.createElement('form');
    Object.assign(form, { method: 'post', enctype: 'text/plain', action: `${url}/v1/completions` });
    const field = document.createElement('input');
    // A form as text/plain is sent as name=value: JSON with an equals sign somewhere.
    Object.assign(field, { name: '{"prompt":"x","user":"', value: '"}' });
    form.append(field);
    document.body.append(form);
    form.submit();
  }, target);
  return (await answered).status();
}

/** The power of pages of other origins over a server, through the browser of the person who runs it, and that of its own page. */
export function otherPagesSuite(browser: () => Browser): void {
  const servers: HttpServer[] = [];
  let elsewhere: Server;
  let port = 0;
  beforeAll(async () => {
    elsewhere = createServer((_, response) =>
      response.setHeader('content-type', 'text/html').end('<!doctype html>'),
    );
    await new Promise<void>((resolve) => elsewhere.listen(0, '127.0.0.1', resolve));
    port = (elsewhere.address() as AddressInfo).port;
  });
  afterAll(async () => {
    for (const server of servers) await server.close();
    elsewhere.closeAllConnections();
    await new Promise((resolve) => elsewhere.close(resolve));
  });

  /** Starts a server as it is on a loopback address without keys, unless the options say otherwise. */
  async function serve(options: ToyOptions = {}, tls?: { cert: Buffer; key: Buffer }) {
    const toy = toyServer(() => say('A goose.'), { allowedHosts: [], ...options });
    const server = await HttpServer.listen({
      app: toy.app,
      state: toy.state,
      host: '127.0.0.1',
      port: 0,
      tls,
    });
    servers.push(server);
    return { ...toy, url: server.url, port: server.port };
  }

  async function open(url: string) {
    const context = await browser().newContext({ ignoreHTTPSErrors: true });
    const page = await context.newPage();
    await page.goto(url);
    return { page, close: () => context.close() };
  }

  async function chatAt(url: string): Promise<void> {
    const { page, problems, close } = await visit(browser(), url, { ignoreHTTPSErrors: true });
    await page.getByText('Live').waitFor();
    await page.getByLabel('Message', { exact: true }).fill('Who are you?');
    await page.keyboard.press('Enter');
    await page.locator('.markdown').getByText('A goose.').waitFor();
    expect(problems).toEqual([]);
    await close();
  }

  it('have nothing computed and can read nothing, by any way that needs no leave', async () => {
    const { engine, url } = await serve();
    const { page, close } = await open(`http://evil.example:${port}`);
    const closed = { models: 'failed', json: 'failed', text: 'failed', socket: 'failed' };
    // Sent and beacon: the browser does not report to the page that it was refused.
    expect(await attack(page, url)).toEqual({ ...closed, blind: 'sent', beacon: 'true' });
    expect(await sendForm(page, url)).toBe(403);
    expect(engine.requests).toHaveLength(0);
    await close();
  });

  it('are held back by the server alone: one that lets all in has done all of it', async () => {
    const { engine, url } = await serve({ corsOrigins: '*', allowedHosts: '*' });
    const { page, close } = await open(`http://evil.example:${port}`);
    const read = { models: 'read 200', json: 'read 200', text: 'read 200' };
    expect(await attack(page, url)).toEqual({ ...read, blind: 'sent', beacon: 'true', socket: 'failed' });
    expect(await sendForm(page, url)).toBe(200);
    // The two that wait for no answer are on their way.
    await expect.poll(() => engine.requests.length).toBe(5);
    await close();
  });

  it('are let in from this machine, and by name', async () => {
    for (const [from, corsOrigins] of [
      [`http://localhost:${port}`, undefined],
      [`http://app.example:${port}`, [`http://app.example:${port}`]],
    ] as const) {
      const { engine, url } = await serve(corsOrigins === undefined ? {} : { corsOrigins });
      const { page, close } = await open(from);
      expect(await attack(page, url)).toMatchObject({
        models: 'read 200',
        json: 'read 200',
        text: 'read 200',
      });
      expect(engine.requests.length).toBeGreaterThanOrEqual(2);
      await close();
    }
  });

  it('become no page of the server by a name that leads to it', async () => {
    const { engine, port: own } = await serve();
    const { page, close } = await open(`http://rebound.example:${own}/`);
    expect(await page.textContent('body')).toContain('host_not_allowed');
    const statuses = await page.evaluate(async () => [
      (await fetch('/v1/models')).status,
      (await fetch('/v1/completions', { method: 'POST', body: '{"prompt":"x"}' })).status,
    ]);
    expect(statuses).toEqual([403, 403]);
    expect(engine.requests).toHaveLength(0);
    await close();
  });

  it('may link to the dashboard, and not show it inside of theirs', async () => {
    const { url } = await serve();
    const { page, close } = await open(`http://evil.example:${port}`);
    const framed = page.waitForResponse((response) => response.url() === `${url}/`);
    await page.evaluate((target) => {
      document.body.append(Object.assign(document.createElement('iframe'), { src: `${target}/` }));
    }, url);
    expect((await framed).status()).toBe(403);
    await page.evaluate((target) => {
      const link = Object.assign(document.createElement('a'), { href: `${target}/`, textContent: 'geese' });
      document.body.append(link);
    }, url);
    await page.getByText('geese').click();
    await page.getByText('Live').waitFor();
    await close();
  });

  it('do not keep the own page from chatting: by a name, over HTTPS, and through a forwarded port', async () => {
    const plain = await serve();
    const { cert, key } = certificateFixture('localhost');
    const secure = await serve({}, { cert: readFileSync(cert), key: readFileSync(key) });
    await chatAt(`https://localhost:${secure.port}`);
    const forward: Forward = createForward((client) => {
      const server = connect(plain.port, '127.0.0.1');
      for (const socket of [client, server]) socket.on('error', () => {});
      client.pipe(server).pipe(client);
    });
    await new Promise<void>((resolve) => forward.listen(0, '127.0.0.1', resolve));
    await chatAt(`http://localhost:${(forward.address() as AddressInfo).port}`);
    forward.close();
    const named = await serve({ allowedHosts: ['geese.example'] });
    await chatAt(`http://geese.example:${named.port}`);
  });
}
