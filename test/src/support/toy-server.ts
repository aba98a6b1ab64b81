import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { createParser } from 'eventsource-parser';
import { type AppOptions, createApp } from '../../../src/server/app/app.js';
import { ServerMetrics } from '../../../src/server/metrics/families/server-metrics.js';
import { ServerState } from '../../../src/server/web/server-state.js';
import { LiveModels } from '../../../src/serving/model-directory.js';
import { ModelState } from '../../../src/serving/model-state.js';
import type { ServedGenerator } from '../../../src/serving/served-model.js';
import { FakeEngine, type Script, type Step } from './fake-engine.js';
import { ToldStatistics } from './served-models.js';
import { bytesOf, END_TOKEN, TOY_VOCAB, toyCodec } from './toy-codec.js';

/** Steps that say a text, one token each, and stop. */
export function say(text: string): Step[] {
  return [...bytesOf(text).map((token) => ({ tokens: [token] })), { finish: 'stop' }];
}

export function toyModel(engine: FakeEngine, fields: Partial<ServedGenerator> = {}): ServedGenerator {
  return {
    kind: 'generator',
    id: 'toy',
    aliases: [],
    created: 1_700_000_000,
    state: new ModelState(),
    statistics: new ToldStatistics(() => {
      return { running: engine.active, waiting: 0, maxBlocks: 10, usedBlocks: engine.active };
    }),
    fingerprint: 'fp_toy',
    resetCache: async () => 7,
    watch: {
      onStats: () => () => {},
      statsJson: () => '{"Iteration Counter":0}',
      watchFormation: () => () => {},
    },
    defaultMaxTokens: 64,
    codec: toyCodec,
    engine,
    vocabSize: TOY_VOCAB,
    maxInputLen: 200,
    maxSeqLen: 256,
    endTokens: [END_TOKEN],
    ...fields,
  };
}

export interface ToyServer {
  engine: FakeEngine;
  /** At first the toy alone. */
  models: LiveModels;
  app: ReturnType<typeof createApp>;
  state: ServerState;
  metrics: ServerMetrics;
  /** POST of a JSON body (or of text as it is), without a socket. */
  post(path: string, body: unknown, init?: RequestInit): Promise<Response>;
  get(path: string, init?: RequestInit): Promise<Response>;
}

export interface ToyOptions extends Partial<Omit<AppOptions, 'models'>> {
  maxActive?: number;
  model?: Partial<ServedGenerator>;
}

/** The whole HTTP side over a scripted engine. */
export function toyServer(script: Script, options: ToyOptions = {}): ToyServer {
  const { maxActive, model: fields, ...appOptions } = options;
  const engine = new FakeEngine(script, maxActive);
  const model = toyModel(engine, fields);
  const models = new LiveModels();
  models.add(model);
  const { state = new ServerState(models) } = options;
  const metrics = new ServerMetrics(models);
  const app = createApp({
    state,
    metrics,
    version: '0.0.0-test',
    log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
    ...appOptions,
    models,
  });
  return {
    engine,
    models,
    app,
    state,
    metrics,
    post: async (path, body, init = {}) => {
      const headers = { 'content-type': 'application/json', ...init.headers };
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      return app.request(path, { ...init, method: 'POST', headers, body: text });
    },
    get: async (path, init = {}) => app.request(path, init),
  };
}

/** The same over a real socket. */
export async function listen(
  toy: Pick<ToyServer, 'app'>,
): Promise<{ url: string; close: () => Promise<void> }> {
  const server = createAdaptorServer({ fetch: toy.app.fetch });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        if ('closeAllConnections' in server) server.closeAllConnections();
      }),
  };
}

export interface Frames {
  /** Payloads of the data frames in order, [DONE] included. */
  data: string[];
  comments: string[];
}

/** Reads a whole stream of server-sent events. */
export async function readFrames(response: Response): Promise<Frames> {
  const frames: Frames = { data: [], comments: [] };
  const parser = createParser({
    onEvent: (event) => frames.data.push(event.data),
    onComment: (comment) => frames.comments.push(comment),
  });
  parser.feed(await response.text());
  return frames;
}

/** JSON of all data frames before [DONE]. */
export async function readChunks<T>(response: Response): Promise<T[]> {
  const { data } = await readFrames(response);
  return data.filter((text) => text !== '[DONE]').map((text) => JSON.parse(text) as T);
}
