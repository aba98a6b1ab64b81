// What the dashboard costs:
//
//   npx tsx tools/dashboard-bench/main.ts MODEL [--streams 64] [--rounds 12] [--seconds 2] [--frames 15] [--only TEXT] [--write]
//
// 1. The server: tokens a second of `streams` chats with the real engine, by turns without a listener and with one that reads
//    /stats/stream as the page does but does nothing with it (a browser on the same machine takes processors of its own).
//    `rounds` pairs of `seconds` each; the order changes from pair to pair, since longer contexts slow all down.
// 2. The browser: gaps between frames for `frames` seconds, with the whole page in Chromium, `streams` requests in flight that
//    come and go, and an answer that is written in the chat box. The executor gives tokens at a steady rate and computes nothing
//    (tools/http-bench), so that the page has a processor.
//
// `npm run build` comes first. --only picks the part whose name (server, browser) holds a text; --write puts both into BENCHMARKS.md.
import { spawn } from 'node:child_process';
import { get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { launchChromium } from '../chromium.js';
import { describeMachine, machineLine, sectionOf } from '../compare/machine.js';
import { writeSection } from '../document-section.js';
import { startBenchServer } from '../http-bench/server-process.js';
import { addressOf } from '../listening-server.js';
import { Crowd } from './crowd.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    streams: { type: 'string', default: '64' },
    rounds: { type: 'string', default: '12' },
    seconds: { type: 'string', default: '2' },
    frames: { type: 'string', default: '15' },
    only: { type: 'string', default: '' },
    write: { type: 'boolean', default: false },
  },
});
const [model] = positionals;
if (model === undefined) throw new Error('Which model? npx tsx tools/dashboard-bench/main.ts MODEL');
const numStreams = Number(values.streams);

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

async function serverCost(path: string): Promise<string> {
  const cli = fileURLToPath(new URL('../../dist/bin/skein.js', import.meta.url));
  const flags = ['serve', '--model', path, '--port', '0', '--max-num-sequences', values.streams];
  const child = spawn(process.execPath, [cli, ...flags], { stdio: ['ignore', 'pipe', 'inherit'] });
  const url = await addressOf(child);
  // Longer than the bench runs: nobody comes or goes.
  const crowd = new Crowd(url, numStreams, () => 3000);
  try {
    while (!crowd.hasBegun) await sleep(50);
    const ratios: number[] = [];
    const paces = { with: 0, without: 0 };
    for (let round = 0; round < Number(values.rounds); round++) {
      const order = round % 2 === 0 ? (['with', 'without'] as const) : (['without', 'with'] as const);
      const pace = { with: 0, without: 0 };
      for (const what of order) pace[what] = await paceOf(crowd, what === 'with' ? listener(url) : null);
      ratios.push(pace.with / pace.without);
      paces.with += pace.with / Number(values.rounds);
      paces.without += pace.without / Number(values.rounds);
    }
    ratios.sort((a, b) => a - b);
    const percent = (ratio: number) => `${((1 - ratio) * 100).toFixed(2)} %`;
    return (
      `${numStreams} chats: ${paces.without.toFixed(0)} tokens/s without a listener, ${paces.with.toFixed(0)} with one. It costs ` +
      `${percent(median(ratios))} (median of ${ratios.length} pairs of ${values.seconds} s; quartiles ` +
      `${percent(ratios[Math.floor(ratios.length * 0.75)]!)} and ${percent(ratios[Math.floor(ratios.length * 0.25)]!)}).`
    );
  } finally {
    crowd.leave();
    child.kill('SIGKILL');
  }
}

/** Tokens a second over some seconds, while somebody listens. */
async function paceOf(crowd: Crowd, leave: (() => void) | null): Promise<number> {
  await sleep(200);
  const before = { frames: crowd.frames, ms: performance.now() };
  await sleep(Number(values.seconds) * 1000);
  const pace = ((crowd.frames - before.frames) * 1000) / (performance.now() - before.ms);
  leave?.();
  return pace;
}

function listener(url: string): () => void {
  const request = get(`${url}/stats/stream`, (response) => response.resume());
  request.on('error', () => {});
  return () => request.destroy();
}

async function browserFrames(path: string): Promise<string[]> {
  const server = await startBenchServer({ model: path, rate: 2000, maxSeqLen: 16_384, maxNumSequences: 64 });
  const lengths = [160, 420, 90, 700, 260, 330, 520];
  let next = 0;
  const crowd = new Crowd(server.url, numStreams - 1, () => lengths[next++ % lengths.length]!);
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

function median(sorted: readonly number[]): number {
  const middle = sorted.length / 2;
  return (sorted[Math.floor(middle)]! + sorted[Math.ceil(middle) - 1]!) / 2;
}
