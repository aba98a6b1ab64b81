import { cpSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tinyModelPath } from '../../../../tools/support/test-engine.js';
import { temporaryFolder } from '../../../support/fresh-folders.js';
import { draws } from '../../../support/scale.js';
import { expectIdle } from '../../support/metrics.js';
import { memoryOf, type SkeinProcess, startFakeServer } from '../../support/skein-process.js';
import { type DescribedRoute, describedRoutes, type OpenApi, sampleOf } from './described-routes.js';
import { type Refusal, refusalOf } from './fuzzed-routes.js';
import { changedAt, type Json, nameOf, pathsOf, RawJson, valueAt, writeJson } from './json-text.js';
import { bytesNear, mutationOf } from './mutations.js';

/** The same every time, so that what passes here passes everywhere; others: SKEIN_FUZZ_SEED=7 SKEIN_FUZZ_RUNS=5000. */
const OPTIONS = {
  seed: Number(process.env.SKEIN_FUZZ_SEED ?? 1),
  numRuns: Number(process.env.SKEIN_FUZZ_RUNS ?? draws(2)),
  endOnFailure: true,
};
/** Long enough for any machine: a request that is not answered by then never is. */
const HANG_MS = 400_000;

/** Model for each route. */
const MODELS: Readonly<Record<string, string>> = {
  '/v1/embeddings': 'vectors',
  '/v1/rerank': 'scores',
  '/v1/score': 'scores',
  '/pooling': 'vectors',
};

const fixture = (name: string) => fileURLToPath(new URL(`../../../fixtures/${name}`, import.meta.url));
const adapterFolder = temporaryFolder('skein-fuzz');
let server: SkeinProcess;
let api: OpenApi;
let port: number;
let firstRss: number;
/** A stream that goes on during all of it. */
let neighbour: Promise<number>;
let isOver = false;

beforeAll(async () => {
  // What the examples of the routes of adapters name.
  cpSync(fixture('lora-plain'), join(adapterFolder, 'sql-lora'), { recursive: true });
  const models = { chat: 'gqa', vectors: 'bert-mean', scores: 'bert-score' };
  server = await startFakeServer(
    {
      model: Object.entries(models).map(([name, variant]) => `${name}=${tinyModelPath(variant)}`),
      maxBeamWidth: '4',
      defaultMaxTokens: '16',
      allowRuntimeLora: 'true',
      loraDir: adapterFolder,
    },
    { vocabSize: 320, maxSeqLen: 1024, endToken: 2, stepMs: 1 },
  );
  port = Number(new URL(server.url).port);
  api = (await (await fetch(`${server.url}/openapi.json`)).json()) as OpenApi;
  firstRss = (await memoryOf(server)).rss;
  neighbour = beNeighbour();
});
afterAll(() => server?.stop());

async function beNeighbour(): Promise<number> {
  const text = async () => {
    const response = await send('POST', '/v1/completions', {
      ...{ model: 'chat', prompt: 'Once', max_tokens: 400, stream: true, ignore_eos: true, seed: 5 },
    });
    const frames = await response.text();
    expect(frames).toMatch(/data: \[DONE\]\n\n$/);
    const json = [...frames.matchAll(/^data: (\{.*\})$/gm)].map(([, frame]) => JSON.parse(frame!));
    return json.map(({ choices }) => choices[0]?.text ?? '').join('');
  };
  const alone = await text();
  expect(alone).not.toBe('');
  let streams = 0;
  for (; !isOver; streams++) expect(await text()).toBe(alone);
  return streams;
}

function send(method: string, path: string, body?: Json | Uint8Array): Promise<Response> {
  const bytes = body === undefined || body instanceof Uint8Array ? body : Buffer.from(writeJson(body));
  return fetch(server.url + path, {
    method,
    ...(bytes && { body: bytes as Uint8Array<ArrayBuffer> }),
    // A kept-alive connection may be closed just when the next request comes.
    headers: { 'content-type': 'application/json', connection: 'close' },
    signal: AbortSignal.timeout(HANG_MS),
  });
}

/** The model for a route, as a field, if it has that. */
const modelOf = ({ path, body }: DescribedRoute) =>
  Object.hasOwn(body!.fields, 'model') ? { model: MODELS[path] ?? 'chat' } : {};

/** A body that the route takes: one of its examples, with further fields as far as they go together. */
async function takenBody(route: DescribedRoute, example: number, fields: { [key: string]: Json }) {
  const { examples } = route.body!;
  let body: { [key: string]: Json } = { ...modelOf(route), ...(examples[example % examples.length] ?? {}) };
  for (const [name, value] of Object.entries(fields)) {
    if (name === 'model') continue;
    const more = { ...body, [name]: value };
    if ((await refusalOf(await send('POST', route.path, more), name)) === null) body = more;
  }
  return body;
}

