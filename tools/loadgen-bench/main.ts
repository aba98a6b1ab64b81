// What the load generator itself can do: one worker process against a server of prebuilt answers.
//
//   npm run build:ts && npx tsx tools/loadgen-bench/main.ts [--seconds 8] [--write]
//
// The server is a process of its own; generator, its coordinator and the server share the machine's processors.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { describeMachine, machineLine, sectionOf } from '../compare/machine.js';
import { writeSection } from '../document-section.js';
import type { runBenchmark as RunBenchmark } from '../loadgen/index.js';

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '8' }, write: { type: 'boolean', default: false } },
});
// As it is built: worker processes are started from there.
const library = new URL('../../dist/tools/loadgen/index.js', import.meta.url).href;
const { runBenchmark } = (await import(library)) as { runBenchmark: typeof RunBenchmark };

const SHAPES: [name: string, tokens: number, concurrency: number][] = [
  ['whole answers of one token', 0, 64],
  ['streams of 100 events', 100, 64],
  ['streams of 1000 events', 1000, 64],
];

const lines = [
  '| answers | connections | requests/s | events/s | worker busy | its processor time | late by, p99 ms |',
  '|---|---|---|---|---|---|---|',
];
for (const [name, tokens, concurrency] of SHAPES) {
  const script = fileURLToPath(new URL('./prebuilt-server.mjs', import.meta.url));
  const server = spawn(process.execPath, [script, String(tokens)], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [port] = (await once(server.stdout!.setEncoding('utf8'), 'data')) as [string];
  const report = await runBenchmark({
    url: `http://127.0.0.1:${port.trim()}`,
    model: 'm',
    stream: tokens > 0,
    arrivals: { kind: 'concurrency', concurrency },
    duration: Number(values.seconds),
    data: {
      kind: 'random',
      inputTokens: { kind: 'fixed', tokens: 20 },
      outputTokens: { kind: 'fixed', tokens: 16 },
      samples: 100,
    },
    workers: 1,
    warmup: 500,
    scrape: false,
    calibrate: false,
  });
  server.kill();
  const [run] = report.runs;
  const [worker] = run!.client.workers;
  const failed = run!.requests.total - run!.requests.outcomes.completed;
  if (failed > 0) throw new Error(`${failed} requests failed: ${JSON.stringify(run!.requests.messages[0])}`);
  const percent = (share: number) => `${(100 * share).toFixed(0)} %`;
  lines.push(
    `| ${name} | ${concurrency} | ${run!.throughput.requests.toFixed(0)} | ${(run!.tokens.pieces / run!.seconds).toFixed(0)} | ` +
      `${percent(worker!.eventLoopUtilization.mean)} | ${percent(worker!.cpu.mean)} | ${worker!.loopDelayP99Ms.toFixed(1)} |`,
  );
  console.log(lines.at(-1));
}
const machine = describeMachine();
const text = `${machineLine(machine)}; ${values.seconds} s each.\n\n${lines.join('\n')}`;
if (values.write) writeSection('BENCHMARKS.md', sectionOf('loadgen', machine), text);
