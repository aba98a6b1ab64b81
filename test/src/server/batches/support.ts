import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach } from 'vitest';
import { Batches } from '../../../../src/server/batches/batches.js';
import { FileStore, type FileStoreOptions } from '../../../../src/server/files/file-store.js';
import type { SharedStores } from '../../../../src/server/files/record-store.js';
import { DEFAULT_STORE_LIMITS } from '../../../../src/server/openai/responses/response-store.js';
import { ResponseTasks } from '../../../../src/server/openai/responses/response-tasks.js';
import { SharedPlace } from '../../../../src/server/openai/responses/shared-place.js';
import { type ApiKey, ApiKeys } from '../../../../src/server/web/access/api-keys.js';
import type { Script } from '../../support/fake-engine.js';
import { say, type ToyOptions, type ToyServer, toyServer } from '../../support/toy-server.js';

export const LIMITS = { maxFileBytes: 100_000, maxBytes: 300_000, maxFiles: 20 };
const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

export interface StoringServer extends ToyServer {
  files: FileStore;
  batches: Batches;
  /** Ends it as `skein serve` does. */
  end(): Promise<void>;
}

export interface StoringOptions extends ToyOptions {
  folder?: string | null;
  /** What it shares with other servers. */
  stores?: SharedStores;
  limits?: FileStoreOptions['limits'];
  keys?: readonly ApiKey[];
  maxRequests?: number;
  /** False where the batches are started by the test. */
  isStarted?: boolean;
}

function sharedTasks({ responses: records, files: { contents }, presence }: SharedStores) {
  return { records, contents, presence };
}

/** A server over a scripted engine, with files and batches of its own. */
export function storingServer(script: Script = () => say('ok'), options: StoringOptions = {}): StoringServer {
  const {
    folder = null,
    stores: shared,
    limits = LIMITS,
    keys = [],
    maxRequests = 2,
    isStarted = true,
    ...ofToy
  } = options;
  const apiKeys = new ApiKeys(keys);
  const files = new FileStore({
    folder,
    shared: shared?.files ?? null,
    limits,
    isShared: () => apiKeys.isShared,
  });
  const ofOthers = shared && { records: shared.batches, presence: shared.presence };
  const batches = new Batches({ files, log, apiKeys, maxRequests, maxLineBytes: 20_000, shared: ofOthers });
  const tasks = shared && new ResponseTasks({ ...sharedTasks(shared), apiKeys, log });
  const place = shared && new SharedPlace(shared.responses, shared.presence, DEFAULT_STORE_LIMITS);
  const ofResponses = tasks && place && { tasks, place };
  const toy = toyServer(script, { ...ofToy, apiKeys, files, batches, shared: ofResponses });
  if (isStarted) tasks?.start();
  if (isStarted) batches.start();
  const end = async () => {
    await tasks?.leave();
    await batches.drain(0);
    await batches.close();
  };
  return { ...toy, files, batches, end };
}

/** Makes servers as storingServer does, which end after each test. */
export function storingServers(): typeof storingServer {
  const servers: StoringServer[] = [];
  afterEach(async () => {
    for (const server of servers.splice(0)) await server.end();
  });
  return (...args) => {
    const server = storingServer(...args);
    servers.push(server);
    return server;
  };
}

export interface BatchAnswer {
  id: string;
  status: string;
  input_file_id: string;
  output_file_id: string | null;
  error_file_id: string | null;
  errors: { data: { code: string; message: string; line: number | null }[] } | null;
  request_counts: { total: number; completed: number; failed: number };
  [name: string]: unknown;
}

export const asKey = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });

/** A form with a file. */
export function formOf(
  content: string,
  fields: Record<string, string> = { purpose: 'batch' },
  name = 'in.jsonl',
) {
  const form = new FormData();
  for (const [field, value] of Object.entries(fields)) form.append(field, value);
  form.append('file', new File([content], name));
  return form;
}

export async function upload(
  { app }: Pick<ToyServer, 'app'>,
  content: string,
  fields?: Record<string, string>,
  init: RequestInit = {},
): Promise<{ id: string; [name: string]: unknown }> {
  const response = await app.request('/v1/files', { ...init, method: 'POST', body: formOf(content, fields) });
  const body = (await response.json()) as { id: string };
  if (response.status !== 200) throw new Error(JSON.stringify(body));
  return body;
}

/** A line that asks for a completion. */
export const line = (custom_id: string, body: object = {}, url = '/v1/completions') =>
  JSON.stringify({ custom_id, method: 'POST', url, body: { prompt: custom_id, max_tokens: 4, ...body } });

export async function begin(
  server: ToyServer,
  lines: readonly string[],
  more: object = {},
  init: RequestInit = {},
): Promise<BatchAnswer> {
  const { id } = await upload(server, lines.join('\n'), undefined, init);
  const asked = { input_file_id: id, endpoint: '/v1/completions', completion_window: '24h', ...more };
  return (await (await server.post('/v1/batches', asked, init)).json()) as BatchAnswer;
}

export async function batchOf(server: ToyServer, id: string, init: RequestInit = {}): Promise<BatchAnswer> {
  return (await (await server.get(`/v1/batches/${id}`, init)).json()) as BatchAnswer;
}

/** The batch once it is in one of these states. */
export async function until(
  server: ToyServer,
  id: string,
  isSo: (batch: BatchAnswer) => boolean = ({ status }) =>
    ['completed', 'failed', 'cancelled', 'expired'].includes(status),
  init: RequestInit = {},
): Promise<BatchAnswer> {
  const givenUpMs = performance.now() + 120_000;
  for (;;) {
    const batch = await batchOf(server, id, init);
    if (isSo(batch)) return batch;
    if (performance.now() > givenUpMs) throw new Error(`It stays as it is: ${JSON.stringify(batch)}`);
    await nextTurn();
  }
}

export interface AnswerLine {
  custom_id: string;
  response: { status_code: number; request_id: string; body: Record<string, unknown> } | null;
  error: { code: string } | null;
}

/** The lines of a file of answers, by custom_id; an id twice is an error. */
export async function answersOf(server: ToyServer, id: string | null, init: RequestInit = {}) {
  const answers = new Map<string, AnswerLine>();
  if (id === null) return answers;
  const text = await (await server.get(`/v1/files/${id}/content`, init)).text();
  for (const one of text.trimEnd().split('\n')) {
    const parsed = JSON.parse(one) as AnswerLine;
    if (answers.has(parsed.custom_id)) throw new Error(`${parsed.custom_id} was answered twice.`);
    answers.set(parsed.custom_id, parsed);
  }
  return answers;
}
