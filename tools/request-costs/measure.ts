import { setTimeout as sleep } from 'node:timers/promises';
import { send } from './asked.js';
import { calibrated, exceeded } from './bounds.js';
import type { MeteredServer } from './metered-server.js';

/** A request to be measured. */
export interface DearRequest {
  /** Such as `/v1/completions stop`. */
  name: string;
  path: string;
  /** null: it is a GET. */
  body: Buffer | null;
  /** Bytes that it takes out of what is stored, or becomes when it is inflated, which count like those of a body. Default 0. */
  takenBytes?: number;
  /** The coding that the body is in. Default: none. */
  contentEncoding?: string;
  /** It has several sequences over a prompt as long as the context: each of its iterations attends to all of them. */
  isLong: boolean;
  /** Bodies of requests to the same path in the same moment. Default: none. */
  beside?: readonly Buffer[];
  /** True where its memory has a bound of its own, and is not measured. Default: false. */
  hasOwnMemory?: boolean;
}

/** Cost of a request. Processor time in milliseconds, memory in bytes. */
export interface Cost {
  name: string;
  /** Bytes of its body, and of what it takes out of what is stored. */
  bodyBytes: number;
  status: number;
  /** The refusal, if it was refused. */
  answer: string;
  /** Time of the main thread up to the first byte of the answer, less what the neighbour costs in that time. */
  admissionMs: number;
  /** Longest time for which the main thread did nothing else, up to the end. */
  holdMs: number;
  /** Longest time of the engine's thread between two of the neighbour's tokens. */
  iterationMs: number;
  /** Time of an iteration that is as full as it may be: that much is no request's fault. */
  fullMs: number;
  /** Greatest memory of the process beyond what it had before. */
  memoryBytes: number;
}

/** Cost of the server without the requests that are measured. */
export interface Baseline {
  /** Processor time of the main thread for a token of the neighbour. */
  tokenMs: number;
  /** Processor time of the engine's thread for an iteration of as many sequences as it takes. */
  fullMs: number;
  /** The same where the context of each is as long as it may be. */
  longFullMs: number;
}

/** Before anything was measured. */
export const NO_BASELINE: Baseline = { tokenMs: 0, fullMs: 0, longFullMs: 0 };

/** A cost, and the bounds that it exceeds in words. */
export interface MeasuredCost {
  cost: Cost;
  exceeded: string[];
}

/** Longest time for which the answer of a request is read before its client leaves. */
const MAX_READ_MS = 4000;
/** Number of iterations within which the remaining work for a request that left is done. */
const ITERATIONS_AFTER = 8;
/** Number of iterations over which the cost of a neighbour's token is measured. */
const BASELINE_ITERATIONS = 100;
/**
 * A request that is dearer than it may be is measured again, later and later: what the machine and the garbage collector add
 * goes away, also where the machine is slow for some seconds.
 */
const FIRST_PAUSE_MS = 50;

/** Cost of a token of the neighbour to the main thread, with no other client. */
export async function tokenMsOf(server: MeteredServer): Promise<number> {
  const before = await server.noted();
  await pass(server, BASELINE_ITERATIONS);
  const { mainNs, iterations } = await server.noted();
  return (mainNs - before.mainNs) / 1e6 / (iterations - before.iterations);
}

/** Sends a request and notes what it costs until it has left. */
export async function costOf(
  server: MeteredServer,
  {
    name,
    path,
    body,
    takenBytes = 0,
    isLong,
    contentEncoding,
    beside = [],
    hasOwnMemory = false,
  }: DearRequest,
  { tokenMs, fullMs, longFullMs }: Baseline,
): Promise<Cost> {
  const bytesBefore = server.residentBytes();
  server.resetPeak();
  const before = await server.noted(true);
  const exchanges = await Promise.all(
    [body, ...beside].map((one) => send(server.url, path, one, undefined, contentEncoding)),
  );
  const { mainNs, iterations } = await server.noted();
  const admissionMs = (mainNs - before.mainNs) / 1e6 - tokenMs * (iterations - before.iterations);
  const late = setTimeout(() => {
    for (const { leave } of exchanges) leave();
  }, MAX_READ_MS);
  const beginnings = await Promise.all(exchanges.map(({ ended }) => ended));
  clearTimeout(late);
  await pass(server, ITERATIONS_AFTER);
  const { holdNs, iterationNs } = await server.noted();
  const status = Math.max(...exchanges.map((exchange) => exchange.status));
  const refused = exchanges.findIndex((exchange) => exchange.status !== 200);
  return {
    name,
    bodyBytes: (body?.length ?? 0) + takenBytes,
    status,
    answer: refused < 0 ? '' : beginnings[refused]!.slice(0, 300),
    admissionMs: Math.max(0, admissionMs),
    holdMs: holdNs / 1e6,
    iterationMs: iterationNs / 1e6,
    fullMs: isLong ? longFullMs : fullMs,
    memoryBytes: hasOwnMemory ? 0 : Math.max(0, server.peakBytes() - bytesBefore),
  };
}

/** Least cost of a request, and the bounds that it exceeds. @param repetitions the request, as often as it may be measured */
export async function leastCost(
  server: MeteredServer,
  repetitions: readonly DearRequest[],
  baseline: Baseline,
): Promise<MeasuredCost> {
  const costs: Cost[] = [];
  let slowness = 1;
  for (;;) {
    costs.push(await costOf(server, repetitions[costs.length]!, baseline));
    const cost = leastOf(costs);
    if (exceeded(cost, slowness).length > 0) slowness = Math.max(slowness, calibrated());
    const found = exceeded(cost, slowness);
    if (found.length === 0 || costs.length === repetitions.length) return { cost, exceeded: found };
    await sleep(FIRST_PAUSE_MS * 2 ** (costs.length - 1));
  }
}

/** Waits for `count` iterations: the neighbour always has some. */
async function pass(server: MeteredServer, count: number): Promise<void> {
  const { iterations: first } = await server.noted();
  for (let { iterations } = await server.noted(); iterations < first + count; ) {
    await sleep(2);
    ({ iterations } = await server.noted());
  }
}

/** The least of each figure: a machine that is busy only ever adds to them. */
export function leastOf(costs: readonly Cost[]): Cost {
  const least = (figure: 'admissionMs' | 'holdMs' | 'iterationMs' | 'memoryBytes') =>
    Math.min(...costs.map((cost) => cost[figure]));
  return {
    ...costs[0]!,
    admissionMs: least('admissionMs'),
    holdMs: least('holdMs'),
    iterationMs: least('iterationMs'),
    memoryBytes: least('memoryBytes'),
  };
}
