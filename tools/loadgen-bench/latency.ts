import { allCompleted, optionsFor, reference, runBenchmark, withServer } from './server.js';

const PER_SECOND = 500;
const ROUNDS = 2;

interface Quantiles {
  p50: number;
  p90: number;
  p99: number;
}

/** What is measured of the same answers over raw sockets and through undici alone and by a worker, in turn, at the same rate. */
export async function addedLatency(seconds: number): Promise<string[]> {
  const lines = [
    '| the server answers after | over raw sockets p50 / p90 / p99, ms | undici alone | skein bench | added to raw sockets at p50 | at p99 |',
    '|---|---|---|---|---|---|',
  ];
  for (const delay of [20, 5, 0]) {
    await withServer({ tokens: 0, delay }, async (server) => {
      const [raw, bare, own]: [Quantiles[], Quantiles[], Quantiles[]] = [[], [], []];
      for (let round = 0; round < ROUNDS; round++) {
        raw.push(await reference<Quantiles>('paced-raw', server, seconds, PER_SECOND));
        bare.push(await reference<Quantiles>('paced-undici', server, seconds, PER_SECOND));
        const report = await runBenchmark(
          optionsFor(server, {
            stream: false,
            arrivals: { kind: 'poisson', rate: PER_SECOND },
            requests: PER_SECOND * seconds,
            warmup: 3000,
            seed: round,
          }),
        );
        const { p50, p90, p99 } = allCompleted(report).latencies.e2e;
        own.push({ p50: p50!, p90: p90!, p99: p99! });
      }
      const best = (of: readonly Quantiles[]) => {
        const least = (key: keyof Quantiles) => Math.min(...of.map((one) => one[key]));
        return { p50: least('p50'), p90: least('p90'), p99: least('p99') };
      };
      const [a, b] = [best(raw), best(own)];
      const text = ({ p50, p90, p99 }: Quantiles) => [p50, p90, p99].map((ms) => ms.toFixed(2)).join(' / ');
      const added = (key: keyof Quantiles) =>
        `${(b[key] - a[key]).toFixed(2)} ms, ${((100 * (b[key] - a[key])) / a[key]).toFixed(1)} %`;
      lines.push(
        `| ${delay === 0 ? 'at once' : `${delay} ms`} | ${text(a)} | ${text(best(bare))} | ${text(b)} | ${added('p50')} | ${added('p99')} |`,
      );
      console.log(lines.at(-1));
    });
  }
  return lines;
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
