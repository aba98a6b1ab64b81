import type { Formation } from '../../../../../callbacks/formation.js';

/** Charted series, with one value for each event; null: not known. */
export const SERIES = [
  'generatedPerSecond',
  'promptPerSecond',
  'inFlight',
  'waiting',
  'batch',
  'kvUsed',
  'kvCached',
  'iterationMs',
  'longestMs',
  'firstP50',
  'firstP90',
  'firstP99',
  'interP50',
  'interP90',
  'interP99',
] as const;

export type SeriesName = (typeof SERIES)[number];

/** Seconds of silence above which a chart shows a gap instead of a straight line: heartbeats come every 5 seconds. */
const GAP_S = 7;

/** Seconds over which rates are counted at least: between two events that come close together a rate says nothing. */
const RATE_S = 1;
/** Seconds behind an event at which a line steps down, where the engine rested from then on. */
const STEP_S = 0.0005;

/**
 * The latest `windowS` seconds of a model, from formation events. Rates come from totals, so that missed events leave
 * no hole.
 */
export class SeriesWindow {
  readonly #windowS: number;
  /** Times of the events in seconds since 1970, on the server's clock; ascending. */
  times: number[] = [];
  readonly values: Record<SeriesName, (number | null)[]>;
  #before: Formation | null = null;
  /** Events of the latest second or so, from which rates are counted; the first is the one that is old enough. */
  #anchors: Formation[] = [];
  /** The step down behind the latest event is made. */
  #rests = false;

  constructor(windowS: number) {
    this.#windowS = windowS;
    this.values = Object.fromEntries(SERIES.map((name) => [name, []])) as unknown as typeof this.values;
  }

  reset(): void {
    this.#clear();
    this.#before = null;
    this.#anchors = [];
  }

  /** The latest value of a series. */
  latest(name: SeriesName): number | null {
    return this.values[name].at(-1) ?? null;
  }

  /** Takes an event; one that comes twice, or after later ones, is ignored. Returns false where nothing changes. */
  take(event: Formation): boolean {
    const before = this.#before;
    const timeS = event.timeMs / 1000;
    if (before !== null && event.timeMs <= before.timeMs) {
      // The server's clock was set back.
      if (event.timeMs > before.timeMs - 60_000) return false;
      this.reset();
    }
    const known = this.#before;
    if (known !== null && timeS - known.timeMs / 1000 > GAP_S) {
      this.#push((timeS + known.timeMs / 1000) / 2, nothing());
    }
    const gapS = known === null ? 0 : timeS - known.timeMs / 1000;
    // Nothing comes for seconds while the engine rests: without a step the line would slope down to this event.
    if (known !== null && gapS <= GAP_S && restedSince(known, event)) this.rest();
    this.#rests = false;
    this.#push(timeS, valuesOf(event, this.#anchorsOf(event)));
    this.#before = event;
    const first = this.times.findIndex((time) => time >= timeS - this.#windowS);
    if (first > 0) {
      this.times.splice(0, first);
      for (const name of SERIES) this.values[name].splice(0, first);
    }
    return true;
  }

  /** Steps down to what is true while the engine rests, once behind each event; nothing where requests are in flight. */
  rest(): boolean {
    const event = this.#before;
    if (this.#rests || event === null || !isAtRest(event)) return false;
    this.#rests = true;
    this.#push(event.timeMs / 1000 + STEP_S, { ...valuesOf(event, []), ...RESTING });
    return true;
  }

  /** Events before this one, the first of which rates are counted from: the latest that is a second old, else the oldest there is. */
  #anchorsOf(event: Formation): Formation[] {
    const last = this.#anchors.at(-1);
    // A new engine counts from zero.
    if (last !== undefined && event.totals.iterations < last.totals.iterations) this.#anchors = [];
    const anchors = this.#anchors;
    while (anchors.length > 1 && event.timeMs - anchors[1]!.timeMs >= 1000 * RATE_S) anchors.shift();
    const counted = [...anchors];
    // Idle time does not count: work begins again after it.
    if (last !== undefined && restedSince(last, event)) this.#anchors = [event];
    else anchors.push(event);
    return counted;
  }

  #push(timeS: number, values: Values): void {
    this.times.push(timeS);
    for (const name of SERIES) this.values[name].push(values[name]);
  }

  #clear(): void {
    this.times.length = 0;
    for (const name of SERIES) this.values[name].length = 0;
  }
}

type Values = Record<SeriesName, number | null>;

const RESTING = { generatedPerSecond: 0, promptPerSecond: 0, batch: 0, iterationMs: null, longestMs: null };

/** True where nothing is in flight. */
function isAtRest({ requests, queued }: Formation): boolean {
  return requests.length === 0 && queued === 0;
}

/** True where nothing was in flight, and nothing was computed until the later event. */
function restedSince(event: Formation, later: Formation): boolean {
  return isAtRest(event) && later.totals.iterations === event.totals.iterations;
}

function nothing(): Values {
  return Object.fromEntries(SERIES.map((name) => [name, null])) as unknown as Values;
}

/** @param before events since the one from which rates are counted */
function valuesOf(event: Formation, before: readonly Formation[]): Values {
  const { requests, queued, blocks, latency } = event;
  // Over the same time as the mean, which is above it otherwise.
  const longestMs = Math.max(...[...before.slice(1), event].map((one) => one.longestIterationMs));
  const states = [0, 0, 0, 0];
  for (const row of requests) states[row[2]]! += 1;
  const listed = states[0]!;
  const held = { used: 0, cached: 0 };
  for (let i = 0; i + 1 < blocks.runs.length; i += 2) {
    const owner = blocks.runs[i + 1]!;
    if (owner === -2) held.cached += blocks.runs[i]!;
    else if (owner !== -1) held.used += blocks.runs[i]!;
  }
  const percent = (part: number) => (blocks.count === 0 ? null : (100 * part) / blocks.count);
  return {
    ...ratesOf(event, before[0] ?? null),
    inFlight: states[1]! + states[2]! + states[3]!,
    waiting: Math.max(listed, queued),
    kvUsed: percent(held.used),
    kvCached: percent(held.cached),
    longestMs: longestMs > 0 ? longestMs : null,
    firstP50: latency.firstToken?.p50 ?? null,
    firstP90: latency.firstToken?.p90 ?? null,
    firstP99: latency.firstToken?.p99 ?? null,
    interP50: latency.interToken?.p50 ?? null,
    interP90: latency.interToken?.p90 ?? null,
    interP99: latency.interToken?.p99 ?? null,
  };
}

/** Rates, by the growth of the totals. A new engine has new totals. */
function ratesOf(
  { timeMs, totals }: Formation,
  before: Formation | null,
): Pick<Values, 'generatedPerSecond' | 'promptPerSecond' | 'batch' | 'iterationMs'> {
  const none = { generatedPerSecond: null, promptPerSecond: null, batch: null, iterationMs: null };
  if (before === null || totals.iterations < before.totals.iterations) return none;
  const seconds = (timeMs - before.timeMs) / 1000;
  const grown = (name: keyof typeof totals) => totals[name] - before.totals[name];
  const iterations = grown('iterations');
  return {
    generatedPerSecond: grown('generatedTokens') / seconds,
    promptPerSecond: grown('contextTokens') / seconds,
    batch: iterations === 0 ? 0 : grown('scheduledRequests') / iterations,
    iterationMs: iterations === 0 ? null : grown('iterationMs') / iterations,
  };
}
