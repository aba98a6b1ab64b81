import type { RunReport } from '../report/schema.js';
import { fetchFrom, type Target } from './target.js';

const EVERY_MS = 1000;
const TIMEOUT_MS = 2000;
/** Most series kept; a server may have more, by label. */
const MAX_SERIES = 600;
/** Pattern of a sample. It assumes labels without quotes in their values, as known servers write them. */
const SAMPLE = /^([a-zA-Z_:][\w:]*)(\{[^}]*\})? (\S+)(?: \d+)?$/;

interface Series {
  first: number;
  last: number;
  min: number;
  max: number;
  sum: number;
  count: number;
}

type ServerReport = NonNullable<RunReport['server']>;

/** Reads a server's own /metrics (Prometheus) and /stats (JSON) every second while it is loaded. */
export class Scraper {
  readonly #target: Target;
  readonly #series = new Map<string, Series>();
  #stats: Record<string, unknown> | null = null;
  #scrapes = 0;
  #hasMetrics = true;
  #hasStats = true;
  #timer: NodeJS.Timeout | null = null;
  #running: Promise<void> = Promise.resolve();

  constructor(target: Target) {
    this.#target = target;
  }

  start(): void {
    this.#running = this.#scrape();
    this.#timer = setInterval(() => {
      this.#running = this.#running.then(() => this.#scrape());
    }, EVERY_MS);
  }

  /** Reads once more, and ends; null where the server has neither page. */
  async stop(): Promise<ServerReport | null> {
    if (this.#timer === null) return null;
    clearInterval(this.#timer);
    this.#timer = null;
    await this.#running;
    await this.#scrape();
    if (this.#scrapes === 0) return null;
    const metrics: ServerReport['metrics'] = {};
    for (const [name, { first, last, min, max, sum, count }] of this.#series) {
      metrics[name] = { first, last, min, max, mean: sum / count };
    }
    return { scrapes: this.#scrapes, metrics, stats: this.#stats };
  }

  async #scrape(): Promise<void> {
    const [metrics, stats] = await Promise.all([
      this.#hasMetrics ? this.#read('/metrics') : null,
      this.#hasStats ? this.#read('/stats') : null,
    ]);
    if (metrics === 'none') this.#hasMetrics = false;
    else if (metrics !== null) this.#take(metrics);
    if (stats === 'none') this.#hasStats = false;
    else if (stats !== null) {
      try {
        this.#stats = JSON.parse(stats) as Record<string, unknown>;
        this.#scrapes++;
      } catch {
        this.#hasStats = false;
      }
    }
  }

  /** Text of a page; 'none' where there is no such page, null where the server does not answer at present. */
  async #read(path: string): Promise<string | 'none' | null> {
    const { origin, prefix, headers } = this.#target;
    try {
      const signal = AbortSignal.timeout(TIMEOUT_MS);
      const response = await fetchFrom(this.#target, `${origin}${prefix}${path}`, { headers, signal });
      const text = await response.text();
      return response.ok ? text : 'none';
    } catch {
      return null;
    }
  }

  #take(text: string): void {
    let isPage = false;
    for (const line of text.split('\n')) {
      const [, name, labels = '', value] = SAMPLE.exec(line) ?? [];
      // Histograms have many buckets; their sums and counts give the mean.
      if (name === undefined || name.endsWith('_bucket')) continue;
      isPage = true;
      this.#add(name + labels, Number(value));
    }
    if (isPage) this.#scrapes++;
    else this.#hasMetrics = false;
  }

  #add(name: string, value: number): void {
    if (!Number.isFinite(value)) return;
    const series = this.#series.get(name);
    if (series === undefined) {
      if (this.#series.size >= MAX_SERIES) return;
      this.#series.set(name, { first: value, last: value, min: value, max: value, sum: value, count: 1 });
      return;
    }
    series.last = value;
    series.min = Math.min(series.min, value);
    series.max = Math.max(series.max, value);
    series.sum += value;
    series.count++;
  }
}
