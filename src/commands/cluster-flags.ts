import { MAX_INT32 } from '../../base/int32.js';
import { COUNT, mustBe, numberIn, type Values, wholeNumber } from '../../base/option-values.js';
import { type Pace, ROUTING_POLICIES, type RoutingPolicy } from '../../cluster/simulation/cluster-types.js';
import { GATEWAY_COST, type GatewayCost } from '../../cluster/simulation/gateway-loop.js';
import { UsageError } from '../errors/user-errors.js';
import { flagName } from '../options/table.js';

/** Flags of `skein simulate --workers` as commander gives them, without those that other simulations have too. */
export interface ClusterFlags {
  workers: string;
  routing?: string;
  rate?: string;
  requests?: string;
  seed?: string;
  json?: boolean;
  prefixes?: string;
  prefixTokens?: string;
  ownTokens?: string;
  newTokens?: string;
  turns?: string;
  blocks?: string;
  tokensPerBlock?: string;
  maxActiveRequests?: string;
  iterationUs?: string;
  contextTokenUs?: string;
  generationUs?: string;
  gatewayRequestUs?: string;
  gatewayTokenUs?: string;
  gatewayMessageUs?: string;
  deaths?: string;
  rollingUpdate?: string;
  restartSeconds?: string;
}

/** Workers, their load, and what befalls them. */
export interface ClusterLoad {
  workers: number;
  routing: readonly RoutingPolicy[];
  rate: number;
  requests: number;
  seed: number;
  prefixes: number;
  prefixTokens: number;
  ownTokens: number;
  newTokens: number;
  turns: number;
  blocks: number;
  tokensPerBlock: number;
  maxActiveRequests: number;
  pace: Pace;
  /** Of queue and queue-cache. */
  gateway: GatewayCost;
  deaths: number;
  /** Workers that are replaced at once; 0: none are. */
  rollingUpdate: number;
  restartSeconds: number;
}

const MAX_WORKERS = 100_000;
const MAX_REQUESTS = 2_000_000;
/** Over all workers: some 30 bytes each, and several hundred where one is cached. */
const MAX_BLOCKS = 50_000_000;
const MAX_GENERATED = 1_000_000_000;
const LENGTH = wholeNumber(1, 1_000_000);
const MICROSECONDS = numberIn({ min: 0, max: 1e9, integer: false });
const PREFIXES_PER_WORKER = 5;

/** @throws UsageError for a flag that is wrong, or for several that are too much together */
export function clusterLoad(flags: ClusterFlags): ClusterLoad {
  const read = (name: keyof ClusterFlags, preset: number, values: Values<number>) =>
    numberOf(`--${flagName(name)}`, flags[name] as string | undefined, preset, values);
  const workers = read('workers', Number.NaN, wholeNumber(1, MAX_WORKERS));
  const us = (name: keyof ClusterFlags, preset: number) => read(name, preset, MICROSECONDS) / 1000;
  const load: ClusterLoad = {
    workers,
    routing: policiesOf(flags.routing),
    rate: read('rate', workers, numberIn({ min: 1e-3, max: 1e7, integer: false })),
    requests: read('requests', 10_000, wholeNumber(1, MAX_REQUESTS)),
    seed: read('seed', 1, COUNT),
    prefixes: read('prefixes', PREFIXES_PER_WORKER * workers, wholeNumber(1, 1_000_000)),
    prefixTokens: read('prefixTokens', 1024, wholeNumber(0, 1_000_000)),
    ownTokens: read('ownTokens', 128, LENGTH),
    newTokens: read('newTokens', 64, LENGTH),
    turns: read('turns', 3, wholeNumber(1, 1000)),
    blocks: read('blocks', 600, LENGTH),
    tokensPerBlock: read('tokensPerBlock', 32, wholeNumber(1, 1024)),
    maxActiveRequests: read('maxActiveRequests', 64, wholeNumber(1, 100_000)),
    pace: {
      iterationMs: us('iterationUs', 1000),
      contextTokenMs: us('contextTokenUs', 800),
      generationMs: us('generationUs', 3000),
    },
    gateway: {
      requestMs: us('gatewayRequestUs', 1000 * GATEWAY_COST.requestMs),
      tokenMs: us('gatewayTokenUs', 1000 * GATEWAY_COST.tokenMs),
      messageMs: us('gatewayMessageUs', 1000 * GATEWAY_COST.messageMs),
    },
    deaths: read('deaths', 0, wholeNumber(0, 1_000_000)),
    rollingUpdate: read('rollingUpdate', 0, wholeNumber(0, MAX_WORKERS)),
    restartSeconds: read('restartSeconds', 30, numberIn({ min: 1e-3, max: 1e6, integer: false })),
  };
  if (flags.restartSeconds !== undefined && flags.deaths === undefined && flags.rollingUpdate === undefined) {
    throw new UsageError(
      '--restart-seconds is for --deaths and --rolling-update: without them no worker starts again.',
    );
  }
  checkTogether(load);
  return load;
}

function policiesOf(text: string | undefined): RoutingPolicy[] {
  if (text === undefined || text === 'all') return [...ROUTING_POLICIES];
  return text.split(',').map((name) => {
    const policy = ROUTING_POLICIES.find((one) => one === name.trim());
    if (policy !== undefined) return policy;
    throw new UsageError(
      `--routing is "${text}"; it must be all, or a list of ${ROUTING_POLICIES.join(', ')} with commas between them.`,
    );
  });
}

function checkTogether(load: ClusterLoad): void {
  const { workers, requests, blocks, tokensPerBlock, prefixes, prefixTokens, newTokens, rollingUpdate } =
    load;
  const { ownTokens, turns, pace } = load;
  if (rollingUpdate >= workers && rollingUpdate > 0) {
    throw new UsageError(
      `--rolling-update is ${rollingUpdate}; with --workers ${workers} it must be at most ${workers - 1}, so that one worker is left.`,
    );
  }
  if (pace.iterationMs + pace.generationMs === 0) {
    throw new UsageError('--iteration-us and --generation-us are 0: an iteration has to take some time.');
  }
  const longest = prefixTokens + turns * (ownTokens + newTokens);
  if (longest > blocks * tokensPerBlock) {
    throw new UsageError(
      `The longest request has ${longest} tokens (--prefix-tokens, and --own-tokens and --new-tokens in each turn), and a worker has room for ${blocks * tokensPerBlock} (--blocks of --tokens-per-block).`,
    );
  }
  const sums = [
    ['--workers with --blocks', workers * blocks, MAX_BLOCKS, 'blocks'],
    ['--requests with --new-tokens', requests * newTokens, MAX_GENERATED, 'generated tokens'],
    [
      '--prefixes with --prefix-tokens, and --requests with --own-tokens and --new-tokens,',
      prefixes * prefixTokens + (requests + turns) * (ownTokens + newTokens),
      MAX_INT32,
      'different tokens',
    ],
  ] as const;
  for (const [flags, sum, most, what] of sums) {
    if (sum > most) throw new UsageError(`${flags} make ${sum} ${what}; a simulation has at most ${most}.`);
  }
}

function numberOf(flag: string, text: string | undefined, preset: number, values: Values<number>): number {
  if (text === undefined) return preset;
  const value = text.trim() === '' ? Number.NaN : Number(text);
  if (values.accepts(value)) return value;
  throw new UsageError(`${flag} is "${text}"; it must be ${mustBe(values, value)}.`);
}
