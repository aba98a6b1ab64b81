import uPlot from 'uplot';
import { el, say } from '../dom.js';
import type { MountPanel } from '../panels.js';
import { onThemeChange, tokenColour } from '../theme.js';
import { CHARTS, type ChartSpec } from './chart-specs.js';
import { SeriesWindow } from './series.js';

const WINDOW_S = 60;
const HEIGHT = 132;
/** Least milliseconds between two changes of the words. */
const WORDS_MS = 1000;
/** Milliseconds without an event, and without requests, after which the engine is shown to rest. */
const REST_MS = 1000;

/** Panel with charts of the latest minute: speed, load and latency. */
export const mountCharts: MountPanel = (root, { feed }) => {
  const series = new SeriesWindow(WINDOW_S);
  const charts = CHARTS.map((spec) => new Chart(spec, series));
  root.append(
    el('h2', { class: 'panel-title' }, ['The last minute']),
    el(
      'div',
      { class: 'charts' },
      charts.map(({ element }) => element),
    ),
  );
  root.hidden = false;
  let saidMs = Number.NEGATIVE_INFINITY;
  let resting: ReturnType<typeof setTimeout> | undefined;
  feed.on('formation', (event) => {
    if (!series.take(event)) return;
    const speaks = performance.now() - saidMs >= WORDS_MS || event.requests.length === 0;
    if (speaks) saidMs = performance.now();
    for (const chart of charts) chart.update(speaks);
    clearTimeout(resting);
    resting = setTimeout(() => {
      if (series.rest()) for (const chart of charts) chart.update(true);
    }, REST_MS);
  });
  feed.on('reset', () => {
    series.reset();
    for (const chart of charts) chart.update(true);
  });
  onThemeChange(() => {
    for (const chart of charts) chart.build();
  });
};

/** One chart with its name, the values of now, and a sentence of both for screen readers. */
class Chart {
  readonly element: HTMLElement;
  readonly #spec: ChartSpec;
  readonly #series: SeriesWindow;
  readonly #place = el('div', { class: 'chart-place', role: 'img' });
  readonly #values: HTMLElement[];
  #plot: uPlot | null = null;
  #isStale = false;

  constructor(spec: ChartSpec, series: SeriesWindow) {
    this.#spec = spec;
    this.#series = series;
    this.#values = spec.lines.map(() => el('b', {}, ['–']));
    const names = spec.lines.map(({ name, dash }, index) =>
      el('span', { class: 'chart-line' }, [
        key(spec.lines[index]!.colour, dash),
        `${name} `,
        this.#values[index]!,
      ]),
    );
    this.element = el('figure', { class: 'chart' }, [
      el('figcaption', {}, [
        el('h3', {}, [spec.title]),
        el('div', { class: 'chart-lines', 'aria-hidden': 'true' }, names),
      ]),
      this.#place,
    ]);
    new ResizeObserver(() => this.#resize()).observe(this.#place);
  }

  build(): void {
    this.#plot?.destroy();
    this.#plot = null;
    const width = this.#place.clientWidth;
    if (width > 0) this.#plot = new uPlot(optionsOf(this.#spec, width), this.#data(), this.#place);
  }

  /** Draws the chart in the next frame, once for all updates before it. */
  update(speaks: boolean): void {
    if (speaks) this.#speak();
    if (this.#isStale) return;
    this.#isStale = true;
    requestAnimationFrame(() => {
      this.#isStale = false;
      if (this.#plot === null) this.build();
      else this.#plot.setData(this.#data());
    });
  }

  #speak(): void {
    const { lines, title, format } = this.#spec;
    const said = lines.map(({ name, of }, index) => {
      const value = this.#series.latest(of);
      const text = value === null ? '–' : format(value);
      say(this.#values[index]!, text);
      return `${name} ${value === null ? 'not known' : text}`;
    });
    this.#place.setAttribute('aria-label', `${title} over the last minute; now: ${said.join(', ')}.`);
  }

  #data(): uPlot.AlignedData {
    const { times, values } = this.#series;
    return [times, ...this.#spec.lines.map(({ of }) => values[of])] as uPlot.AlignedData;
  }

  #resize(): void {
    const width = this.#place.clientWidth;
    if (this.#plot === null) this.build();
    else if (width > 0 && Math.abs(width - this.#plot.width) > 1)
      this.#plot.setSize({ width, height: HEIGHT });
  }
}

function key(colour: `--${string}`, dash: readonly number[]): HTMLElement {
  const mark = el('span', {
    class: dash.length === 0 ? 'chart-key' : 'chart-key dashed',
    'aria-hidden': 'true',
  });
  mark.style.borderColor = `var(${colour})`;
  return mark;
}

function optionsOf({ lines, least, isShare = false, format }: ChartSpec, width: number): uPlot.Options {
  const line = tokenColour('--line');
  const font = `11px ${getComputedStyle(document.documentElement).fontFamily}`;
  const axis = { stroke: tokenColour('--ink-faint'), font, ticks: { show: false } };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    select: { show: false, left: 0, top: 0, width: 0, height: 0 },
    padding: [8, 14, 0, 0],
    scales: {
      x: { time: true, range: (_, __, max) => [max - WINDOW_S, max] },
      y: { range: (_, __, max) => [0, isShare ? 100 : Math.max(least, (max ?? 0) * 1.08)] },
    },
    axes: [
      {
        ...axis,
        size: 22,
        gap: 4,
        grid: { show: false },
        splits: (_, __, ___, max) => [max - 60, max - 40, max - 20, max],
        values: (_, splits) => splits.map((split, index) => secondsAgo(split - splits.at(-1)!, index)),
      },
      {
        ...axis,
        size: 52,
        gap: 4,
        grid: { stroke: line, width: 1 },
        space: 34,
        values: (_, splits) => splits.map((split) => format(split)),
      },
    ],
    series: [
      {},
      ...lines.map(
        ({ colour, dash, fill }): uPlot.Series => ({
          stroke: tokenColour(colour),
          width: 1.6,
          points: { show: false },
          spanGaps: false,
          ...(dash.length > 0 ? { dash: [...dash] } : {}),
          ...(fill ? { fill: translucent(tokenColour(colour)) } : {}),
        }),
      ),
    ],
  };
}

function secondsAgo(seconds: number, index: number): string {
  if (seconds === 0) return 'now';
  return index === 0 ? '' : `−${Math.round(-seconds)} s`;
}

function translucent(colour: string): string {
  return colour.replace(/^rgb\((.*)\)$/, 'rgba($1, 0.12)');
}
