// How long a start of `skein serve` takes, on what, and what the server holds in memory:
//
//   npx tsx tools/start-bench/main.ts MODEL [--weights bf16] [--starts 9] [--streams 64] [--idle 10] [-- FLAGS OF SERVE]
//
// The engine is built first where the cache lacks it, and one start that is not counted warms the system's file cache.
// Then N starts, of each the milliseconds from the spawn to the first 200 of GET /health, the marks on the way there
// and the processor time of all threads; the medians are printed, and the best of all, which is what to compare on a
// machine that does other work. The last server then idles, answers streams, and idles again; its resident memory is
// read when it is ready and after the streams. `npm run build` comes first: it measures the bundled command line.
import { parseArgs } from 'node:util';
import { cachedEngine } from '../../engine/building/engine-cache.js';
import { kvBytesPerBlock } from '../../kvcache/kv-cache-size.js';
import type { KvDtype } from '../../kvcache/kv-dtype.js';
import { median } from '../support/statistics.js';
import { type Start, startServer } from './server-process.js';
import { streamAll } from './streams.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    weights: { type: 'string', default: 'bf16' },
    starts: { type: 'string', default: '9' },
    streams: { type: 'string', default: '64' },
    idle: { type: 'string', default: '10' },
  },
});
const [model, ...flags] = positionals;
if (model === undefined) throw new Error('Which model? npx tsx tools/start-bench/main.ts MODEL');
const args = ['--model', model, '--weights', values.weights, ...flags];
const MIB = 2 ** 20;

await (await startServer(args)).stop();
const starts: Start[] = [];
for (let i = 0; i < Number(values.starts); i++) {
  const start = await startServer(args);
  starts.push(start);
  if (i + 1 < Number(values.starts)) await start.stop();
}
report(starts);
const last = starts.at(-1)!;
await idle(last, Number(values.idle));
await memory(last, Number(values.streams));
await idle(last, Number(values.idle));
await last.stop();

function report(all: readonly Start[]): void {
  console.log(`${all.length} starts with ${values.weights} weights, milliseconds since the spawn`);
  console.log('                              median    best');
  for (const name of Object.keys(all[0]!.marksMs))
    row(
      name,
      all.map((start) => start.marksMs[name]!),
    );
  row(
    'processor time',
    all.map((start) => start.processorMs),
  );
}

function row(name: string, numbers: readonly number[]): void {
  const best = Math.min(...numbers)
    .toFixed(0)
    .padStart(8);
  console.log(`  ${name.padEnd(26)}${median(numbers).toFixed(0).padStart(8)}${best}`);
}

async function idle(start: Start, seconds: number): Promise<void> {
  const before = start.processorTimeMs();
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  const share = (start.processorTimeMs() - before) / (seconds * 10);
  console.log(`idle for ${seconds} s: ${share.toFixed(2)} % of one processor`);
}

async function memory(start: Start, streams: number): Promise<void> {
  const print = (when: string) => {
    const { resident, files, anonymous } = start.memory();
    const mib = (bytes: number) => (bytes / MIB).toFixed(0);
    console.log(`${when}: ${mib(resident)} MiB resident (${mib(anonymous)} own, ${mib(files)} of files)`);
  };
  print('ready');
  const tokens = await streamAll(start.url, streams);
  print(`after ${streams} streams (${tokens} tokens)`);
  const { weights, pool } = await configured(start);
  const sizes = `weights of ${(weights / MIB).toFixed(0)} MiB, KV pool of ${(pool / MIB).toFixed(0)} MiB`;
  console.log(`beyond the ${sizes}: ${((start.memory().resident - weights - pool) / MIB).toFixed(0)} MiB`);
}

/** Bytes that the options make of weights and KV pool, touched or not. */
async function configured({ kvTokens, kvDtype }: Start): Promise<{ weights: number; pool: number }> {
  const { manifest, plan } = await cachedEngine({ model: model!, precision: values.weights });
  return {
    weights: manifest.weightsByteLength,
    pool: kvTokens * kvBytesPerBlock(plan.attention, 1, kvDtype as KvDtype),
  };
}