/** True if a refusal's name and the place of a change are the same, or one lies in the other. */
function isRelated(param: string, name: string): boolean {
  const isWithin = (inner: string, outer: string) =>
    inner === outer || inner.startsWith(`${outer}.`) || inner.startsWith(`${outer}[`);
  // What the first item of a list is says what the others have to be.
  const listOf = (place: string) => place.replace(/\[\d+\]$/, '');
  return isWithin(param, name) || isWithin(name, param) || listOf(param) === listOf(name);
}

/**
 * Routes of models that the server has none of, which is found out first: with tokens for infilling, classes,
 * or outputs besides a vector.
 */
const OF_OTHER_MODELS = ['/infill', '/classify', '/predict', '/embed_sparse', '/embed_all'];

/** The server has none of what the path or the example names. */
const isOfTheToy = ({ path }: DescribedRoute, { code }: Refusal) =>
  OF_OTHER_MODELS.includes(path)
    ? code === 'model_not_supported'
    : /^(conversation|file|response)_not_found$/.test(code ?? '');

const rootOf = (name: string) => name.split(/[.[]/)[0]!;

it('names every route', () => {
  const names = describedRoutes(api).map(({ name }) => name);
  expect(names).toContain('POST /v1/chat/completions');
  expect(names.length).toBeGreaterThan(20);
});

it('takes a body of each route with anything changed anywhere in it, or refuses it by the name of what was changed', async () => {
  for (const route of describedRoutes(api).filter(({ body }) => body !== null)) {
    const fields = fc.record(
      Object.fromEntries(
        Object.entries(route.body!.fields).map(([name, schema]) => [name, sampleOf(schema, api)]),
      ),
      { requiredKeys: [] },
    );
    const names = Object.keys(route.body!.fields);
    const few = fc.tuple(fc.shuffledSubarray(names, { maxLength: Math.min(2, names.length) }), fields);
    const property = fc.asyncProperty(fc.nat(9), few, fc.gen(), async (example, [chosen, values], draw) => {
      const asked = Object.fromEntries(
        chosen.flatMap((name) => (name in values ? [[name, values[name] as Json]] : [])),
      );
      const body = await takenBody(route, example, asked);
      const mutation = draw(() => mutationOf(body));
      const what = `${route.name} ${writeJson(body)} with ${mutation.what}`;
      const refusal = await refusalOf(await send('POST', route.path, mutation.body), what);
      if (refusal === null || (refusal.param === null && /nested|more than \d+ values/.test(refusal.message)))
        return;
      if (isOfTheToy(route, refusal)) return;
      // Whether an adapter is there depends on the requests before.
      if (/^lora_/.test(refusal.code ?? '')) return;
      // Many fields make a prompt longer; the refusal names the prompt.
      if (refusal.code === 'context_length_exceeded') return;
      const isNamed =
        isRelated(refusal.param ?? '', mutation.name) ||
        refusal.message.includes(`'${rootOf(mutation.name)}'`);
      expect(isNamed, `${what}: ${JSON.stringify(refusal)}`).toBe(true);
    });
    await fc.assert(property, OPTIONS);
  }
});

const isLong = (value: Json) => typeof value === 'string' || Array.isArray(value);

it('has an answer to bodies of 10 MB and to prompts of 100,000 tokens, by the name of what is too long', async () => {
  const long = 'Once upon a time, '.repeat(570_000);
  // Of all other names, and of one that an earlier route had: beyond every bound but that of the body, which is read before the route is known.
  const shorter = 'Once upon a time, '.repeat(6_000);
  const isSent = (name: string) => draws(1) > 1 || /^(prompt|input)$|content$/.test(name);
  const tried = new Set<string>();
  const tokens = new RawJson(`[${new Array(100_000).fill(65).join()}]`);
  for (const route of describedRoutes(api).filter(({ body }) => body !== null)) {
    const example: { [key: string]: Json } = { ...modelOf(route), ...route.body!.examples[0] };
    // Texts and lists: whatever else is one of these is refused by its type.
    for (const path of pathsOf(example).filter((one) => one.length > 0 && isLong(valueAt(example, one)))) {
      const name = nameOf(path);
      const text = tried.has(name) || !isSent(name) ? shorter : long;
      tried.add(name);
      for (const value of Array.isArray(valueAt(example, path)) ? [text, tokens] : [text]) {
        const what = `${route.name} with a long ${name}`;
        const body = changedAt(example, path, () => value);
        const refusal = await refusalOf(await send('POST', route.path, body), what);
        // Tokens are a text to /detokenize, however many; a name that is not looked at is one that long, too.
        if (refusal === null) continue;
        if (isOfTheToy(route, refusal)) continue;
        const isNamed = isRelated(refusal.param ?? '', name) || refusal.code === 'context_length_exceeded';
        expect(isNamed || refusal.status === 413, `${what}: ${JSON.stringify(refusal)}`).toBe(true);
      }
    }
  }
});

it('takes any bytes for a body, or refuses them', async () => {
  for (const route of describedRoutes(api).filter(({ body }) => body !== null)) {
    const bodies = route.body!.examples.map((example) =>
      Buffer.from(JSON.stringify({ ...modelOf(route), ...example })),
    );
    const bytes = fc.oneof(...bodies.map(bytesNear), fc.uint8Array({ maxLength: 60 }));
    const property = fc.asyncProperty(bytes, async (body) => {
      await refusalOf(
        await send('POST', route.path, body),
        `${route.name} ${Buffer.from(body).toString('latin1')}`,
      );
    });
    await fc.assert(property, OPTIONS);
  }
});

it('has an answer to any parameter of a path or a query', async () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 30 }),
    fc.constantFrom('..', '%', '\0', 'x'.repeat(5000)),
  );
  for (const route of describedRoutes(api)) {
    // Streams of statistics have no end of their own.
    if (route.path === '/stats/stream' || route.path === '/stats/models/stream') continue;
    const property = fc.asyncProperty(text, text, text, async (inPath, key, value) => {
      const wellFormed = (one: string) => encodeURIComponent(one.replaceAll(/\p{Surrogate}/gu, '?'));
      const path = route.path.replaceAll(/\{.+?\}/g, () => wellFormed(inPath));
      const names = [...route.query, wellFormed(key)].map((name) => `${name}=${wellFormed(value)}`);
      const body = route.method === 'POST' ? {} : undefined;
      const response = await send(route.method, `${path}?${names.join('&')}`, body);
      // Answers without a JSON body have another: the text of metrics, a page.
      if (response.status < 400) await response.text();
      else await refusalOf(response, `${route.method} ${path}?${names.join('&')}`);
    });
    await fc.assert(property, { ...OPTIONS, numRuns: Math.ceil(OPTIONS.numRuns / 4) });
  }
});

