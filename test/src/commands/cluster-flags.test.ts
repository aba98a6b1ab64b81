import { describe, expect, it } from 'vitest';
import { GATEWAY_COST } from '../../../cluster/simulation/gateway-loop.js';
import { clusterChart } from '../../../src/commands/cluster-chart.js';
import { type ClusterFlags, clusterLoad } from '../../../src/commands/cluster-flags.js';
import { type SimulateFlags, simulateCommandLine } from '../../../src/commands/simulate.js';
import type { PolicyResult } from '../../../src/commands/simulate-cluster.js';

const SPREAD = { mean: 1, p50: 1500, p90: 2500, p99: 12_345, max: 20_000 };
const RESULT: PolicyResult = {
  ...{ routing: 'cache', requests: 10, promptTokens: 1000, cachedTokens: 500, contextTokens: 500 },
  ...{
    generatedTokens: 40,
    firstTokenMs: SPREAD,
    lastTokenMs: SPREAD,
    moved: 3,
    mostWaiting: 0,
    gatewayBusy: 0,
  },
  ...{ iterations: 77, endMs: 1e4 },
};

describe('the flags of skein simulate --workers', () => {
  it('have presets for all but the number of workers', () => {
    expect(clusterLoad({ workers: '10' })).toEqual({
      ...{
        workers: 10,
        routing: ['random', 'fewest-requests', 'queue', 'queue-cache', 'cache'],
        rate: 10,
        requests: 10_000,
      },
      ...{ seed: 1, prefixes: 50, prefixTokens: 1024, ownTokens: 128, newTokens: 64, turns: 3, blocks: 600 },
      ...{ tokensPerBlock: 32, maxActiveRequests: 64, deaths: 0, rollingUpdate: 0, restartSeconds: 30 },
      pace: { iterationMs: 1, contextTokenMs: 0.8, generationMs: 3 },
      gateway: GATEWAY_COST,
    });
    const costs = { gatewayRequestUs: '0', gatewayTokenUs: '1.5', gatewayMessageUs: '20' };
    expect(clusterLoad({ workers: '10', ...costs }).gateway).toEqual({
      ...{ requestMs: 0, tokenMs: 0.0015, messageMs: 0.02 },
    });
    expect(clusterLoad({ workers: '10', routing: 'cache, random' }).routing).toEqual(['cache', 'random']);
    for (const flag of ['deaths', 'rollingUpdate']) {
      expect(clusterLoad({ workers: '10', [flag]: '0', restartSeconds: '5' }).restartSeconds).toBe(5);
    }
  });

  it.each<[Partial<ClusterFlags>, string]>([
    [{ workers: '0' }, '--workers is "0"; it must be a whole number from 1 to 100000.'],
    [{ workers: '' }, '--workers is ""; it must be a whole number from 1 to 100000.'],
    [{ workers: '1e9' }, '--workers is "1e9"'],
    [
      { routing: 'best' },
      '--routing is "best"; it must be all, or a list of random, fewest-requests, queue, queue-cache, cache',
    ],
    [{ routing: '' }, '--routing is ""'],
    [{ requests: '3000000' }, '--requests is "3000000"; it must be a whole number from 1 to 2000000.'],
    [{ rate: '0' }, '--rate is "0"'],
    [{ prefixTokens: '-1' }, '--prefix-tokens is "-1"'],
    [{ newTokens: '0' }, '--new-tokens is "0"'],
    [{ gatewayMessageUs: '-1' }, '--gateway-message-us is "-1"'],
    [{ contextTokenUs: 'fast' }, '--context-token-us is "fast"'],
    [{ deaths: '1.5' }, '--deaths is "1.5"'],
    [{ restartSeconds: '0' }, '--restart-seconds is "0"'],
    [
      { restartSeconds: '5' },
      '--restart-seconds is for --deaths and --rolling-update: without them no worker starts again.',
    ],
    [
      { iterationUs: '0', generationUs: '0' },
      '--iteration-us and --generation-us are 0: an iteration has to take some time.',
    ],
    [
      { rollingUpdate: '4' },
      '--rolling-update is 4; with --workers 4 it must be at most 3, so that one worker is left.',
    ],
    [
      { blocks: '49' },
      'The longest request has 1600 tokens (--prefix-tokens, and --own-tokens and --new-tokens in each turn), and a worker has room for 1568 (--blocks of --tokens-per-block).',
    ],
    [
      { workers: '100000' },
      '--workers with --blocks make 60000000 blocks; a simulation has at most 50000000.',
    ],
    [
      { requests: '2000000', newTokens: '600' },
      '--requests with --new-tokens make 1200000000 generated tokens',
    ],
    [
      { prefixes: '1000000', prefixTokens: '10000' },
      'different tokens; a simulation has at most 2147483647.',
    ],
  ])('are refused with one sentence: %j', (flags, message) => {
    expect(() => clusterLoad({ workers: '4', ...flags })).toThrow(message);
  });

  it.each<[string | undefined, SimulateFlags, string]>([
    ['plan.json', { workers: '4' }, '--workers and plan.json exclude each other.'],
    [undefined, { workers: '4', batcher: '{}' }, '--batcher and --workers exclude each other.'],
    [undefined, { workers: '4', batchUs: '3' }, '--batch-us is for --batcher.'],
    [undefined, { batcher: '{}', deaths: '3' }, '--deaths is for --workers.'],
    [undefined, { rollingUpdate: '3' }, '--rolling-update is for --workers.'],
    [undefined, { rate: '3' }, '--rate is for --batcher and --workers; a file says it for each request.'],
    [undefined, {}, "missing required argument 'FILE.json', or --batcher, or --workers."],
  ])('go with no other simulation: %s %j', async (path, flags, message) => {
    await expect(simulateCommandLine(path, flags)).rejects.toThrow(message);
  });

  it('and what came of them are shown in a screen', () => {
    const load = clusterLoad({ workers: '10', deaths: '1', rollingUpdate: '2' });
    expect(
      clusterChart(load, [RESULT, { ...RESULT, routing: 'random', cachedTokens: 100 }]).split('\n'),
    ).toEqual([
      '10 workers with 600 blocks of 32 tokens and 64 places; 1 ms an iteration, 0.8 ms a prompt token, 3 ms a token',
      '10000 requests, 10 a second, in conversations of 3 turns with 128 + 64 tokens after one of 50 beginnings of 1024',
      '1 death, all replaced, 2 at once; 30 s to start again',
      '',
      'routing   found in caches   first token p50      p90       p99   last token p50       p99   moved',
      'cache              50.0 %            1.50 s   2.50 s   12.35 s           1.50 s   12.35 s       3',
      'random             10.0 %            1.50 s   2.50 s   12.35 s           1.50 s   12.35 s       3',
      '',
      'cache     ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇',
      'random    ▇▇▇',
      '',
    ]);
    const busy = { ...RESULT, routing: 'queue-cache' as const, gatewayBusy: 0.1234 };
    expect(clusterChart(load, [RESULT, busy])).toContain('\ngateway busy: 12.3 % with queue-cache\n\ncache ');
  });
});
