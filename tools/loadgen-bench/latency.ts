import { availableParallelism } from 'node:os';
import { canPin, pinThisProcess } from '../loadgen/placement/pin.js';
import { allCompleted, optionsFor, pacedReference, runBenchmark, withServer } from './server.js';

const PER_SECOND = 500;
/** Short ones, side by side: what comes over the machine from outside spoils some of them, and no median. */
const ROUNDS = 30;
const SHARES = ['p50', 'p90', 'p99'] as const;
/** The server's processor, and that of all clients. */
const [SERVER_CPU, CLIENT_CPU] = ['0', '1'];

type Quantiles = Record<(typeof SHARES)[number], number>;

/**
 * What is measured of the same answers over raw sockets, through undici alone and by a worker, in turn, at the same rate,
 * from the same processor. A difference is that of two rounds beside one another.
 */
export async function addedLatency(seconds: number, delay: number): Promise<string[]> {
  const pins = canPin() && availableParallelism() > 1;
  const unpin = pins ? pinThisProcess(CLIENT_CPU) : null;
  try {
    return await withServer({ tokens: 0, delay, ...(pins ? { cpu: SERVER_CPU } : {}) }, async (server) => {
      const bare = pacedReference<Quantiles>('paced-undici', server, seconds, PER_SECOND);
      const raw = pacedReference<Quantiles>('paced-raw', server, seconds, PER_SECOND);
      const rounds: [raw: Quantiles, bare: Quantiles, own: Quantiles][] = [];
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

function tableOf(
  rounds: readonly (readonly [Quantiles, Quantiles, Quantiles])[],
  delay: number,
  seconds: number,
  pins: boolean,
): string[] {
  const lines = [
    `${rounds.length} rounds of ${PER_SECOND * seconds} requests; ${pins ? 'the server has one processor, the clients the other' : 'nothing was pinned'}.`,
    '',
    `| answers after ${delay} ms | raw sockets, ms | undici alone | skein bench | added to raw sockets, ms (95 %) | % of it (95 %) |`,
    '|---|---|---|---|---|---|',
  ];
  for (const share of SHARES) {
    const [raw, bare, own] = [0, 1, 2].map((client) =>
      medianOf(rounds.map((round) => round[client]![share])),
    );
    const added = medianOf(rounds.map(([a, , b]) => b[share] - a[share]));
    const percent = (ms: number) => (100 * ms) / raw!.median;
    const cells = [raw!, bare!, own!].map(({ median }) => median.toFixed(3));
    const range = `${added.low.toFixed(3)} to ${added.high.toFixed(3)}`;
    const share95 = `${percent(added.median).toFixed(1)} (${percent(added.low).toFixed(1)} to ${percent(added.high).toFixed(1)})`;
    lines.push(`| ${[share, ...cells, `${added.median.toFixed(3)} (${range})`, share95].join(' | ')} |`);
    console.log(lines.at(-1));
  }
  return lines;
}

/** With the interval of order statistics that holds the median of what they are of with at least 95 %, whatever its distribution. */
function medianOf(values: readonly number[]): { median: number; low: number; high: number } {
  const sorted = values.toSorted((a, b) => a - b);
  const n = sorted.length;
  // Chance that at most `left` of them lie below the median: of a binomial distribution.
  let [left, term, below] = [0, 0.5 ** n, 0.5 ** n];
  while (below <= 0.025) {
    left++;
    term *= (n - left + 1) / left;
    below += term;
  }
  const median = (sorted[(n - 1) >> 1]! + sorted[n >> 1]!) / 2;
  return { median, low: sorted[Math.max(0, left - 1)]!, high: sorted[Math.min(n - 1, n - left)]! };
}

/** How far sending is behind the schedule, by timers and by polling the clock. */
export async function issuePrecision(seconds: number): Promise<string[]> {
  const lines = ['| issued by | sent behind schedule p50 / p99 / p99.9, ms |', '|---|---|'];
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
      lines.push(`| ${busyWait ? 'polling (--busy-wait)' : 'timers'} | ${text} |`);
      console.log(lines.at(-1));
    }
  });
  return lines;
}
