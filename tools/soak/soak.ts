import { setTimeout as wait } from 'node:timers/promises';
import type { GptManager } from 'skein';
import { Crowd, type CrowdCounts, compareAlone } from './crowd.js';
import { BASE, MIXES, type Mix } from './mixes.js';
import { Random } from './random.js';
import { RequestFactory } from './requests.js';
import { heldResources, type Resources } from './resources.js';

export interface SoakOptions {
  Manager: typeof GptManager;
  /** The engine directory of a tiny model in a precision. */
  engineOf: (precision: NonNullable<Mix['precision']>) => Promise<{ path: string; vocabSize: number }>;
  /** Seconds of all mixes together. */
  seconds: number;
  seed: number;
  /** Each mix goes on until it has sent this many, however slow the machine is; default 0. */
  leastRequests?: number;
  mixes?: readonly Mix[];
  onLine?: (line: string) => void;
}

export interface MixReport {
  name: string;
  counts: CrowdCounts;
  compared: number;
  /** While it ran: resident memory after its first quarter and at its end. */
  rssBytes: [number, number];
  failures: string[];
}

export interface SoakReport {
  mixes: MixReport[];
  /** Resources of the process without an engine: after the first mix and after the last. */
  resources: [Resources, Resources];
  failures: string[];
}

/** Share of a mix's time that the requests have alone, but no more than is good for a sample; the crowd has the rest. */
const ALONE_SHARE = 0.3;
const MAX_ALONE_MS = 30_000;
/** Share of the crowd's time for starting and ending. */
const MARGIN_SHARE = 0.1;
/** Memory that comes and goes with the garbage of two heaps. */
const RSS_SLACK_BYTES = 96 * 2 ** 20;
const HEAP_SLACK_BYTES = 8 * 2 ** 20;

/**
 * Runs each mix for its share of the time: random requests on a pool far too small for them, random cancels and time
 * limits, the KV cache checked after every iteration; then a sample of them alone, compared bit for bit.
 */
export async function runSoak(options: SoakOptions): Promise<SoakReport> {
  const { mixes = MIXES, seconds, seed, onLine = () => {} } = options;
  const reports: MixReport[] = [];
  let first: Resources | null = null;
  const endMs = performance.now() + 1000 * seconds;
  for (const [index, mix] of mixes.entries()) {
    // Time that a mix had for comparing alone and did not need goes to the mixes after it.
    const ms = Math.max(0, endMs - performance.now()) / (mixes.length - index);
    const report = await runMix(options, mix, ms, seed + index);
    reports.push(report);
    onLine(lineOf(report));
    first ??= heldResources();
  }
  const resources: [Resources, Resources] = [first ?? heldResources(), heldResources()];
  return {
    mixes: reports,
    resources,
    failures: [...reports.flatMap((r) => r.failures), ...leaks(resources)],
  };
}

async function runMix(
  { Manager, engineOf, leastRequests = 0 }: SoakOptions,
  mix: Mix,
  ms: number,
  seed: number,
): Promise<MixReport> {
  const startMs = performance.now();
  const aloneMs = Math.min(MAX_ALONE_MS, ms * ALONE_SHARE);
  const crowdMs = (ms - aloneMs) * (1 - MARGIN_SHARE);
  const random = new Random(seed);
  const { path: enginePath, vocabSize } = await engineOf(mix.precision ?? 'bf16');
  const engine = { Manager, enginePath };
  const factory = new RequestFactory(random, {
    ...{ vocabSize, maxSeqLen: BASE.maxSeqLen! },
    decodes: mix.decodes ?? false,
  });
  const crowd = new Crowd(engine, mix, random, factory);
  await crowd.ready;
  await load(crowd, startMs + crowdMs / 4);
  const early = heldResources().rssBytes;
  await load(crowd, startMs + crowdMs, leastRequests);
  const late = heldResources().rssBytes;
  await crowd.end();
  if (late - early > RSS_SLACK_BYTES) crowd.fail(`resident memory grew from ${mib(early)} to ${mib(late)}`);
  const compared = crowd.failures.length > 0 ? 0 : await compareAlone(engine, mix, crowd, aloneMs);
  const { counts, failures } = crowd;
  const named = failures.map((failure) => `${mix.name} (seed ${seed}): ${failure}`);
  return { name: mix.name, counts, compared, rssBytes: [early, late], failures: named };
}

/**
 * Lets the crowd load the engine until `untilMs` and until it has sent `leastRequests` requests, or until
 * something is wrong.
 */
async function load(crowd: Crowd, untilMs: number, leastRequests = 0): Promise<void> {
  const goesOn = () => performance.now() < untilMs || crowd.counts.requests < leastRequests;
  while (goesOn() && !crowd.isOver) await wait(20);
}

function leaks([before, after]: [Resources, Resources]): string[] {
  const found: string[] = [];
  for (const name of ['threads', 'files', 'handles'] as const) {
    if (after[name] > before[name])
      found.push(`${name}: ${before[name]} after the first mix, ${after[name]} at the end`);
  }
  const rss = after.rssBytes - before.rssBytes;
  if (rss > RSS_SLACK_BYTES) found.push(`resident memory grew by ${mib(rss)} over the mixes`);
  const heap = after.heapBytes - before.heapBytes;
  if (heap > HEAP_SLACK_BYTES) found.push(`the heap grew by ${mib(heap)} over the mixes`);
  return found;
}

export const mib = (bytes: number) => `${(bytes / 2 ** 20).toFixed(1)} MiB`;

function lineOf({ name, counts, compared, rssBytes, failures }: MixReport): string {
  const said = [
    `${counts.requests} requests`,
    `${counts.iterations} iterations`,
    `${counts.tokens} tokens`,
    `${counts.pauses} pauses`,
    `${counts.reusedTokens} tokens reused`,
    `${counts.cancelled} cancelled`,
    `${counts.timedOut} timed out`,
    `${counts.refused} refused`,
    `${compared} compared`,
    `memory ${mib(rssBytes[0])} to ${mib(rssBytes[1])}`,
  ];
  return `${failures.length === 0 ? 'ok  ' : 'FAIL'} ${name}: ${said.join(', ')}`;
}
