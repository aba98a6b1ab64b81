import type { TokenRequest } from '../../callbacks/token-request.js';
import { type Answer, answerOf } from '../support/queue/answers.js';
import { type LabWorker, QueueLab, until } from '../support/queue/queue-lab.js';
import { Random } from '../support/random.js';

export interface FaultOptions {
  /** Path of nats-server. */
  nats: string;
  /** Arguments of each worker, its model among them. */
  workerArguments: readonly string[];
  environment: NodeJS.ProcessEnv;
  workers: number;
  /** Workers beside these that only compute prompts, and are killed too; prompts of more than 32 tokens go there. */
  prefillWorkers: number;
  requests: number;
  /** Workers that are killed on the way. */
  kills: number;
  seed: number;
  /** Requests that are under way at once. */
  concurrency: number;
  vocabSize: number;
  onProgress?: (text: string) => void;
}

export interface FaultReport {
  requests: number;
  kills: number;
  /** Requests whose answer was another than in the undisturbed run, with what was wrong. */
  wrong: string[];
  tokens: number;
  seconds: number;
}

/**
 * Asks the same requests twice: undisturbed, and while workers are killed at random. Every answer has to be the same,
 * and nothing may be left behind. @throws where something is left, or waits for ever
 */
export async function runFaults(options: FaultOptions): Promise<FaultReport> {
  const { nats, environment, workers, prefillWorkers, onProgress = () => {} } = options;
  const lab = await QueueLab.start({ nats, environment, maxLocalPrefillLength: 32, routing: 'cache' });
  try {
    const start = (isPrefill: boolean) =>
      lab.startWorker([
        ...options.workerArguments,
        ...(isPrefill ? ['--disaggregation-mode', 'prefill'] : []),
      ]);
    for (let i = 0; i < workers + prefillWorkers; i++) await start(i >= workers);
    const requests = drawRequests(options);
    onProgress('the undisturbed run');
    const undisturbed = await askAll(lab, requests, options.concurrency);
    onProgress('the run with kills');
    const begin = performance.now();
    const killing = new Killer(lab, options, requests.length, start);
    const disturbed = await askAll(lab, requests, options.concurrency, () => killing.note());
    const seconds = (performance.now() - begin) / 1000;
    await killing.settled();
    await lab.untilIdle();
    await until('an empty stream', async () => (await lab.inStream()) === 0);
    if (lab.gateway.size > 0) throw new Error(`${lab.gateway.size} requests are left in the gateway.`);
    const wrong = disturbed.flatMap((answers, i) => {
      const found = JSON.stringify(answers, bigint);
      const expected = JSON.stringify(undisturbed[i], bigint);
      return found === expected
        ? []
        : [`request ${i}: ${found.slice(0, 300)} in place of ${expected.slice(0, 300)}`];
    });
    const tokens = disturbed.flat().reduce((sum, answer) => sum + answer.tokens.length, 0);
    return { requests: requests.length, kills: killing.count, wrong, tokens, seconds };
  } finally {
    await lab.close();
  }
}

const bigint = (_: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value);

/** Kills a worker, any one, whenever so many requests have ended, and starts another in its place. */
class Killer {
  readonly #lab: QueueLab;
  readonly #every: number;
  readonly #most: number;
  readonly #random: Random;
  readonly #start: (isPrefill: boolean) => Promise<LabWorker>;
  readonly #starting: Promise<unknown>[] = [];
  #ended = 0;
  count = 0;

  constructor(
    lab: QueueLab,
    { kills, seed }: FaultOptions,
    requests: number,
    start: (isPrefill: boolean) => Promise<LabWorker>,
  ) {
    this.#lab = lab;
    this.#every = Math.max(1, Math.floor(requests / (kills + 1)));
    this.#most = kills;
    this.#random = new Random(seed + 1);
    this.#start = start;
  }

  note(): void {
    // Where no worker is there just now, the next end is the time.
    if (++this.#ended < this.#every * (this.count + 1) || this.count >= this.#most) return;
    const workers = [...this.#lab.workers];
    const victim = workers[this.#random.below(workers.length)];
    if (victim === undefined) return;
    this.count++;
    this.#starting.push(this.#lab.kill(victim).then(() => this.#start(victim.isPrefill)));
  }

  async settled(): Promise<void> {
    await Promise.all(this.#starting);
  }
}

function drawRequests({ requests, seed, vocabSize, prefillWorkers }: FaultOptions): TokenRequest[] {
  const longest = prefillWorkers > 0 ? 150 : 40;
  const random = new Random(seed);
  const number = (min: number, max: number) => min + random.below(max - min + 1);
  return Array.from({ length: requests }, (_, i): TokenRequest => {
    const promptTokens = Array.from({ length: number(1, longest) }, () => number(5, vocabSize - 1));
    const base = { promptTokens, maxNewTokens: number(1, 60), temperature: 1, seed: BigInt(i) };
    const kinds: Partial<TokenRequest>[] = [
      {},
      { temperature: 0 },
      { numSequences: number(2, 4) },
      { returnLogProbs: true, topLogProbs: 2 },
      { repetitionPenalty: 1.3, frequencyPenalty: 0.3 },
      { mirostat: 2 },
      { endTokenIds: [number(5, vocabSize - 1), number(5, vocabSize - 1)] },
    ];
    return { ...base, ...kinds[number(0, kinds.length - 1)]! };
  });
}

/** Asks all requests, so many at once. */
async function askAll(
  lab: QueueLab,
  requests: readonly TokenRequest[],
  concurrency: number,
  onEnd: () => void = () => {},
): Promise<Answer[][]> {
  const answers: Answer[][] = [];
  let next = 0;
  const model = lab.model;
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      while (next < requests.length) {
        const own = next++;
        answers[own] = await Promise.all(lab.gateway.submit(model, requests[own]!).map(answerOf));
        onEnd();
      }
    }),
  );
  return answers;
}
