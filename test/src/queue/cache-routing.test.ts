import { afterAll, beforeAll, expect, it } from 'vitest';
import type { TokenRequest } from '../../../callbacks/token-request.js';
import type { QueueGateway } from '../../../cluster/gateway/queue-gateway.js';
import { promptHashes } from '../../../kvcache/block-hashes.js';
import { type LabWorker, QueueLab, until } from '../../../tools/support/queue/queue-lab.js';
import { tinyModelPath } from '../../../tools/support/test-engine.js';
import { stopProcess } from '../../support/rank-managers.js';
import { cleanEnvironment, testCacheDir } from '../support/skein-process.js';
import { describeWithNats, testNats } from '../support/test-nats.js';

const BLOCK = 8;
const WORKER = [
  ...['--model', `tiny=${tinyModelPath('gqa')}`, '--weights', 'f32', '--threads', '1'],
  ...['--cache-dir', testCacheDir, '--max-active-requests', '16', '--tokens-per-block', String(BLOCK)],
];
/** All beginnings fit into the three caches together, and not into each. */
const PREFIXES = 24;
const PREFIX_TOKENS = 64;
const TURNS = 5;
const SMALL = ['--kv-cache-tokens', String(Math.round(PREFIXES / 2.4) * (PREFIX_TOKENS + 24))];

const prefix = (i: number) =>
  Array.from({ length: PREFIX_TOKENS }, (_, k) => 3 + ((7 * i + 3 * k + i * k) % 50));
/** Each beginning again and again, in an order of no meaning. */
const TRACE: TokenRequest[] = Array.from({ length: PREFIXES * TURNS }, (_, n) => ({
  promptTokens: [...prefix((n * 7 + Math.floor(n / PREFIXES) * 5) % PREFIXES), 3 + (n % 50), 4 + (n % 11)],
  ...{ maxNewTokens: 6, temperature: 1, seed: BigInt(n) },
}));

interface Seen {
  tokens: number[];
  cachedTokens: number;
}

async function see(gateway: QueueGateway, model: string, request: TokenRequest): Promise<Seen> {
  const seen: Seen = { tokens: [], cachedTokens: 0 };
  for await (const piece of gateway.submit(model, request)[0]!) {
    seen.tokens.push(...piece.tokens);
    seen.cachedTokens += piece.cachedTokens ?? 0;
  }
  return seen;
}

const tokensOf = (all: readonly Seen[]) => all.map(({ tokens }) => tokens);
const cachedOf = (all: readonly Seen[]) => all.reduce((sum, { cachedTokens }) => sum + cachedTokens, 0);

