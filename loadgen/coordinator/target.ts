import type { Agent, RequestInit, Response } from 'undici';
import type { Backend } from '../backends/backend.js';
import { drawWords, type TokenScale } from '../data/words.js';
import { InputError, TargetError } from '../errors.js';
import { Random } from '../random.js';
import { AnswerReader } from '../worker/answer-reader.js';
import { undici } from '../worker/connections.js';
import type { TlsOptions } from '../worker/frames.js';
import { codeOf } from '../worker/network-faults.js';

const PROBE_TIMEOUT_MS = 120_000;
/** Numbers of words of the two prompts whose token counts determine the scale. */
const PROBE_WORDS = [8, 200] as const;
/** Number of the random stream of probes: each probe has other words, so that no cache of prompts answers. */
const PROBES = 9;

export interface Target {
  origin: string;
  prefix: string;
  headers: Readonly<Record<string, string>>;
  tls: TlsOptions;
}

/** Agents for each way to check certificates. */
const agents = new WeakMap<TlsOptions, Agent>();

/** Sends a request that is no part of the load. */
export function fetchFrom({ tls }: Target, url: string, init: RequestInit): Promise<Response> {
  const dispatcher = agents.get(tls) ?? new undici.Agent({ connect: { ...tls } });
  agents.set(tls, dispatcher);
  return undici.fetch(url, { ...init, dispatcher });
}

/**
 * Name of the first model in /v1/models.
 * @throws TargetError where no server answers, InputError where the answer names none, so that --model is
 * needed.
 */
export async function firstModel(target: Target): Promise<string> {
  const url = `${target.origin}${target.prefix}/v1/models`;
  const response = await ask(target, url, { headers: target.headers });
  const text = await response.text();
  if (response.ok) {
    try {
      const { data } = JSON.parse(text) as { data?: { id?: unknown }[] };
      const id = data?.[0]?.id;
      if (typeof id === 'string') return id;
    } catch {}
  }
  if (response.status === 401) throw new InputError(`${url} wants an API key that it knows (apiKey).`);
  throw new InputError(
    `Which model? ${url} answers ${response.status} and names none; give it with the option model.`,
  );
}

/**
 * Sends one short request like those of the run. Returns the number of prompt tokens that the server counted; null
 * where it does not count.
 * @throws TargetError with the server's words where it refuses.
 */
export async function probe(target: Target, backend: Backend, prompt: string): Promise<number | null> {
  const url = `${target.origin}${backend.path}`;
  const response = await ask(target, url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...target.headers },
    body: backend.body({ prompt, maxTokens: 1 }, []),
  });
  const bytes = Buffer.from(await response.arrayBuffer());
  if (!response.ok) {
    throw new TargetError(
      `A first request to ${url} was answered with ${response.status}: ${bytes.toString().slice(0, 500)}`,
    );
  }
  const isStream = response.headers.get('content-type')?.includes('text/event-stream') === true;
  const reader = new AnswerReader(backend, isStream, false);
  reader.feed(bytes);
  reader.end();
  const { fault } = reader;
  if (fault !== null && fault.outcome !== 'empty') {
    throw new TargetError(`The answer of ${url} to a first request is ${fault.outcome}: ${fault.message}`);
  }
  return Number.isNaN(reader.promptTokens) ? null : reader.promptTokens;
}

/**
 * Scale by which the server counts words of random prompts as tokens; null where it does not count. @throws
 * TargetError.
 */
export async function calibrate(target: Target, backend: Backend, seed: number): Promise<TokenScale | null> {
  const counts: number[] = [];
  for (const [i, words] of PROBE_WORDS.entries()) {
    const tokens = await probe(target, backend, drawWords(words, new Random(seed, PROBES, i)));
    if (tokens === null) return null;
    counts.push(tokens);
  }
  const [few, many] = PROBE_WORDS;
  const perWord = (counts[1]! - counts[0]!) / (many - few);
  // Words cost at least a part of a token; a smaller value is no count.
  if (!(perWord > 0.1)) return null;
  return { fixed: Math.round(counts[0]! - perWord * few), perWord };
}

async function ask(target: Target, url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetchFrom(target, url, { ...init, signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
  } catch (error) {
    const { cause, message } = error as Error;
    const inner = cause instanceof AggregateError ? cause.errors[0] : cause;
    const reason = inner instanceof Error ? inner.message : message;
    const isDistrusted = inner instanceof Error && /CERT|SELF_SIGNED|UNABLE_TO_/.test(codeOf(inner));
    const advice = isDistrusted ? ' Give its authority with the option ca, or take any with insecure.' : '';
    throw new TargetError(`${url} does not answer: ${reason}.${advice}`, { cause: error });
  }
}
