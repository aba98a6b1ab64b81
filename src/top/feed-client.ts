import { EventSourceParserStream } from 'eventsource-parser/stream';
import { AskingError } from '../asking/asker.js';
import { refusalOf } from '../asking/refusal.js';
import { connectionProblem } from '../asking/server-address.js';

/** An event of a server's /stats and /stats/stream. No field is relied on: another version may have other fields. */
export type FeedEvent =
  | { kind: 'stats'; data: Record<string, unknown> }
  | { kind: 'formation'; data: Record<string, unknown> }
  /** The server is away; another attempt follows. */
  | { kind: 'lost'; problem: string };

export interface FeedOptions {
  /** The server's address, as serverAddress gives it. */
  address: string;
  apiKey: string | undefined;
  /** Name of the model; default: all models that generate text. */
  model: string | undefined;
  retryDelayMs?: number;
}

const RETRY_DELAY_MS = 1_000;
const CONNECT_LIMIT_MS = 10_000;
/** Milliseconds of silence after which the server counts as away: it sends something every five seconds. */
const SILENCE_LIMIT_MS = 16_000;

/**
 * Watches a server until the signal is aborted; if it goes away, waits until it is back.
 * @throws AskingError where it is not there at the beginning, refuses, or is no Skein server.
 */
export async function* watchFeed(options: FeedOptions, signal: AbortSignal): AsyncGenerator<FeedEvent> {
  let stats = await readStats(options, signal);
  for (;;) {
    yield { kind: 'stats', data: stats };
    let problem = 'the server has ended its stream';
    try {
      yield* readStream(options, signal);
    } catch (error) {
      if (signal.aborted) return;
      problem = error instanceof AskingError ? error.message : connectionProblem(error);
    }
    for (;;) {
      if (signal.aborted) return;
      yield { kind: 'lost', problem };
      await pause(options.retryDelayMs ?? RETRY_DELAY_MS, signal);
      if (signal.aborted) return;
      try {
        stats = await readStats(options, signal);
        break;
      } catch (error) {
        if (!(error instanceof AskingError)) throw error;
        problem = error.message;
      }
    }
  }
}

async function readStats(options: FeedOptions, signal: AbortSignal): Promise<Record<string, unknown>> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(CONNECT_LIMIT_MS)]);
  const response = await get('/stats', options, limit);
  const { address } = options;
  const text = await response.text().catch(() => '');
  const body = parsed(text);
  // Another server has something else at this path, or nothing, and its error has no code of Skein.
  const isOurs =
    body !== null && typeof body === 'object' && ('Iteration Counter' in body || 'error' in body);
  const isAbsent = response.status === 404 && body?.error?.code !== 'model_not_found';
  if (response.status !== 401 && (!isOurs || isAbsent)) {
    throw new AskingError(`${address} answers, but is no Skein server: it shows no statistics at /stats.`);
  }
  if (!response.ok) throw await refusalOf(new Response(text, { status: response.status }), address);
  return body!;
}

function parsed(text: string): (Record<string, unknown> & { error?: { code?: unknown } }) | null {
  try {
    const body = JSON.parse(text);
    return typeof body === 'object' ? body : null;
  } catch {
    return null;
  }
}

async function* readStream(options: FeedOptions, signal: AbortSignal): AsyncGenerator<FeedEvent> {
  const silence = new AbortController();
  const watch = setTimeout(() => silence.abort(), SILENCE_LIMIT_MS);
  const both = AbortSignal.any([signal, silence.signal]);
  try {
    const response = await get('/stats/stream', options, both);
    if (!response.ok || response.body === null) throw await refusalOf(response, options.address);
    const events = response.body
      .pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>, { signal: both })
      .pipeThrough(new EventSourceParserStream());
    for await (const { event, data } of events) {
      watch.refresh();
      if (event === 'stats' || event === 'formation') yield { kind: event, data: JSON.parse(data) };
    }
  } catch (error) {
    if (silence.signal.aborted) throw new AskingError('nothing comes from the server any more');
    throw error;
  } finally {
    clearTimeout(watch);
    silence.abort();
  }
}

async function get(
  path: string,
  { address, apiKey, model }: FeedOptions,
  signal: AbortSignal,
): Promise<Response> {
  const query = model === undefined ? '' : `?model=${encodeURIComponent(model)}`;
  const headers: Record<string, string> = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  try {
    return await fetch(`${address}${path}${query}`, { headers, signal });
  } catch (error) {
    throw new AskingError(`${address} cannot be reached: ${connectionProblem(error)}`);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    function done() {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    }
    signal.addEventListener('abort', done);
  });
}
