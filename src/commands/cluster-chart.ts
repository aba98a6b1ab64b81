import { counted } from '../../base/sentences.js';
import type { ClusterLoad } from './cluster-flags.js';
import type { PolicyResult } from './simulate-cluster.js';

const BAR_WIDTH = 30;
const HEAD = [
  'routing',
  'found in caches',
  'first token p50',
  'p90',
  'p99',
  'last token p50',
  'p99',
  'moved',
];

/**
 * A line for each way of choosing workers, and what was found in caches as bars.
 *
 *   routing   found in caches   first token p50     p90     p99   last token p50     p99   moved
 *   random             17.5 %            1.56 s   5.1 s   9.5 s           2.31 s   9.9 s       0
 *   queue-cache        57.5 %            0.56 s   2.1 s   4.5 s           1.31 s   5.9 s       0
 *   gateway busy: 12 % with queue-cache
 *
 *   random   ▇▇▇▇▇▇▇
 *   cache    ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇
 */
export function clusterChart(load: ClusterLoad, results: readonly PolicyResult[]): string {
  const rows = [HEAD, ...results.map(cells)];
  const widths = HEAD.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const table = rows.map((row) =>
    row
      .map((text, column) => (column === 0 ? text.padEnd(widths[0]!) : text.padStart(widths[column]! + 3)))
      .join(''),
  );
  const bars = results.map((result) => {
    const bar = '▇'.repeat(Math.round(BAR_WIDTH * foundIn(result)));
    return `${result.routing.padEnd(widths[0]!)}   ${bar}`.trimEnd();
  });
  return `${[...headOf(load), '', ...table, ...gatewayLine(results), '', ...bars].join('\n')}\n`;
}

/** What its gateways have done where they took time. */
function gatewayLine(results: readonly PolicyResult[]): string[] {
  const told = results.flatMap(({ routing, gatewayBusy }) =>
    gatewayBusy > 0 ? [`${(100 * gatewayBusy).toFixed(1)} % with ${routing}`] : [],
  );
  return told.length === 0 ? [] : [`gateway busy: ${told.join(', ')}`];
}

function headOf(load: ClusterLoad): string[] {
  const { workers, blocks, tokensPerBlock, maxActiveRequests, pace, requests, rate, prefixes } = load;
  const { prefixTokens, turns, ownTokens, newTokens, deaths, rollingUpdate, restartSeconds } = load;
  const befalls = [
    ...(deaths > 0 ? [counted(deaths, 'death')] : []),
    ...(rollingUpdate > 0 ? [`all replaced, ${rollingUpdate} at once`] : []),
  ];
  return [
    `${counted(workers, 'worker')} with ${blocks} blocks of ${tokensPerBlock} tokens and ${counted(maxActiveRequests, 'place')}; ${pace.iterationMs} ms an iteration, ${pace.contextTokenMs} ms a prompt token, ${pace.generationMs} ms a token`,
    `${counted(requests, 'request')}, ${rate} a second, in conversations of ${counted(turns, 'turn')} with ${ownTokens} + ${newTokens} tokens after one of ${counted(prefixes, 'beginning')} of ${prefixTokens}`,
    ...(befalls.length === 0 ? [] : [`${befalls.join(', ')}; ${restartSeconds} s to start again`]),
  ];
}

function foundIn({ cachedTokens, promptTokens }: PolicyResult): number {
  return cachedTokens / promptTokens;
}

function cells(result: PolicyResult): string[] {
  const { routing, firstTokenMs, lastTokenMs, moved } = result;
  const times = [firstTokenMs.p50, firstTokenMs.p90, firstTokenMs.p99, lastTokenMs.p50, lastTokenMs.p99];
  return [
    routing,
    `${(100 * foundIn(result)).toFixed(1)} %`,
    ...times.map((ms) => `${(ms / 1000).toFixed(2)} s`),
    String(moved),
  ];
}
