/**
 * State of a model's engine at one time, for a terminal or a script. Absent parts are null: the server did
 * not report them.
 */
export interface ModelPicture {
  model: string;
  /** Time in milliseconds since 1970, on the server's clock. */
  timeMs: number;
  tokensPerSecond: number | null;
  promptTokensPerSecond: number | null;
  iterationMs: number | null;
  /** Number of requests in the latest iteration; then the most that can be active. */
  batch: number;
  maxBatch: number | null;
  queued: number;
  kv: { blocks: number; used: number; shared: number; cached: number; free: number; tokensPerBlock: number };
  firstTokenMs: Latency | null;
  interTokenMs: Latency | null;
  requests: RequestPicture[];
}

export interface Latency {
  p50: number;
  p99: number;
}

const STATES = ['queued', 'context', 'generation', 'paused'] as const;
/** Names of a formation row's entries after id, label and state, in order. */
const COUNTS = [
  'ageMs',
  'promptTokens',
  'contextTokens',
  'contextDone',
  'generated',
  'maxNewTokens',
  'blocks',
  'cachedTokens',
  'pauses',
] as const;

export interface RequestPicture extends Record<(typeof COUNTS)[number], number> {
  id: number;
  label: string;
  state: (typeof STATES)[number];
}

/** Milliseconds that rates are taken over: long enough to be steady, short enough to follow. */
const RATE_WINDOW_MS = 2_000;

interface Sample {
  timeMs: number;
  generated: number;
  context: number;
  iterations: number;
  iterationMs: number;
}

/** Follows one model from event to event. */
export class ModelFollower {
  readonly #model: string;
  #formation: Record<string, unknown> = {};
  #stats: Record<string, unknown> = {};
  #samples: Sample[] = [];

  constructor(model: string) {
    this.#model = model;
  }

  noteStats(stats: Record<string, unknown>): void {
    this.#stats = stats;
  }

  noteFormation(formation: Record<string, unknown>): void {
    this.#formation = formation;
    const totals = objectOf(formation.totals);
    if (totals === null) return;
    const sample = {
      timeMs: numberOf(formation.timeMs),
      generated: numberOf(totals.generatedTokens),
      context: numberOf(totals.contextTokens),
      iterations: numberOf(totals.iterations),
      iterationMs: numberOf(totals.iterationMs),
    };
    // A restarted engine counts from 0 again.
    if (this.#samples.some(({ iterations }) => iterations > sample.iterations)) this.#samples = [];
    this.#samples.push(sample);
    while (this.#samples.length > 2 && sample.timeMs - this.#samples[1]!.timeMs > RATE_WINDOW_MS) {
      this.#samples.shift();
    }
  }

  /** Notes that the server is away: later events do not continue earlier ones. */
  interrupt(): void {
    this.#samples = [];
  }

  picture(): ModelPicture {
    const formation = this.#formation;
    const latency = objectOf(formation.latency);
    const requests = arrayOf(formation.requests).map(requestOf);
    const { blocks, ...rates } = { blocks: objectOf(formation.blocks), ...this.#rates() };
    const active = requests.filter(({ state }) => state === 'context' || state === 'generation');
    return {
      model: this.#model,
      timeMs: numberOf(formation.timeMs),
      ...rates,
      batch: active.length,
      maxBatch:
        typeof this.#stats['Max Request Count'] === 'number' ? this.#stats['Max Request Count'] : null,
      queued: numberOf(formation.queued),
      kv: kvOf(blocks, this.#stats),
      firstTokenMs: latencyOf(latency?.firstToken),
      interTokenMs: latencyOf(latency?.interToken),
      requests,
    };
  }

  #rates(): Pick<ModelPicture, 'tokensPerSecond' | 'promptTokensPerSecond' | 'iterationMs'> {
    const [first, last] = [this.#samples[0], this.#samples.at(-1)];
    if (first === undefined || last === undefined || last === first) {
      return { tokensPerSecond: null, promptTokensPerSecond: null, iterationMs: null };
    }
    const seconds = Math.max(1, last.timeMs - first.timeMs) / 1000;
    const iterations = last.iterations - first.iterations;
    return {
      tokensPerSecond: rounded((last.generated - first.generated) / seconds),
      promptTokensPerSecond: rounded((last.context - first.context) / seconds),
      iterationMs: iterations === 0 ? null : rounded((last.iterationMs - first.iterationMs) / iterations),
    };
  }
}

function requestOf(row: unknown): RequestPicture {
  const [id, label, state, ...counts] = Array.isArray(row) ? row : [];
  const named = Object.fromEntries(COUNTS.map((name, index) => [name, numberOf(counts[index])]));
  return {
    id: numberOf(id),
    label: typeof label === 'string' ? label : '',
    state: STATES[numberOf(state)] ?? 'queued',
    ...(named as Record<(typeof COUNTS)[number], number>),
  };
}

function kvOf(blocks: Record<string, unknown> | null, stats: Record<string, unknown>): ModelPicture['kv'] {
  const count = numberOf(blocks?.count ?? stats['Max KV cache blocks']);
  const kv = {
    blocks: count,
    used: 0,
    shared: 0,
    cached: 0,
    free: 0,
    tokensPerBlock: numberOf(blocks?.tokensPerBlock ?? stats['Tokens per KV cache block']),
  };
  const runs = arrayOf(blocks?.runs);
  for (let at = 0; at + 1 < runs.length; at += 2) {
    const owner = numberOf(runs[at + 1]);
    const kind = owner === -1 ? 'free' : owner === -2 ? 'cached' : owner === -3 ? 'shared' : 'used';
    kv[kind] += numberOf(runs[at]);
  }
  return kv;
}

function latencyOf(quantiles: unknown): Latency | null {
  const found = objectOf(quantiles);
  return found === null ? null : { p50: numberOf(found.p50), p99: numberOf(found.p99) };
}

const numberOf = (value: unknown): number => (typeof value === 'number' ? value : 0);
const arrayOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const rounded = (value: number): number => Math.round(value * 10) / 10;

function objectOf(value: unknown): Record<string, unknown> | null {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null;
}
