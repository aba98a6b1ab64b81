import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { LineFile } from './batch-files.js';
import { type BadLine, type BatchRequest, isObject, parseBatchLine } from './batch-line.js';
import { splitLines } from './split-lines.js';

/** Answers a request as the server would. */
export type Answer = (request: Request) => Response | Promise<Response>;

export interface BatchOptions {
  input: string;
  output: LineFile;
  /** Receives failures: the server's refusals, and lines that are no requests. */
  errors: LineFile;
  /** Each custom_id that was answered before. */
  answered: ReadonlySet<string>;
  answer: Answer;
  /** Number of requests at once. */
  concurrency: number;
  maxLineBytes: number;
  /** Signal whose abort ends the run: requests in progress are dropped, and asked again by the next run. */
  signal: AbortSignal;
  onProgress?: (counts: BatchCounts) => void;
}

export interface BatchCounts {
  /** Number of requests answered by this run. */
  completed: number;
  failed: number;
  /** Number of requests answered by earlier runs. */
  skipped: number;
  promptTokens: number;
  completionTokens: number;
}

/** Milliseconds to wait where the queue is full. */
const RETRY_MS = 100;

/**
 * Answers every line of a batch file that has no answer yet, `concurrency` at once, in any order.
 * @throws BatchFileError where a file cannot be written; the signal's reason where that was aborted. In both cases the
 * next run can go on from the files.
 */
export async function runBatch(options: BatchOptions): Promise<BatchCounts> {
  const counts: BatchCounts = { completed: 0, failed: 0, skipped: 0, promptTokens: 0, completionTokens: 0 };
  const seen = new Set<string>();
  const underWay = new Set<Promise<void>>();
  const stop = new AbortController();
  const signal = AbortSignal.any([options.signal, stop.signal]);
  let failure: unknown = null;
  const start = (request: BatchRequest) => {
    const work = answerOne(request, options, counts, signal)
      .catch((error: unknown) => {
        failure ??= error;
        stop.abort(error);
      })
      .finally(() => underWay.delete(work));
    underWay.add(work);
  };
  for await (const line of splitLines(options.input, options.maxLineBytes)) {
    if (signal.aborted) break;
    const parsed = parseBatchLine(line, options.maxLineBytes);
    if (parsed === null) continue;
    const bad = 'message' in parsed ? parsed : duplicateOf(parsed, line.number, seen);
    if (bad !== null) fail(options, counts, badLineOf(bad));
    else if (options.answered.has((parsed as BatchRequest).customId)) counts.skipped++;
    else start(parsed as BatchRequest);
    if (bad !== null) options.onProgress?.(counts);
    while (underWay.size >= options.concurrency) await Promise.race(underWay);
  }
  await Promise.all(underWay);
  if (failure !== null) throw failure;
  options.signal.throwIfAborted();
  return counts;
}

function duplicateOf({ customId }: BatchRequest, line: number, seen: Set<string>): BadLine | null {
  if (!seen.has(customId)) {
    seen.add(customId);
    return null;
  }
  const message = `Line ${line} has the custom_id ${JSON.stringify(customId)} of a line before it; each needs its own.`;
  return { line, customId, code: 'duplicate_custom_id', message };
}

async function answerOne(
  { customId, url, body }: BatchRequest,
  options: BatchOptions,
  counts: BatchCounts,
  signal: AbortSignal,
): Promise<void> {
  const text = JSON.stringify(body);
  let response: Response;
  for (;;) {
    response = await options.answer(
      new Request(`http://batch${url}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: text,
        signal,
      }),
    );
    // The queue is full, or the engine is restarting: it will have room later.
    if (response.status !== 429 && response.status !== 503) break;
    await response.body?.cancel();
    await delay(RETRY_MS, null, { signal });
  }
  const answer: unknown = await response.json();
  signal.throwIfAborted();
  const line = {
    id: `batch_req_${randomUUID()}`,
    custom_id: customId,
    response: {
      status_code: response.status,
      request_id: response.headers.get('x-request-id') ?? '',
      body: answer,
    },
    error: null,
  };
  if (response.status === 200) {
    options.output.write(line);
    counts.completed++;
    addUsage(counts, answer);
  } else {
    fail(options, counts, line);
  }
  options.onProgress?.(counts);
}

function addUsage(counts: BatchCounts, answer: unknown): void {
  if (!isObject(answer) || !isObject(answer.usage)) return;
  const { prompt_tokens, input_tokens, completion_tokens, output_tokens } = answer.usage;
  counts.promptTokens += Number(prompt_tokens ?? input_tokens ?? 0);
  counts.completionTokens += Number(completion_tokens ?? output_tokens ?? 0);
}

function fail(options: BatchOptions, counts: BatchCounts, line: unknown): void {
  options.errors.write(line);
  counts.failed++;
}

function badLineOf({ line, customId, code, message }: BadLine) {
  return {
    id: `batch_req_${randomUUID()}`,
    custom_id: customId,
    response: null,
    error: { code, message, line },
  };
}
