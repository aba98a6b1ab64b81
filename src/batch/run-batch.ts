import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { writtenJson } from '../../base/written-json.js';
import { type Answered, BatchFileError } from './batch-files.js';
import { type BadLine, type BatchRequest, type LineRules, parseBatchLine } from './batch-line.js';
import { type BatchUsage, NO_USAGE, plus, usageInText } from './batch-usage.js';
import { SeenIds } from './seen-ids.js';
import type { Slots } from './slots.js';
import { splitLines } from './split-lines.js';

/** Answers a request as the server would. */
export type Answer = (request: Request) => Response | Promise<Response>;

/** Where lines of JSON go. */
export interface Lines {
  write(json: string): Promise<void>;
}

export interface BatchOptions {
  /** Path of the input, or its bytes. */
  input: string | AsyncIterable<Buffer>;
  output: Lines;
  /** Receives failures: the server's refusals, and lines that are no requests. */
  errors: Lines;
  /** Each custom_id that was answered before. */
  answered: Pick<Answered, 'customIds'>;
  answer: Answer;
  /** Places for the requests that run at once. */
  slots: Slots;
  rules: LineRules;
  /** Signal whose abort ends the run: requests in progress are dropped, and asked again by the next run. */
  signal: AbortSignal;
  /** Signal whose abort lets the requests in progress end, and begins no others. Default: there is none. */
  pause?: AbortSignal;
  onProgress?: (counts: BatchCounts) => void;
}

export interface BatchCounts {
  /** Number of requests answered by this run. */
  completed: number;
  failed: number;
  /** Number of requests answered by earlier runs. */
  skipped: number;
  /** What the answers of this run took. */
  usage: BatchUsage;
}

/** Milliseconds to wait where the queue is full. */
const RETRY_MS = 100;
/** The same where a limit of the key is used up, at most: what others do not need comes back at any time. */
const MAX_RETRY_MS = 10_000;

/**
 * Answers every line of a batch file that has no answer yet, as many at once as there are slots, in any order.
 * @throws BatchFileError where a file cannot be written; the reason of the signal or the pause where one was
 * aborted before the end. In these cases the next run can continue from the files.
 */
export async function runBatch(options: BatchOptions): Promise<BatchCounts> {
  const counts: BatchCounts = { completed: 0, failed: 0, skipped: 0, usage: NO_USAGE };
  const seen = new SeenIds();
  const underWay = new Set<Promise<void>>();
  const stop = new AbortController();
  const signal = AbortSignal.any([options.signal, stop.signal]);
  const goOn = AbortSignal.any([signal, ...(options.pause === undefined ? [] : [options.pause])]);
  const start = (request: BatchRequest, release: () => void) => {
    const work = answerOne(request, options, counts, signal)
      .catch((error: unknown) => {
        // What was not answered while the run pauses is asked again by the next one.
        if (!options.pause?.aborted || error instanceof BatchFileError) stop.abort(error);
      })
      .finally(() => {
        release();
        underWay.delete(work);
      });
    underWay.add(work);
  };
  try {
    for await (const line of splitLines(options.input, options.rules.maxLineBytes)) {
      goOn.throwIfAborted();
      const read = parseBatchLine(line, options.rules);
      if (read === null) continue;
      const parsed = seen.checked(read, line.number);
      if ('message' in parsed) {
        await options.errors.write(badLine(parsed));
        counts.failed++;
        options.onProgress?.(counts);
      } else if (options.answered.customIds.has(parsed.customId)) counts.skipped++;
      else start(parsed, await options.slots.take(goOn));
    }
    goOn.throwIfAborted();
  } catch (error) {
    if (error !== options.pause?.reason) stop.abort(error);
    throw error;
  } finally {
    await Promise.all(underWay);
  }
  goOn.throwIfAborted();
  return counts;
}

async function answerOne(
  request: BatchRequest,
  options: BatchOptions,
  counts: BatchCounts,
  signal: AbortSignal,
): Promise<void> {
  const response = await answerOf(request, options, signal);
  const text = inOneLine(await response.text());
  signal.throwIfAborted();
  const isAnswered = response.status === 200;
  const file = isAnswered ? options.output : options.errors;
  await file.write(answerLine(request.customId, response, text));
  if (isAnswered) {
    counts.completed++;
    counts.usage = plus(counts.usage, usageInText(text));
  } else counts.failed++;
  options.onProgress?.(counts);
}

/** Asks until the request is answered or refused for good. */
async function answerOf(
  { url, body }: BatchRequest,
  { answer, pause }: BatchOptions,
  signal: AbortSignal,
): Promise<Response> {
  const text = writtenJson(body);
  for (;;) {
    const response = await answer(
      new Request(`http://localhost${url}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: text,
        signal,
      }),
    );
    // The queue is full, or the engine is restarting: it will have room later.
    if (response.status !== 429 && response.status !== 503) return response;
    // It is more than its key may ever have.
    if (response.headers.get('x-should-retry') === 'false') return response;
    await response.body?.cancel();
    pause?.throwIfAborted();
    await delay(waitMs(response.headers), null, { signal });
  }
}

/** Milliseconds until a request is asked again: where a limit of its key is used up, as long as that lasts, but for a look now and then. */
function waitMs(headers: Headers): number {
  const isLimit = headers.has('x-ratelimit-limit-tokens') || headers.has('x-ratelimit-limit-requests');
  const seconds = Number(headers.get('retry-after') ?? 0);
  return isLimit && seconds > 0 ? Math.min(1000 * seconds, MAX_RETRY_MS) : RETRY_MS;
}

/** Answers are written as they came, since those of many tokens take long to parse. */
function answerLine(customId: string, { status, headers }: Response, body: string): string {
  const id = JSON.stringify(`batch_req_${randomUUID()}`);
  const requestId = JSON.stringify(headers.get('x-request-id') ?? '');
  const warning = headers.get('x-skein-warning');
  const warnings = warning === null ? '' : `"warnings":[${JSON.stringify(warning)}],`;
  return (
    `{"id":${id},"custom_id":${JSON.stringify(customId)},"response":{"status_code":${status},` +
    `"request_id":${requestId},${warnings}"body":${body}},"error":null}`
  );
}

function inOneLine(json: string): string {
  return json.includes('\n') ? JSON.stringify(JSON.parse(json)) : json;
}

function badLine({ line, customId, code, message }: BadLine): string {
  return errorLine(customId, { code, message, line });
}

/** A line for a request that was not asked. */
export function errorLine(
  customId: string | null,
  error: { code: string; message: string; line?: number },
): string {
  return JSON.stringify({ id: `batch_req_${randomUUID()}`, custom_id: customId, response: null, error });
}
