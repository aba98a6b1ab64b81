import { describeMachine } from '../../../base/machine.js';
import { countOf, type FlagValues } from '../../compare/flags.js';
import { cpuMs } from '../../support/cpu-ms.js';
import { sectionOf } from '../../support/machine-words.js';
import { markdownTable } from '../../support/markdown-table.js';
import { findNatsServer, NatsProcess } from '../../support/queue/nats-process.js';
import { QueueLab, until } from '../../support/queue/queue-lab.js';
import { median } from '../../support/statistics.js';
import { takeRounds } from '../../support/take-rounds.js';
import { type BenchOutput, defineBench, forEachKind } from '../bench.js';
import { MODEL_FLAG, modelOf, roundsFlag, THREADS_FLAG } from '../flags.js';
import { type FrontProcess, startFront, startWorker } from './front-process.js';

const FLAGS = {
  ...MODEL_FLAG,
  ...THREADS_FLAG,
  clients: { argument: 'N', default: '16', help: 'streams at once (default 16)' },
  generate: { argument: 'N', default: '128', help: 'tokens of each stream (default 128)' },
  ...roundsFlag(5),
} as const;
type Flags = FlagValues<typeof FLAGS>;

interface Side {
  name: string;
  front: FrontProcess;
  /** Ids of all processes that work for it. */
  pids: () => number[];
  cpuMsPerToken: number[];
  firstMs: number[];
}

/**
 * Rounds that do not count: until its code is compiled a process takes twice the time and more, and a queue has three.
 */
const WARM_ROUNDS = 2;

