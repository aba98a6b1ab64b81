import { cachedEngine } from '../../../engine/building/engine-cache.js';
import { weightBytesOf } from '../../../engine/directory/engine-directory.js';
import type { KvDtype } from '../../../kvcache/cache-shape.js';
import { kvBytesPerBlock } from '../../../kvcache/kv-cache-size.js';
import { countOf } from '../../compare/flags.js';
import { markdownTable } from '../../support/markdown-table.js';
import { median } from '../../support/statistics.js';
import { defineBench } from '../bench.js';
import { MODEL_FLAG, modelOf, positiveOf } from '../flags.js';
import { type Start, startServer } from './server-process.js';
import { streamAll } from './streams.js';

const FLAGS = {
  ...MODEL_FLAG,
  weights: { argument: 'TYPE', default: 'bf16', help: 'f32, bf16, int8 or int4 (default bf16)' },
  starts: { argument: 'N', default: '9', help: 'starts that are counted (default 9)' },
  streams: { argument: 'N', default: '64', help: 'streams between the two idle times (default 64)' },
  idle: { argument: 'N', default: '10', help: 'seconds of each idle time (default 10)' },
} as const;
const MIB = 2 ** 20;

/**
 * Time of a start of `skein serve`, by its steps, and the memory that the server holds.
 *
 * The engine is built first where the cache lacks it, and one start that is not counted warms the system's file cache. Then
 * come N starts, each with the milliseconds from the spawn to the first 200 of GET /health, the marks on the way there and
 * the processor time of all threads. The report has the medians and the best of all, which is what to compare on a machine
 * that does other work. The last server then idles, answers streams, and idles again; its resident memory is read when it
 * is ready and after the streams.
 */
export const bench = defineBench({
  flags: FLAGS,
  document: null,
  sections: [],
  rest: 'FLAGS OF SERVE',
  async run(flags, { progress, report }, rest) {
    const model = modelOf(flags);
    const args = ['--model', model, '--weights', flags.weights, ...rest];
    const [count, streams] = [countOf('starts', flags.starts), countOf('streams', flags.streams)];
    const seconds = positiveOf('idle', flags.idle);
    await (await startServer(args)).stop();
    const starts: Start[] = [];
    for (let i = 0; i < count; i++) {
      const start = await startServer(args);
      starts.push(start);
      progress(`start ${i + 1} of ${count}`);
      if (i + 1 < count) await start.stop();
    }
    const last = starts.at(-1)!;
    const before = await idle(last, seconds);
    const held = await memory({ ...last, model }, streams, flags.weights);
    const after = await idle(last, seconds);
    await last.stop();
    report({
      section: 'start',
      conditions: `${count} starts with ${flags.weights} weights, milliseconds since the spawn`,
      lines: [startTable(starts), '', before, ...held, after],
    });
  },
});

function startTable(starts: readonly Start[]): string {
  const row = (name: string, numbers: readonly number[]) => [
    name,
    median(numbers).toFixed(0),
    Math.min(...numbers).toFixed(0),
  ];
  const marks = Object.keys(starts[0]!.marksMs);
  return markdownTable(
    ['', 'median', 'best'],
    [
      ...marks.map((name) =>
        row(
          name,
          starts.map((start) => start.marksMs[name]!),
        ),
      ),
      row(
        'processor time',
        starts.map((start) => start.processorMs),
      ),
    ],
  );
}

async function idle(start: Start, seconds: number): Promise<string> {
  const before = start.processorTimeMs();
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  const share = (start.processorTimeMs() - before) / (seconds * 10);
  return `idle for ${seconds} s: ${share.toFixed(2)} % of one processor`;
}

/** Resident memory when the server is ready, after the streams, and beyond what the options make of weights and pool. */
async function memory(
  start: Start & { model: string },
  streams: number,
  precision: string,
): Promise<string[]> {
  const line = (when: string) => {
    const { resident, files, anonymous } = start.memory();
    const mib = (bytes: number) => (bytes / MIB).toFixed(0);
    return `${when}: ${mib(resident)} MiB resident (${mib(anonymous)} own, ${mib(files)} of files)`;
  };
  const ready = line('ready');
  const tokens = await streamAll(start.url, streams);
  const after = line(`after ${streams} streams (${tokens} tokens)`);
  const { weights, pool } = await configured(start, precision);
  const sizes = `weights of ${(weights / MIB).toFixed(0)} MiB, KV pool of ${(pool / MIB).toFixed(0)} MiB`;
  const beyond = (start.memory().resident - weights - pool) / MIB;
  return [ready, after, `beyond the ${sizes}: ${beyond.toFixed(0)} MiB`];
}

/** Bytes that the options make of weights and KV pool, touched or not. */
async function configured(
  { model, kvTokens, kvDtype }: Start & { model: string },
  precision: string,
): Promise<{ weights: number; pool: number }> {
  const { manifest, plan } = await cachedEngine({ model, precision });
  return {
    weights: weightBytesOf(manifest),
    pool: kvTokens * kvBytesPerBlock(plan.caches, 1, kvDtype as KvDtype),
  };
}
