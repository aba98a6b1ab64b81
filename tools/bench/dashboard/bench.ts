import { get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { describeMachine } from '../../../base/machine.js';
import { launchChromium } from '../../chromium.js';
import { countOf } from '../../compare/flags.js';
import { sectionOf } from '../../support/machine-words.js';
import { median } from '../../support/statistics.js';
import { takeRounds } from '../../support/take-rounds.js';
import { defineBench, forEachKind } from '../bench.js';
import { MODEL_FLAG, modelOf, positiveOf, roundsFlag, secondsFlag } from '../flags.js';
import { type ProcessorTime, startBenchServer } from '../http/server-process.js';
import { Crowd } from './crowd.js';

const FLAGS = {
  ...MODEL_FLAG,
  streams: { argument: 'N', default: '64', help: 'requests in flight, which come and go (default 64)' },
  ...roundsFlag(12),
  ...secondsFlag(3),
  frames: { argument: 'N', default: '15', help: 'seconds in which frames are counted (default 15)' },
  only: { argument: 'TEXT', default: '', help: 'parts whose names hold this text: server, browser' },
} as const;

/** Tokens a second over all requests. */
const RATE = 2000;

interface Setting {
  model: string;
  numStreams: number;
  rounds: number;
  seconds: number;
  /** Seconds in which frames are counted. */
  frames: number;
}

/** Cost of the dashboard to the server and the browser, over an executor that gives tokens at a steady rate. */
export const bench = defineBench({
  flags: FLAGS,
  document: 'docs/lab/server.md',
  sections: forEachKind('dashboard'),
  async run(flags, { report }) {
    const setting: Setting = {
      model: modelOf(flags),
      numStreams: countOf('streams', flags.streams),
      rounds: countOf('rounds', flags.rounds),
      seconds: positiveOf('seconds', flags.seconds),
      frames: positiveOf('frames', flags.frames),
    };
    const lines: string[] = [];
    if ('server'.includes(flags.only)) lines.push(await serverCost(setting));
    if ('browser'.includes(flags.only)) lines.push(...(await browserFrames(setting)));
    report({ section: sectionOf('dashboard', describeMachine()), conditions: '', lines });
  },
});

/**
 * Processor time of all the server's threads, in turns without a listener and with one that reads /stats/stream as the page
 * does (a browser on the same machine takes processors of its own). The steady executor computes nothing, so what is
 * measured is what the project's own code takes.
 */
async function serverCost({ model, numStreams, rounds, seconds }: Setting): Promise<string> {
  const server = await startBenchServer({ model, rate: RATE, maxSeqLen: 16_384, maxNumSequences: 64 });
  const crowd = new Crowd(server.url, numStreams, lengths());
  try {
    while (!crowd.hasBegun) await sleep(50);
    const taken = { with: [] as number[], without: [] as number[] };
    let frames = 0;
    await takeRounds(['with', 'without'] as const, rounds, async (side) => {
      const leave = side === 'with' ? listener(server.url) : () => {};
      await sleep(300);
      const before = { time: sum(server.processorTime()), ms: performance.now(), frames: crowd.frames };
      await sleep(seconds * 1000);
      const took = (performance.now() - before.ms) / 1000;
      taken[side].push((sum(server.processorTime()) - before.time) / took);
      frames += (crowd.frames - before.frames) / took / rounds / 2;
      leave();
    });
    const extra = taken.with.map((ms, round) => ms - taken.without[round]!).sort((a, b) => a - b);
    const [mean, first, middle, third] = [
      taken.without.reduce((all, ms) => all + ms, 0) / taken.without.length,
      extra[Math.floor(extra.length * 0.25)]!,
      median(extra),
      extra[Math.floor(extra.length * 0.75)]!,
    ].map((ms) => ms!.toFixed(1));
    return (
      `${numStreams} requests in flight at ${frames.toFixed(0)} tokens/s: the server's own code takes ${mean} ms of processor time a second ` +
      `without a listener, and ${middle} ms more with one (median of ${extra.length} pairs of ${seconds} s; quartiles ${first} and ` +
      `${third} ms), which is ${(Number(middle) / 10).toFixed(2)} % of one core.`
    );
  } finally {
    crowd.leave();
    await server.stop();
  }
}

function sum({ main, helpers, engine }: ProcessorTime): number {
  return main + helpers + engine;
}

/** The lengths of answers in tokens, one after the other: answers come and go. */
function lengths(): () => number {
  const all = [160, 420, 90, 700, 260, 330, 520];
  let next = 0;
  return () => all[next++ % all.length]!;
}

function listener(url: string): () => void {
  const request = get(`${url}/stats/stream`, (response) => response.resume());
  request.on('error', () => {});
  return () => request.destroy();
}

/** Gaps between frames with the whole page in Chromium and an answer that is written in the chat box. */
async function browserFrames({ model, numStreams, frames: seconds }: Setting): Promise<string[]> {
  const server = await startBenchServer({ model, rate: RATE, maxSeqLen: 16_384, maxNumSequences: 64 });
  const crowd = new Crowd(server.url, numStreams - 1, lengths());
  const browser = await launchChromium();
  try {
    while (!crowd.hasBegun) await sleep(50);
    const page = await browser.newPage({ viewport: { width: 1600, height: 1000 } });
    // tsx puts calls of __name into functions, which the page does not have.
    await page.addInitScript('globalThis.__name = (value) => value');
    await page.goto(server.url);
    await page.getByLabel('Message', { exact: true }).fill('Tell me a story');
    await page.keyboard.press('Enter');
    await page.locator('.figures').getByText('tokens/s').waitFor();
    await sleep(2000);
    const devtools = await page.context().newCDPSession(page);
    await devtools.send('Performance.enable');
    const busySeconds = async () => {
      const { metrics } = await devtools.send('Performance.getMetrics');
      return metrics.find(({ name }) => name === 'TaskDuration')!.value;
    };
    const before = await busySeconds();
    const { gaps, longTasks } = await page.evaluate(watchFrames, seconds * 1000);
    const busy = ((await busySeconds()) - before) / seconds;
    gaps.sort((a, b) => a - b);
    const at = (share: number) =>
      `${gaps[Math.min(gaps.length - 1, Math.floor(gaps.length * share))]!.toFixed(1)} ms`;
    const late = gaps.filter((gap) => gap > 25).length;
    return [
      '',
      `${numStreams} requests in flight, and an answer in the chat box: ${(gaps.length / seconds).toFixed(1)} frames/s over ${seconds} s; ` +
        `gaps between frames ${at(0.5)} (median), ${at(0.99)} (99th), ${at(1)} (longest), ${late} of ${gaps.length} above 25 ms. The page's ` +
        `thread is busy ${(busy * 100).toFixed(0)} % of the time, with ${longTasks} tasks of more than 50 ms.`,
    ];
  } finally {
    await browser.close();
    crowd.leave();
    await server.stop();
  }
}

/** Runs in the page. */
function watchFrames(durationMs: number): Promise<{ gaps: number[]; longTasks: number }> {
  let longTasks = 0;
  new PerformanceObserver((list) => {
    longTasks += list.getEntries().length;
  }).observe({ entryTypes: ['longtask'] });
  return new Promise((resolve) => {
    const gaps: number[] = [];
    let firstMs: number | null = null;
    let lastMs = 0;
    const note = (nowMs: number) => {
      if (firstMs === null) firstMs = nowMs;
      else gaps.push(nowMs - lastMs);
      lastMs = nowMs;
      if (nowMs - firstMs < durationMs) requestAnimationFrame(note);
      else resolve({ gaps, longTasks });
    };
    requestAnimationFrame(note);
  });
}