/** Streams one completion. @returns milliseconds to each of its chunks */
async function stream({ url }: FrontProcess, model: string, tokens: number, seed: number): Promise<number[]> {
  const begin = performance.now();
  const prompt = `Story number ${seed}: once upon a time`;
  const body = { model, prompt, max_tokens: tokens, ignore_eos: true, temperature: 1, seed, stream: true };
  const answer = await fetch(`${url}/v1/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(await answer.text());
  const times: number[] = [];
  for await (const _ of answer.body as unknown as AsyncIterable<Uint8Array>)
    times.push(performance.now() - begin);
  return times;
}

async function measure(side: Side, flags: Flags, round: number): Promise<void> {
  const clients = countOf('clients', flags.clients);
  const tokens = countOf('generate', flags.generate);
  for (let i = 0; i < 10; i++) side.firstMs.push((await stream(side.front, 'm', 1, 1000 * round + i))[0]!);
  const before = cpuMs(side.pids());
  await Promise.all(
    Array.from({ length: clients }, (_, i) => stream(side.front, 'm', tokens, 100 * round + i)),
  );
  side.cpuMsPerToken.push((cpuMs(side.pids()) - before) / (clients * tokens));
}

/** Milliseconds from a kill to the next token, for a stream on its own. */
async function takeovers(
  lab: QueueLab,
  front: FrontProcess,
  worker: readonly string[],
  count: number,
): Promise<number[]> {
  const times: number[] = [];
  for (let i = 0; i < count; i++) {
    await lab.startWorker(worker);
    let killedMs = 0;
    let killed = '';
    const stop = lab.onFrame(({ worker: id, index }) => {
      if (killedMs === 0 && index === 20) {
        killedMs = performance.now();
        killed = id;
        void lab.kill(lab.find(id)!);
      } else if (killedMs > 0 && id !== killed) {
        times.push(performance.now() - killedMs);
        stop();
      }
    });
    await stream(front, 'm', 100, i);
    stop();
  }
  return times;
}

async function run(flags: Flags, { progress, report }: BenchOutput): Promise<void> {
  const nats = findNatsServer();
  if (nats === null) throw new Error('There is no nats-server: apt-get install nats-server.');
  const engine = ['--model', `m=${modelOf(flags)}`, '--threads', flags.threads, '--kv-cache-tokens', '32768'];
  const sides = await measureSides(nats, engine, flags, progress);
  progress('workers are killed');
  const times = await measureTakeovers(nats, engine, countOf('rounds', flags.rounds));
  report(reportOf(sides, times, flags));
}

/** One server, and a queue without listeners, next to those that it is made of. */
async function measureSides(
  program: string,
  engine: readonly string[],
  flags: Flags,
  progress: BenchOutput['progress'],
): Promise<Side[]> {
  const nats = await NatsProcess.start(program);
  const processes: { stop(): Promise<void> }[] = [];
  try {
    const direct = await startFront(['serve', ...engine]);
    processes.push(direct);
    const worker = await startWorker(['work', '--nats', nats.url, ...engine]);
    processes.push(worker);
    const gateway = await startFront(['gateway', '--nats', nats.url]);
    processes.push(gateway);
    await untilServed(gateway);
    const side = (name: string, front: FrontProcess, pids: () => number[]): Side => ({
      ...{ name, front, pids },
      cpuMsPerToken: [],
      firstMs: [],
    });
    const sides = [
      side('one server', direct, () => [direct.pid]),
      side('gateway, queue and worker', gateway, () => [gateway.pid, nats.pid, worker.pid]),
    ];
    await takeRounds(sides, WARM_ROUNDS + countOf('rounds', flags.rounds), async (one, round) => {
      if (round === WARM_ROUNDS) {
        one.cpuMsPerToken.length = 0;
        one.firstMs.length = 0;
      }
      await measure(one, flags, round);
      progress(`round ${round + 1 - WARM_ROUNDS} of ${flags.rounds}: ${one.name}`);
    });
    return sides;
  } finally {
    await Promise.all(processes.map((one) => one.stop()));
    await nats.close();
  }
}

async function measureTakeovers(nats: string, engine: readonly string[], count: number): Promise<number[]> {
  const lab = await QueueLab.start({ nats });
  try {
    await lab.startWorker(engine);
    const gateway = await startFront(['gateway', '--nats', lab.nats.url]);
    try {
      await untilServed(gateway);
      return await takeovers(lab, gateway, engine, count);
    } finally {
      await gateway.stop();
    }
  } finally {
    await lab.close();
  }
}

async function untilServed({ url }: FrontProcess): Promise<void> {
  await until('the model', async () => (await (await fetch(`${url}/v1/models`)).text()).includes('"m"'));
}

function reportOf(sides: readonly Side[], times: readonly number[], flags: Flags) {
  const [direct, queued] = sides;
  // What other work of the machine does to one round, it does to both sides of it: what counts is their difference in each round.
  const costs = queued!.cpuMsPerToken.map((cpu, round) => cpu - direct!.cpuMsPerToken[round]!);
  const cost = median(costs);
  const first = median(queued!.firstMs.map((ms, i) => ms - direct!.firstMs[i]!));
  const rows = sides.map(({ name, cpuMsPerToken, firstMs }) => [
    name,
    median(cpuMsPerToken).toFixed(3),
    median(firstMs).toFixed(1),
  ]);
  return {
    section: sectionOf('queue', describeMachine()),
    conditions: `${flags.threads} threads, ${flags.clients} streams of ${flags.generate} tokens, medians of ${flags.rounds} rounds in turns, ${WARM_ROUNDS} more before them`,
    lines: [
      markdownTable(['', 'processor ms a token', 'first token, one stream, ms'], rows),
      '',
      `The queue costs ${(1000 * cost).toFixed(0)} us of processor time a token (${costs.map((ms) => (1000 * ms).toFixed(0)).join(', ')}), ${((100 * cost) / median(direct!.cpuMsPerToken)).toFixed(1)} %, and ${first.toFixed(1)} ms at the first token.`,
      `After a worker was killed the next token came after ${median([...times]).toFixed(0)} ms (${times.map((ms) => ms.toFixed(0)).join(', ')}).`,
    ],
  };
}

export const bench = defineBench({
  flags: FLAGS,
  document: 'docs/lab/server.md',
  sections: forEachKind('queue'),
  run,
});
