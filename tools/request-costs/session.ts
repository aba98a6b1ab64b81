import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Neighbour, send } from './asked.js';
import { DEAR_ROUTES, type ModelSizes } from './dear-fields.js';
import { DearRequests } from './dear-requests.js';
import type { DearStore } from './dear-stores.js';
import { describedFields, describedItems } from './described-fields.js';
import { writeClassifier, writeTokenModel } from './first-models.js';
import type { GuideCost, HostileGuide } from './hostile-guides.js';
import {
  type Baseline,
  type Cost,
  costOf,
  type DearRequest,
  leastCost,
  leastOf,
  type MeasuredCost,
  NO_BASELINE,
  tokenMsOf,
} from './measure.js';
import { MeteredServer } from './metered-server.js';

/** A model to measure with, as --model has it, and its sizes. */
export interface MeasuredModel {
  path: string;
  sizes: ModelSizes;
}

const fromRoot = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
export const DEMO_MODEL: MeasuredModel = {
  path: fromRoot('models/demo/gosling'),
  sizes: { vocabSize: 2048, maxSeqLen: 1024 },
};
export const smollm2 = (path: string): MeasuredModel => ({
  path,
  sizes: { vocabSize: 49_152, maxSeqLen: 8192 },
});

/** How often a request is measured at most. */
const MAX_TIMES = 6;
/** Requests after which code is compiled and memory that is used again and again is there. */
const WARMING_UP = 6;
/** Crowds of which the least one counts; each takes as long as all the other requests of a round. */
const CROWDS = 3;

/** A server with a client that streams tokens all the time, next to which requests are measured. */
export class CostSession {
  /** Fields by the path of their route, as the server describes them. */
  readonly fields: ReadonlyMap<string, readonly string[]>;
  /** Types of items that a request may have. */
  readonly itemTypes: readonly string[];
  readonly requests: DearRequests;
  readonly #server: MeteredServer;
  readonly #neighbour: Neighbour;
  readonly #baseline: Baseline;

  private constructor(
    server: MeteredServer,
    neighbour: Neighbour,
    baseline: Baseline,
    requests: DearRequests,
    fields: ReadonlyMap<string, readonly string[]>,
    itemTypes: readonly string[],
  ) {
    this.#server = server;
    this.#neighbour = neighbour;
    this.#baseline = baseline;
    this.requests = requests;
    this.fields = fields;
    this.itemTypes = itemTypes;
  }

  /** Starts the server with this model, and small encoders for the routes that need one. */
  static async open(
    { path, sizes }: MeasuredModel,
    cacheDir: string,
    environment: NodeJS.ProcessEnv,
  ): Promise<CostSession> {
    const models = {
      chat: path,
      vectors: fromRoot('test/fixtures/tiny-bert-mean'),
      scores: fromRoot('test/fixtures/tiny-bert-score'),
      tokens: writeTokenModel(fromRoot('test/fixtures/tiny-bert-cls'), join(cacheDir, 'tokens'), 1024),
      classes: writeClassifier(fromRoot('test/fixtures/tiny-bert-score'), join(cacheDir, 'classifier'), 2000),
    };
    const flags = Object.entries(models).flatMap(([name, model]) => ['--model', `${name}=${model}`]);
    // A single computing thread: its processor time is all that an iteration takes.
    const more = [
      '--threads',
      '1',
      '--max-beam-width',
      '4',
      '--kv-cache-tokens',
      String(8 * sizes.maxSeqLen),
      '--allow-runtime-lora',
      '--lora-dir',
      fromRoot('test/fixtures'),
      '--trust-request-chat-template',
    ];
    const server = await MeteredServer.start([...flags, ...more, '--cache-dir', cacheDir], environment);
    const fields = await describedFields(server.url);
    const neighbour = new Neighbour(server.url, 'chat', sizes.maxSeqLen);
    const requests = new DearRequests(sizes, modelOf, fields);
    const crowds: Cost[] = [];
    for (let i = 0; i < WARMING_UP; i++) {
      for (const path of Object.keys(DEAR_ROUTES)) await costOf(server, requests.plain(path), NO_BASELINE);
      if (i >= WARMING_UP - CROWDS) crowds.push(await costOf(server, requests.crowd(i), NO_BASELINE));
    }
    const fullMs = leastOf(crowds).iterationMs;
    const longFullMs = (await costOf(server, requests.longCrowd(), NO_BASELINE)).iterationMs;
    const baseline = { tokenMs: await tokenMsOf(server), fullMs, longFullMs };
    return new CostSession(server, neighbour, baseline, requests, fields, await describedItems(server.url));
  }

  /** Least cost of the request over its repetitions, and the bounds that it exceeds. */
  measure(request: DearRequest): Promise<MeasuredCost> {
    return leastCost(this.#server, Array<DearRequest>(MAX_TIMES).fill(request), this.#baseline);
  }

  /**
   * Fills the server's store. @returns the most expensive requests that take from it
   *
   * @param isFull false: one conversation is added to what is there, the greatest one that a request can take from
   */
  async fill({ name, fill }: DearStore, isFull = true): Promise<DearRequest[]> {
    const store = async (path: string, body: object) => {
      const { status, ended } = await send(this.#server.url, path, JSON.stringify(body));
      const answer = await ended;
      if (status === 200) return /"id":"(\w+)"/.exec(answer)![1]!;
      throw new Error(
        `The store was not filled with ${name}: ${path} was answered with ${status}: ${answer}`,
      );
    };
    const requests = await fill(store, 'chat', isFull);
    return requests.map((request) => ({ ...request, name: `${request.name} of ${name}` }));
  }

  /**
   * Effect of clients with this guide on the neighbour, one request after the other for `seconds` seconds.
   */
  async beside({ what, fields }: HostileGuide, seconds: number): Promise<GuideCost> {
    const body = JSON.stringify({
      model: 'chat',
      prompt: 'Once',
      max_tokens: 60,
      temperature: 1.5,
      n: 8,
      ...fields,
    });
    const untilMs = performance.now() + 1000 * seconds;
    const attack = async () => {
      while (performance.now() < untilMs) await (await send(this.#server.url, '/v1/completions', body)).ended;
    };
    await this.#server.noted(true);
    this.#neighbour.takeGap();
    await Promise.all([attack(), attack(), attack()]);
    const { holdNs, iterationNs } = await this.#server.noted();
    return { what, iterationMs: iterationNs / 1e6, holdMs: holdNs / 1e6, gapMs: this.#neighbour.takeGap() };
  }

  async close(): Promise<void> {
    await this.#neighbour.stop();
    await this.#server.stop();
  }
}

function modelOf(path: string): string {
  if (['/v1/embeddings', '/v2/embed', '/api/embed', '/api/embeddings'].includes(path)) return 'vectors';
  if (['/pooling', '/embed_sparse', '/embed_all'].includes(path)) return 'tokens';
  if (path === '/classify' || path === '/predict') return 'classes';
  return path.endsWith('/rerank') || path === '/v1/score' ? 'scores' : 'chat';
}
