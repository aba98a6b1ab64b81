import { markdownTable, tableRow } from '../../support/markdown-table.js';
import { allCompleted, optionsFor, reference, runBenchmark, withServer } from './server.js';

const SHAPES: [name: string, tokens: number][] = [
  ['whole answers of one token', 0],
  ['streams of 100 events', 100],
  ['streams of 1000 events', 1000],
];
const CONNECTIONS = 64;
const HEAD = [
  'answers',
  'client',
  'requests/s',
  'events/s',
  'its processor time',
  'requests per second of it',
  'events per second of it',
  'late by, p99 ms',
];

interface Rate {
  rate: number;
  cpu: number;
}

/** Requests and events a second of one worker, and what raw sockets and undici alone reach on this machine. */
export async function rates(seconds: number, progress: (line: string) => void): Promise<string[]> {
  const rows: string[][] = [];
  const row = (answers: string, client: string, tokens: number, { rate, cpu }: Rate, late: string) => {
    const events = (perSecond: number) => (tokens === 0 ? '' : (perSecond * tokens).toFixed(0));
    const cells = [answers, client, rate.toFixed(0), events(rate), `${(100 * cpu).toFixed(0)} %`];
    rows.push([...cells, (rate / cpu).toFixed(0), events(rate / cpu), late]);
    progress(tableRow(rows.at(-1)!));
  };
  for (const [name, tokens] of SHAPES) {
    await withServer({ tokens }, async (server) => {
      const report = await runBenchmark(
        optionsFor(server, {
          stream: tokens > 0,
          arrivals: { kind: 'concurrency', concurrency: CONNECTIONS },
          duration: seconds,
          warmup: 500,
        }),
      );
      const run = allCompleted(report);
      const [worker] = run.client.workers;
      const own = { rate: run.throughput.requests, cpu: worker!.cpu.mean };
      row(name, 'skein bench, one worker', tokens, own, worker!.loopDelayP99Ms.toFixed(1));
      const bare = await reference<Rate>('undici', server, Math.min(seconds, 4), CONNECTIONS);
      row(name, 'undici alone, no answer read', tokens, bare, '');
      const raw = await reference<Rate>('raw', server, Math.min(seconds, 4), CONNECTIONS);
      row(name, 'raw sockets, no answer read', tokens, raw, '');
    });
  }
  return [markdownTable(HEAD, rows, 2)];
}