describeWithNats('requests that are sent where they are cached', () => {
  let lab: QueueLab;
  let any: QueueGateway;

  /** A few at once, as long as there are any. */
  const run = async (
    gateway: QueueGateway,
    requests: readonly TokenRequest[],
    atOnce = 3,
  ): Promise<Seen[]> => {
    const seen: Seen[] = [];
    const left = requests.entries();
    const client = async () => {
      for (const [i, request] of left) seen[i] = await see(gateway, lab.model, request);
    };
    await Promise.all(Array.from({ length: atOnce }, client));
    return seen;
  };
  const salted = (requests: readonly TokenRequest[], cacheSalt: bigint) =>
    requests.map((request) => ({ ...request, cacheSalt }));
  const workersAre = (count: number, gateway = lab.gateway) =>
    until('the workers', () => gateway.numWorkersOf(lab.model) === count);
  const start = async (count: number): Promise<void> => {
    while (lab.workers.size < count) await lab.startWorker([...WORKER, ...SMALL]);
    await workersAre(count);
  };
  /** The worker to which a request like this is sent. */
  const favouriteOf = async (request: TokenRequest): Promise<LabWorker> => {
    let routed = lab.routed.at(-1)!;
    // A worker that is slow to answer on a busy machine is passed over.
    await until('a worker that takes it', async () => {
      const before = lab.routed.length;
      await see(lab.gateway, lab.model, request);
      routed = lab.routed.slice(before).at(-1) ?? routed;
      return lab.routed.length > before && routed.answer === 'taken';
    });
    expect(routed.cachedBlocks).toBeGreaterThan(4);
    return lab.find(routed.worker)!;
  };

  beforeAll(async () => {
    lab = await QueueLab.start({ nats: testNats!, environment: cleanEnvironment({}), routing: 'cache' });
    any = await lab.openGateway(undefined, undefined, 'any');
    await start(3);
    await workersAre(3, any);
  });
  afterAll(() => lab?.close());

  it('find more of their prompts than others, and have the same answers', async () => {
    const byChance = await run(any, salted(TRACE, 1n));
    const byCache = await run(lab.gateway, salted(TRACE, 2n));
    expect(tokensOf(byCache)).toEqual(tokensOf(byChance));
    const [found, foundByChance] = [cachedOf(byCache), cachedOf(byChance)];
    expect(found, `${found} of ${cachedOf(byChance)} tokens`).toBeGreaterThan(1.5 * foundByChance);
    const { direct, cached } = lab.gateway.routingOf(lab.model)!;
    expect(direct.taken).toBeGreaterThan(0.9 * TRACE.length);
    expect(cached).toBeGreaterThan(TRACE.length / 2);
    expect(any.routingOf(lab.model)).toBeNull();
  });

  it('know what is cached exactly', async () => {
    const request = { ...TRACE[0]!, cacheSalt: 3n };
    const first = await see(lab.gateway, lab.model, request);
    expect(first.cachedTokens).toBe(0);
    await until('the events of the first one', async () => {
      const before = lab.routed.length;
      const { cachedTokens } = await see(lab.gateway, lab.model, request);
      const { cachedBlocks, blocks } = lab.routed[before]!;
      expect(blocks).toBe(promptHashes({ salt: 3n }, request.promptTokens, BLOCK).length);
      return cachedTokens === cachedBlocks * BLOCK && cachedBlocks === blocks;
    });
  });

  it('are spread where many come at once', async () => {
    const many = Array.from({ length: 90 }, (_, i) => ({ ...TRACE[0]!, seed: BigInt(i), maxNewTokens: 12 }));
    const before = lab.routed.length;
    const seen = await run(lab.gateway, many, 90);
    for (const { tokens } of seen) expect(tokens.length).toBeGreaterThan(0);
    const taken = lab.routed.slice(before).filter(({ answer }) => answer === 'taken');
    expect(new Set(taken.map(({ worker }) => worker)).size).toBe(3);
  });

  it('pass over a favourite that is stopped, and one that is killed', async () => {
    const undisturbed = await run(lab.gateway, TRACE.slice(0, 12));
    const favourite = await favouriteOf(TRACE[0]!);
    await stopProcess(favourite.child.pid!);
    const many = Array.from({ length: 12 }, () => TRACE[0]!);
    const seen = await run(lab.gateway, many, 4);
    for (const { tokens } of seen) expect(tokens).toEqual(undisturbed[0]!.tokens);
    expect(lab.routed.some(({ worker, answer }) => worker === favourite.id && answer === 'silent')).toBe(
      true,
    );
    process.kill(favourite.child.pid!, 'SIGCONT');
    await until('the stopped one to be asked again', async () => {
      const before = lab.routed.length;
      await run(lab.gateway, TRACE.slice(0, PREFIXES));
      return lab.routed
        .slice(before)
        .some(({ worker, answer }) => worker === favourite.id && answer === 'taken');
    });
    const next = await favouriteOf(TRACE[0]!);
    const answers = run(lab.gateway, [...many, ...TRACE.slice(0, 12)], 6);
    await lab.kill(next);
    expect(tokensOf((await answers).slice(-12))).toEqual(tokensOf(undisturbed));
    expect(lab.gateway.size).toBe(0);
    await until('the stream to be empty', async () => (await lab.inStream()) === 0);
  });

  it('are routed again to a worker that comes, whose cache is empty', async () => {
    await start(3);
    const seen = await run(lab.gateway, salted(TRACE, 5n));
    expect(cachedOf(seen)).toBeGreaterThan((TRACE.length * PREFIX_TOKENS) / 3);
    expect(lab.warnings).toEqual([]);
  });

  it('go to workers that tell nothing of their caches through the stream', async () => {
    const mixed = await QueueLab.start({
      nats: testNats!,
      environment: cleanEnvironment({}),
      routing: 'cache',
    });
    try {
      await mixed.startWorker([...WORKER, ...SMALL, '--no-prefix-caching']);
      await until('the worker', () => mixed.gateway.numWorkersOf(mixed.model) === 1);
      const { tokens } = await see(mixed.gateway, mixed.model, TRACE[0]!);
      expect(tokens.length).toBeGreaterThan(0);
      expect(mixed.routed).toEqual([]);
      expect(mixed.gateway.routingOf(mixed.model)!.streamed).toBe(1);
    } finally {
      await mixed.close();
    }
  });
});
