// What the dashboard costs:
//
//   npx tsx tools/dashboard-bench/main.ts MODEL [--streams 64] [--rounds 12] [--seconds 3] [--frames 15] [--only TEXT] [--write]
//
// with `streams` requests in flight that come and go, over an executor that gives tokens at a steady rate and computes nothing
// (tools/http-bench):
//
// 1. The server: processor time of all its threads, by turns without a listener and with one that reads /stats/stream as the
//    page does (a browser on the same machine takes processors of its own). `rounds` pairs of `seconds` each.
// 2. The browser: gaps between frames for `frames` seconds, with the whole page in Chromium and an answer that is written in the
//    chat box.
//
// `npm run build` comes first. --only picks the part whose name (server, browser) holds a text; --write puts both into BENCHMARKS.md.
import { get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { describeMachine, machineLine, sectionOf } from '../../base/machine.js';
import { launchChromium } from '../chromium.js';
import { writeSection } from '../document-section.js';
import { type ProcessorTime, startBenchServer } from '../http-bench/server-process.js';
import { median } from '../support/statistics.js';
import { Crowd } from './crowd.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    streams: { type: 'string', default: '64' },
    rounds: { type: 'string', default: '12' },
    seconds: { type: 'string', default: '3' },
    frames: { type: 'string', default: '15' },
    only: { type: 'string', default: '' },
    write: { type: 'boolean', default: false },
  },
});
const [model] = positionals;
if (model === undefined) throw new Error('Which model? npx tsx tools/dashboard-bench/main.ts MODEL');
const numStreams = Number(values.streams);
/** Tokens a second over all requests. */
const RATE = 2000;

const lines: string[] = [];
if ('server'.includes(values.only)) lines.push(await serverCost(model));
if ('browser'.includes(values.only)) lines.push(...(await browserFrames(model)));
const machine = describeMachine();
for (const line of lines) console.log(line);
if (values.write) {
  writeSection(
    'BENCHMARKS.md',
    sectionOf('dashboard', machine),
    [machineLine(machine), '', ...lines].join('\n'),
  );
}

/** With the steady executor: what is left of the server's processor time is what the project's own code takes. */
async function serverCost(path: string): Promise<string> {
  const server = await startBenchServer({ model: path, rate: RATE, maxSeqLen: 16_384, maxNumSequences: 64 });
  const crowd = new Crowd(server.url, numStreams, lengths());
  try {
    while (!crowd.hasBegun) await sleep(50);
    const taken = { with: [] as number[], without: [] as number[] };
    let frames = 0;
    for (let round = 0; round < Number(values.rounds); round++) {
      const order = round % 2 === 0 ? (['with', 'without'] as const) : (['without', 'with'] as const);
      for (const what of order) {
        const leave = what === 'with' ? listener(server.url) : () => {};
        await sleep(300);
        const before = { time: sum(server.processorTime()), ms: performance.now(), frames: crowd.frames };
        await sleep(Number(values.seconds) * 1000);
        const seconds = (performance.now() - before.ms) / 1000;
        taken[what].push((sum(server.processorTime()) - before.time) / seconds);
        frames += (crowd.frames - before.frames) / seconds / Number(values.rounds) / 2;
        leave();
      }
    }
    const extra = taken.with.map((ms, round) => ms - taken.without[round]!).sort((a, b) => a - b);
    const [mean, first, middle, third] = [
      taken.without.reduce((all, ms) => all + ms, 0) / taken.without.length,
      extra[Math.floor(extra.length * 0.25)]!,
      median(extra),
      extra[Math.floor(extra.length * 0.75)]!,
    ].map((ms) => ms!.toFixed(1));
    return (
      `${numStreams} requests in flight at ${frames.toFixed(0)} tokens/s: the server's own code takes ${mean} ms of processor time a second ` +
      `without a listener, and ${middle} ms more with one (median of ${extra.length} pairs of ${values.seconds} s; quartiles ${first} and ` +
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

/** Of answers, in tokens: they come and go. */
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

async function browserFrames(path: string): Promise<string[]> {
  const server = await startBenchServer({ model: path, rate: RATE, maxSeqLen: 16_384, maxNumSequences: 64 });
  const crowd = new Crowd(server.url, numStreams - 1, lengths());
  const browser = await launchChromium();
  try {
    while (!crowd.hasBegun) await sleep(50);
    const page = await browser.newPage({ viewport: { width: 1600, height: 1000 } });
    // What tsx puts into functions.
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
    const seconds = Number(values.frames);
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
