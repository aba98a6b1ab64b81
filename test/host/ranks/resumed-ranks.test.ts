import { InProcessHost, type TokenPiece, type TokenRequest } from 'skein';
import { afterAll, afterEach, expect, it } from 'vitest';
import type { OptionalParams } from '../../../callbacks/gpt-manager-options.js';
import type { Guide } from '../../../callbacks/guide.js';
import { openEngine } from '../../../engine/building/engine.js';
import { allOf } from '../../support/host-answers.js';
import { randomAdapter } from '../../support/random-adapter.js';
import { poll, RankManagers, rankProcesses } from '../../support/rank-managers.js';

const managers = new RankManagers();
const hosts: InProcessHost[] = [];
afterEach(async () => {
  await Promise.all(hosts.splice(0).map((host) => host.close({ abort: true })));
  await poll(() => rankProcesses().length === 0);
});
afterAll(() => managers.remove());

const TOKENS = 100;
const TOKENS_UNTIL_KILL = 250;

/** Forty requests of all kinds. */
function requestsFor(enginePath: string): TokenRequest[] {
  const adapter = randomAdapter(openEngine(enginePath).manifest.config, 5, { maxRank: 4 });
  const choice: Guide = {
    type: 'choice',
    guide: JSON.stringify(['the first answer of these', 'another one of them']),
  };
  const kinds: readonly Partial<TokenRequest>[] = [
    {},
    { temperature: 1, returnLogProbs: true, topLogProbs: 3 },
    { temperature: 1, numSequences: 3 },
    { guide: choice, endTokenIds: [0], temperature: 1 },
    { temperature: 1, stopWords: Array.from({ length: 12 }, (_, i) => [20 * i + 3]) },
    { temperature: 1, repetitionPenalty: 1.2, frequencyPenalty: 0.3, dryMultiplier: 0.8 },
    { beams: { width: 3 } },
    { temperature: 1, adapter, loraTaskId: 7n },
    { temperature: 1, streaming: false, returnLogProbs: true },
    { temperature: 1, mirostat: 2, minP: 0.02 },
  ];
  return Array.from({ length: 40 }, (_, i) => ({
    promptTokens: [5, 6, 7, i + 1, 8],
    maxNewTokens: TOKENS,
    temperature: 0,
    seed: BigInt(i),
    ...kinds[i % kinds.length],
  }));
}

async function start(params: OptionalParams, onResume: (numLost: number) => void = () => {}) {
  const host: InProcessHost = new InProcessHost({
    enginePath: await managers.engine(),
    modelType: 'InflightFusedBatching',
    maxBeamWidth: 3,
    schedulerPolicy: 'GUARANTEED_NO_EVICT',
    optionalParams: {
      ...{ threads: 1, maxSeqLen: 128, workerRestart: { delayMs: 1 }, peftCacheManagerConfig: {} },
      ...params,
    },
    onError: () => {},
    onStateChange: (state) => {
      if (state === 'running' && host.restarts > 0) onResume(host.lost);
    },
  });
  hosts.push(host);
  await host.ready;
  return host;
}

it.each<[string, OptionalParams, number]>([
  ['of ranks that share layers', { tensorParallelSize: 2, isolate: true }, 2],
  ['of stages', { pipelineParallelSize: 2, isolate: true }, 2],
  ['in a process of its own', { isolate: true }, 1],
])(
  'forty requests of all kinds go on in an engine %s, whichever process is killed',
  async (_, params, size) => {
    const undisturbed = await start({});
    const requests = requestsFor(await managers.engine());
    const expected = await allOf(undisturbed, requests);
    await undisturbed.close();
    let numResumed = 0;
    const host = await start(params, (numLost) => (numResumed += numLost));
    // Each time that this many tokens have come, another process ends, once the one before has been replaced.
    let untilKill = TOKENS_UNTIL_KILL;
    let kills = 0;
    let most = 0;
    const isWanted = () => kills < 2 * size || numResumed < 20;
    const kill = ({ tokens }: TokenPiece) => {
      untilKill -= tokens.length;
      if (untilKill > 0 || kills > host.restarts || kills === most || host.state !== 'running') return;
      untilKill = TOKENS_UNTIL_KILL;
      process.kill(rankProcesses()[kills++ % size]!, 'SIGKILL');
    };
    // No request is in more than two losses: beams, which have no token before their end, would seem to kill engines. A tiny model may be done
    // before a signal takes effect, so the same are asked again and again.
    while (isWanted()) {
      await poll(() => host.restarts >= kills && host.state === 'running');
      most = kills + 2;
      expect(await allOf(host, requests, kill)).toEqual(expected);
    }
    await poll(() => host.restarts >= kills && host.state === 'running');
    expect(host.size).toBe(0);
    await host.close();
    await poll(() => rankProcesses().length === 0);
  },
);
