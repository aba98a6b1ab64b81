import { describeMachine } from '../../../base/machine.js';
import type { QueueGateway } from '../../../cluster/gateway/queue-gateway.js';
import { countOf, type FlagValues } from '../../compare/flags.js';
import { cpuMs } from '../../support/cpu-ms.js';
import { sectionOf } from '../../support/machine-words.js';
import { markdownTable } from '../../support/markdown-table.js';
import { findNatsServer } from '../../support/queue/nats-process.js';
import { QueueLab, until } from '../../support/queue/queue-lab.js';
import { median, percentile } from '../../support/statistics.js';
import { takeRounds } from '../../support/take-rounds.js';
import { type BenchOutput, defineBench, forEachKind } from '../bench.js';
import { MODEL_FLAG, modelOf, roundsFlag, THREADS_FLAG } from '../flags.js';

const FLAGS = {
  ...MODEL_FLAG,
  ...THREADS_FLAG,
  prompt: { argument: 'N', default: '1500', help: 'tokens of a long prompt (default 1500)' },
  prompts: { argument: 'N', default: '4', help: 'long prompts next to the streams (default 4)' },
  streams: { argument: 'N', default: '4', help: 'streams next to the long prompts (default 4)' },
  ...roundsFlag(5),
} as const;
type Flags = FlagValues<typeof FLAGS>;

interface Side {
  name: string;
  gateway: QueueGateway;
  /** Milliseconds to the first token of a long prompt, with nothing else. */
  firstMs: number[];
  /** Processor time of the same, of all processes. */
  cpuMs: number[];
  /** Milliseconds between two tokens of streams that run at the same time as long prompts. */
  gapsMs: number[];
  /** Milliseconds to the first token of these prompts. */
  crowdedFirstMs: number[];
}

let numPrompts = 0;

/** A prompt that no cache has the beginning of. */
function newPrompt(length: number): number[] {
  const own = ++numPrompts;
  return Array.from({ length }, (_, i) => 1000 + ((own * 7919 + i * 31 + i * i) % 20_000));
}

/** Milliseconds to each piece of an answer. */
async function times(
  lab: QueueLab,
  gateway: QueueGateway,
  promptTokens: number[],
  maxNewTokens: number,
  signal?: AbortSignal,
): Promise<number[]> {
  const begin = performance.now();
  const asked = { promptTokens, maxNewTokens, temperature: 1, seed: 5n, ...(signal ? { signal } : {}) };
  const found: number[] = [];
  for await (const { tokens } of gateway.submit(lab.model, asked)[0]!)
    if (tokens.length > 0) found.push(performance.now() - begin);
  return found;
}

async function measure(lab: QueueLab, side: Side, flags: Flags, pids: readonly number[]): Promise<void> {
  const length = countOf('prompt', flags.prompt);
  const before = cpuMs(pids);
  side.firstMs.push((await times(lab, side.gateway, newPrompt(length), 1))[0]!);
  side.cpuMs.push(cpuMs(pids) - before);
  const end = new AbortController();
  const streams = Array.from({ length: countOf('streams', flags.streams) }, () =>
    times(lab, side.gateway, newPrompt(8), 1000, end.signal),
  );
  await new Promise((resolve) => setTimeout(resolve, 300));
  for (let i = 0; i < countOf('prompts', flags.prompts); i++)
    side.crowdedFirstMs.push((await times(lab, side.gateway, newPrompt(length), 1))[0]!);
  end.abort();
  for (const stream of await Promise.all(streams))
    side.gapsMs.push(...stream.slice(1).map((ms, i) => ms - stream[i]!));
}

async function run(flags: Flags, { progress, report }: BenchOutput): Promise<void> {
  const nats = findNatsServer();
  if (nats === null) throw new Error('There is no nats-server: apt-get install nats-server.');
  const engine = ['--model', `m=${modelOf(flags)}`, '--threads', flags.threads, '--kv-cache-tokens', '32768'];
  const lab = await QueueLab.start({ nats, maxLocalPrefillLength: 512 });
  try {
    const worker = await lab.startWorker(engine);
    const prefiller = await lab.startWorker([...engine, '--disaggregation-mode', 'prefill']);
    const local = await lab.openGateway(Number.POSITIVE_INFINITY);
    for (const gateway of [local, lab.gateway]) await until('the workers', () => gateway.roster.size === 2);
    const pids = [lab.nats.pid, worker.child.pid!, prefiller.child.pid!];
    const side = (name: string, gateway: QueueGateway): Side => ({
      ...{ name, gateway },
      ...{ firstMs: [], cpuMs: [], gapsMs: [], crowdedFirstMs: [] },
    });
    const sides = [
      side('read by the worker that answers', local),
      side('read by a prefill worker', lab.gateway),
    ];
    for (const { gateway } of sides) await times(lab, gateway, newPrompt(600), 8);
    await takeRounds(sides, countOf('rounds', flags.rounds), async (one, round) => {
      await measure(lab, one, flags, pids);
      progress(`round ${round + 1} of ${flags.rounds}: ${one.name}`);
    });
    local.close();
    report(reportOf(sides, flags));
  } finally {
    await lab.close();
  }
}

function reportOf(sides: readonly Side[], flags: Flags) {
  const rows = sides.map(({ name, firstMs, cpuMs: cpu, gapsMs, crowdedFirstMs }) => [
    name,
    median(firstMs).toFixed(0),
    median(cpu).toFixed(0),
    median(gapsMs).toFixed(1),
    percentile(gapsMs, 0.99).toFixed(0),
    median(crowdedFirstMs).toFixed(0),
  ]);
  const [alone, apart] = sides;
  const ratio = (of: (side: Side) => number) => (of(apart!) / of(alone!)).toFixed(2);
  return {
    section: sectionOf('prefill', describeMachine()),
    conditions: `${flags.threads} threads each, prompts of ${flags.prompt} tokens, ${flags.streams} streams next to ${flags.prompts} of them, medians of ${flags.rounds} rounds in turns`,
    lines: [
      markdownTable(
        [
          'prompts',
          'first token, ms',
          'processor time, ms',
          'between two tokens of a stream, ms',
          '99th percentile',
          'first token next to the streams, ms',
        ],
        rows,
      ),
      '',
      `With a prefill worker a prompt's first token takes ${ratio(({ firstMs }) => median(firstMs))} of the time and ${ratio(({ cpuMs: cpu }) => median(cpu))} of the processor time, and the 99th percentile between two tokens is ${ratio(({ gapsMs }) => percentile(gapsMs, 0.99))} of what it is without.`,
    ],
  };
}

export const bench = defineBench({
  flags: FLAGS,
  document: 'docs/lab/server.md',
  sections: forEachKind('prefill'),
  run,
});