/** All that comes back for bytes on a socket of their own, whose client says nothing more. */
function exchange(bytes: Uint8Array): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    const socket = connect(port, '127.0.0.1', () => socket.end(bytes));
    socket.setEncoding('latin1').on('data', (data) => {
      text += data;
    });
    socket.on('error', () => {}).on('close', () => resolve(text));
  });
}

it('has at most a refusal for bytes that are nearly HTTP', async () => {
  const body = JSON.stringify({ model: 'chat', prompt: 'x', max_tokens: 2, stream: true });
  const head = 'Host: localhost\r\nContent-Type: application/json\r\n';
  const requests = [
    `POST /v1/completions HTTP/1.1\r\n${head}Content-Length: ${body.length}\r\n\r\n${body}`,
    `POST /v1/completions HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
    `GET /v1/models/chat HTTP/1.1\r\n${head}X-Request-Id: a\r\nConnection: keep-alive\r\n\r\nGET /live HTTP/1.0\r\n\r\n`,
    `OPTIONS /v1/models HTTP/1.1\r\n${head}Origin: http://localhost\r\nAccess-Control-Request-Method: GET\r\nExpect: 100-continue\r\n\r\n`,
  ];
  const bytes = fc.oneof(...requests.map((request) => bytesNear(Buffer.from(request))));
  const property = fc.asyncProperty(bytes, async (sent) => {
    const said = await exchange(sent);
    for (const [line, status] of said.matchAll(/^HTTP\/1\.1 (\d+) .*$/gm))
      expect(Number(status), `${Buffer.from(sent).toString('latin1')}: ${line}`).toBeLessThan(500);
  });
  await fc.assert(property, { ...OPTIONS, numRuns: 10 * OPTIONS.numRuns });
});

describe('after all of it', () => {
  it('a stream beside it was never another than alone, nothing is left, and memory is bounded', async () => {
    isOver = true;
    expect(await neighbour).toBeGreaterThan(0);
    await expectIdle(server.url);
    const { rss } = await memoryOf(server);
    expect(rss - firstRss).toBeLessThan(384 * 2 ** 20);
    expect(server.output().stderr).not.toMatch(/"level":50|request failed|Error:/);
    expect((await server.stop()).code).toBe(0);
  });
});
