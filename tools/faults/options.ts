import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FAULTS } from './kinds/index.js';

/** What a run is made of, as its flags say it. */
export interface RunOptions {
  requests: number;
  workers: number;
  prefill: number;
  gateways: number;
  concurrency: number;
  seed: number;
  /** Name of a router of another project, in place of gateways and NATS; empty: none. */
  router: string;
  /** Only requests of kinds whose name has this; empty: all. */
  kind: string;
  /** Faults of each kind, by flag. */
  counts: Readonly<Record<string, number>>;
  /** Numbers of the only requests that are asked; null: all. */
  only: readonly number[] | null;
  /** A plan in place of a drawn one; empty: none. */
  at: string;
}

/** What runs anywhere: where programs are and what they run with. */
export interface Surroundings {
  /** Path of nats-server. */
  nats: string | null;
  /** Folder of routers' programs. */
  routerFolder: string;
  environment: NodeJS.ProcessEnv;
  cacheDir: string;
}

const NUMBERS = {
  requests: { value: 200, help: 'requests, of all kinds' },
  workers: { value: 3, help: 'workers, or servers behind a router' },
  prefill: { value: 0, help: 'workers besides these that only compute prompts' },
  gateways: { value: 2, help: 'gateways' },
  concurrency: { value: 16, help: 'requests that are under way at once' },
} as const;

/** Flags as `parseArgs` takes them. */
export const FLAGS: Readonly<Record<string, { type: 'string' | 'boolean' }>> = {
  help: { type: 'boolean' },
  write: { type: 'boolean' },
  seed: { type: 'string' },
  router: { type: 'string' },
  kind: { type: 'string' },
  only: { type: 'string' },
  at: { type: 'string' },
  ...Object.fromEntries(
    [...Object.keys(NUMBERS), ...FAULTS.map(({ flag }) => flag)].map((name) => [name, { type: 'string' }]),
  ),
};

/** One fault of each kind for this many requests, where no flag asks for any. */
const REQUESTS_OF_A_FAULT = 100;

/** @throws with a sentence where a flag makes no sense */
export function runOptions(flags: Readonly<Record<string, string | boolean | undefined>>): RunOptions {
  const number = (name: string, otherwise: number) => {
    const text = flags[name];
    if (text === undefined) return otherwise;
    if (typeof text !== 'string' || !/^\d{1,9}$/.test(text))
      throw new Error(`--${name} is ${JSON.stringify(text)}; it must be a whole number.`);
    return Number(text);
  };
  const numbers = Object.fromEntries(
    Object.entries(NUMBERS).map(([name, { value }]) => [name, number(name, value)]),
  ) as Record<keyof typeof NUMBERS, number>;
  const isAsked = FAULTS.some(({ flag }) => flags[flag] !== undefined) || flags.at !== undefined;
  const usual = isAsked ? 0 : Math.max(1, Math.floor(numbers.requests / REQUESTS_OF_A_FAULT));
  return {
    ...numbers,
    seed: number('seed', Date.now() % 1_000_000),
    router: textOf(flags.router),
    kind: textOf(flags.kind),
    counts: Object.fromEntries(FAULTS.map(({ flag }) => [flag, number(flag, usual)])),
    only: flags.only === undefined ? null : textOf(flags.only).split(',').map(Number),
    at: textOf(flags.at),
  };
}

const textOf = (value: string | boolean | undefined) => (typeof value === 'string' ? value : '');

/** The command of a run, from which the same run comes. */
export function commandOf(options: RunOptions, more: Partial<Pick<RunOptions, 'only' | 'at'>> = {}): string {
  const { only, at, router, kind, seed } = { ...options, ...more };
  const parts = [`--seed ${seed}`];
  if (router !== '') parts.push(`--router ${router}`);
  if (kind !== '') parts.push(`--kind '${kind}'`);
  for (const [name, { value }] of Object.entries(NUMBERS)) {
    const own = options[name as keyof typeof NUMBERS];
    if (own !== value) parts.push(`--${name} ${own}`);
  }
  if (only !== null) parts.push(`--only ${only.join(',')}`);
  // Whether NATS is a cluster depends on the kinds of faults, so they are named along with a plan too.
  parts.push(...countsText(options.counts));
  if (at !== '') parts.push(`--at ${at}`);
  return `npm run faults -- ${parts.join(' ')}`;
}

/** Flags of the faults that there are. */
export const countsText = (counts: RunOptions['counts']): string[] =>
  Object.entries(counts).flatMap(([flag, count]) => (count > 0 ? [`--${flag} ${count}`] : []));

const row = (flag: string, help: string) => `  ${`--${flag}`.padEnd(22)}${help}\n`;

export const HELP = `Strikes workers, gateways and NATS while requests run, and compares every answer with a single server's.

${FAULTS.map(({ flag, help }) => row(`${flag} N`, help)).join('')}
Without any of these there is one of each kind for each ${REQUESTS_OF_A_FAULT} requests.

${Object.entries(NUMBERS)
  .map(([name, { value, help }]) => row(`${name} N`, `${help} (${value})`))
  .join(
    '',
  )}${row('router NAME', 'vllm-router or sglang-router in place of gateways and NATS (SKEIN_TEST_ROUTING: the folder of its program)')}${row('seed N', 'of requests and faults (the time of day, which is printed)')}${row('kind TEXT', 'only requests of kinds that have this in their name')}${row('only N,N', 'only these requests of the run')}${row('at PLAN', 'these faults, such as kill@120/7: kind, tokens that have come, seed of its own')}${row('write', 'runs the series of docs/architecture/faults.md, and writes its table')}
Exit code 1 if an answer differs, is lost, or comes twice, or anything is left of it.`;

/** Where engines of these runs are kept from one to the next. */
export const usualCacheDir = join(tmpdir(), 'skein-faults-cache');
