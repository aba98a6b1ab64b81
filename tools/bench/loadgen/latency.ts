import { availableParallelism } from 'node:os';
import { canPin, pinThisProcess } from '../../../loadgen/placement.js';
import { Random } from '../../../loadgen/random.js';
import { markdownTable } from '../../support/markdown-table.js';
import { allCompleted, optionsFor, pacedReference, runBenchmark, withServer } from './server.js';

const PER_SECOND = 500;
/** Short ones, side by side: what comes over the machine from outside spoils some of them. */
const ROUNDS = 18;
/** The server's processor, and that of all clients. */
const [SERVER_CPU, CLIENT_CPU] = ['0', '1'];

interface Quantiles {
  p50: number;
  p90: number;
  p99: number;
}

/**
 * Latencies of the same answers over raw sockets, through undici alone and by a worker, in turn, at the same
 * rate, from the same processor. A difference is that of two consecutive rounds.
 */
export async function addedLatency(seconds: number, delay: number): Promise<string[]> {
  const pins = canPin() && availableParallelism() > 1;
  const unpin = pins ? pinThisProcess(CLIENT_CPU) : null;
  try {
    return await withServer({ tokens: 0, delay, ...(pins ? { cpu: SERVER_CPU } : {}) }, async (server) => {
      const bare = pacedReference<Quantiles>('paced-undici', server, seconds, PER_SECOND);
      const raw = pacedReference<Quantiles>('paced-raw', server, seconds, PER_SECOND);
      const rounds: Round[] = [];
      const report = await runBenchmark(
        optionsFor(server, {
          stream: false,
          arrivals: { kind: 'poisson', rate: PER_SECOND },
          requests: PER_SECOND * seconds,
          // The first is for warming up, of all of them.
          repeat: ROUNDS + 1,
          warmup: 3000,
          cpuAffinity: false,
        }),
        {
          onRun: async ({ latencies }) => {
            const { p50, p90, p99 } = latencies.e2e;
            rounds.push([await raw.round(), await bare.round(), { p50: p50!, p90: p90!, p99: p99! }]);
          },
        },
      );
      allCompleted(report);
      bare.close();
      raw.close();
      return tableOf(rounds.slice(1), delay, seconds, pins);
    });
  } finally {
    unpin?.();
  }
}

type Round = readonly [raw: Quantiles, bare: Quantiles, own: Quantiles];

/** Rows of the table: a percentile of each round, and which of the rounds' values is taken, counted from the least. */
const ROWS: readonly [name: string, key: keyof Quantiles, share: number][] = [
  ['p50', 'p50', 0.5],
  ['p90', 'p90', 0.5],
  ['p99', 'p99', 0.5],
  ['p99 of the calmest quarter of rounds', 'p99', 0.25],
];

function tableOf(rounds: readonly Round[], delay: number, seconds: number, pins: boolean): string[] {
  const rows = ROWS.map(([name, key, share]) => {
    const of = (some: readonly Round[], client: 0 | 1 | 2) =>
      atShare(
        some.map((round) => round[client][key]),
        share,
      );
    const added = (some: readonly Round[]) => of(some, 2) - of(some, 0);
    const raw = of(rounds, 0);
    const [low, high] = bootstrap(rounds, added);
    const cells = [raw, of(rounds, 1), of(rounds, 2)].map((ms) => ms.toFixed(3));
    const text = (unit: number, digits: number) =>
      `${(added(rounds) * unit).toFixed(digits)} (${(low * unit).toFixed(digits)} to ${(high * unit).toFixed(digits)})`;
    return [name, ...cells, text(1, 3), text(100 / raw, 1)];
  });
  const head = [
    `answers after ${delay} ms`,
    'raw sockets, ms',
    'undici alone',
    'skein bench',
    'added to raw sockets, ms (95 %)',
    '% of it (95 %)',
  ];
  return [
    `${rounds.length} rounds of ${PER_SECOND * seconds} requests; ${pins ? 'the server has one processor, the clients the other' : 'nothing was pinned'}.`,
    '',
    markdownTable(head, rows),
  ];
}

function atShare(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const at = share * (sorted.length - 1);
  const below = sorted[Math.floor(at)]!;
  return below + (at - Math.floor(at)) * (sorted[Math.ceil(at)]! - below);
}

/** 95 % interval of what is found of the rounds, whatever their distribution: they are drawn again, with repetition. */
function bootstrap(rounds: readonly Round[], find: (some: readonly Round[]) => number): [number, number] {
  const random = new Random(1);
  const found = Array.from({ length: 2000 }, () =>
    find(rounds.map(() => rounds[random.below(rounds.length)]!)),
  );
  return [atShare(found, 0.025), atShare(found, 0.975)];
}

/** Delay of sending relative to the schedule, by timers and by polling the clock. */
export async function issuePrecision(seconds: number): Promise<string[]> {
  const rows: string[][] = [];
  await withServer({ tokens: 0 }, async (server) => {
    for (const busyWait of [false, true]) {
      const report = await runBenchmark(
        optionsFor(server, {
          stream: false,
          arrivals: { kind: 'poisson', rate: PER_SECOND },
          requests: PER_SECOND * seconds,
          warmup: 100,
          busyWait,
        }),
      );
      const { p50, p99, p999 } = allCompleted(report).latencies.queueing;
      const text = [p50, p99, p999].map((ms) => ms!.toFixed(3)).join(' / ');
      rows.push([busyWait ? 'polling (--busy-wait)' : 'timers', text]);
    }
  });
  return [markdownTable(['issued by', 'sent behind schedule p50 / p99 / p99.9, ms'], rows)];
}
